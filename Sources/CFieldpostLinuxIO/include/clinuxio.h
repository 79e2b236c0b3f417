// The Linux calls that Swift's Glibc module cannot see: <sys/epoll.h> and <sys/eventfd.h> are not in its module
// map, and accept4 hides behind _GNU_SOURCE.
#pragma once
#include <stdint.h>
#include <sys/socket.h>

// Why a descriptor was reported; the values are epoll's own.
enum {
    FIELDPOST_READABLE = 0x001,
    FIELDPOST_WRITABLE = 0x004,
    FIELDPOST_FAILED = 0x008,
    FIELDPOST_HUNG_UP = 0x010,
    FIELDPOST_PEER_CLOSED = 0x2000
};

// One report of fieldpost_poll_wait. Not `struct epoll_event`, which is packed on x86-64.
typedef struct {
    uint64_t tag;
    uint32_t reasons;
} fieldpost_report;

// The most reports that one call of fieldpost_poll_wait fills in.
enum { FIELDPOST_REPORTS_MAX = 256 };

int fieldpost_poll_create(void);
// Reports whenever the descriptor has something to read.
int fieldpost_poll_add_level(int poll, int descriptor, uint64_t tag);
// Reports each change of readable, writable and closed-by-peer once: one registration for a connection's life.
int fieldpost_poll_add_edge(int poll, int descriptor, uint64_t tag);
int fieldpost_poll_remove(int poll, int descriptor);
// `reports` has room for FIELDPOST_REPORTS_MAX; a negative timeout waits for ever.
int fieldpost_poll_wait(int poll, fieldpost_report *reports, int timeout_milliseconds);
int fieldpost_eventfd(void);
// Non-blocking and close-on-exec from birth, so that no child process can inherit a client.
int fieldpost_accept(int listener, struct sockaddr_storage *peer);
