internal import CFieldpostLinuxIO
import Glibc

/// The kernel's readiness queue of one loop: epoll.
final class Poller {
    /// Why a descriptor was reported.
    struct Reasons: OptionSet {
        let rawValue: UInt32
        static let readable = Reasons(rawValue: UInt32(FIELDPOST_READABLE))
        static let writable = Reasons(rawValue: UInt32(FIELDPOST_WRITABLE))
        static let peerClosed = Reasons(rawValue: UInt32(FIELDPOST_PEER_CLOSED))
        static let broken = Reasons(rawValue: UInt32(FIELDPOST_FAILED | FIELDPOST_HUNG_UP))
    }

    private let descriptor: Int32
    private let reports = UnsafeMutablePointer<fieldpost_report>
        .allocate(capacity: Int(FIELDPOST_REPORTS_MAX))

    init() throws(HTTPServerError) {
        descriptor = fieldpost_poll_create()
        if descriptor < 0 { throw HTTPServerError.listening(on: "an epoll queue", failed: errno) }
    }

    deinit {
        close(descriptor)
        reports.deallocate()
    }

    /// Reports as long as there is something to read.
    func watchLevel(_ descriptor: Int32, tag: UInt64) -> Bool {
        fieldpost_poll_add_level(self.descriptor, descriptor, tag) == 0
    }

    /// Reports each change once; closing the descriptor ends it.
    func watchChanges(_ descriptor: Int32, tag: UInt64) -> Bool {
        fieldpost_poll_add_edge(self.descriptor, descriptor, tag) == 0
    }

    func unwatch(_ descriptor: Int32) {
        _ = fieldpost_poll_remove(self.descriptor, descriptor)
    }

    /// Waits until something is ready or the time is over (`nil` waits for ever); how many reports there are.
    func wait(milliseconds: Int32?) -> Int {
        // Negative means interrupted by a signal: the same as nothing ready.
        max(Int(fieldpost_poll_wait(descriptor, reports, milliseconds ?? -1)), 0)
    }

    /// One report of the last ``wait(milliseconds:)``.
    func report(_ index: Int) -> (tag: UInt64, reasons: Reasons) {
        (reports[index].tag, Reasons(rawValue: reports[index].reasons))
    }

    /// A descriptor that other threads write to in order to end a wait.
    static func makeWaker() throws(HTTPServerError) -> Int32 {
        let descriptor = fieldpost_eventfd()
        if descriptor < 0 { throw HTTPServerError.listening(on: "an eventfd", failed: errno) }
        return descriptor
    }

    /// The next client of a listening socket, or the `errno`.
    static func accept(from listener: Int32) -> Result<(descriptor: Int32, peer: PeerAddress), AcceptError> {
        var address = sockaddr_storage()
        let descriptor = fieldpost_accept(listener, &address)
        return descriptor < 0
            ? .failure(AcceptError(code: errno)) : .success((descriptor, PeerAddress(address)))
    }
}

/// Why `accept4` gave no client.
struct AcceptError: Error {
    let code: Int32

    /// Whether another call may succeed at once: that one client left, or a signal came.
    var isPassing: Bool { code == ECONNABORTED || code == EINTR || code == EPROTO || code == EPERM }
    /// Whether the process or the machine has run out of descriptors or memory.
    var isExhaustion: Bool { code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM }
}
