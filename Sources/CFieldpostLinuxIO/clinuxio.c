#define _GNU_SOURCE
#include "clinuxio.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

_Static_assert(FIELDPOST_READABLE == EPOLLIN, "epoll's own value");
_Static_assert(FIELDPOST_WRITABLE == EPOLLOUT, "epoll's own value");
_Static_assert(FIELDPOST_FAILED == EPOLLERR, "epoll's own value");
_Static_assert(FIELDPOST_HUNG_UP == EPOLLHUP, "epoll's own value");
_Static_assert(FIELDPOST_PEER_CLOSED == EPOLLRDHUP, "epoll's own value");

int fieldpost_poll_create(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

static int add(int poll, int descriptor, uint64_t tag, uint32_t reasons) {
    struct epoll_event event = {.events = reasons, .data.u64 = tag};
    return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

int fieldpost_poll_add_level(int poll, int descriptor, uint64_t tag) {
    return add(poll, descriptor, tag, EPOLLIN);
}

int fieldpost_poll_add_edge(int poll, int descriptor, uint64_t tag) {
    return add(poll, descriptor, tag, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

int fieldpost_poll_remove(int poll, int descriptor) {
    return epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, 0);
}

int fieldpost_poll_wait(int poll, fieldpost_report *reports, int timeout_milliseconds) {
    struct epoll_event events[FIELDPOST_REPORTS_MAX];
    int count = epoll_wait(poll, events, FIELDPOST_REPORTS_MAX, timeout_milliseconds);
    for (int i = 0; i < count; i++) {
        reports[i].tag = events[i].data.u64;
        reports[i].reasons = events[i].events;
    }
    return count;
}

int fieldpost_eventfd(void) {
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

int fieldpost_accept(int listener, struct sockaddr_storage *peer) {
    socklen_t size = sizeof *peer;
    return accept4(listener, (struct sockaddr *)peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
