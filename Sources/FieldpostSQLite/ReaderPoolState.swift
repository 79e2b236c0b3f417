/// Decides which waiting read gets which connection.
///
/// It does no I/O and resumes nobody: callers report what happened and perform what is returned.
struct ReaderPoolState {
    typealias Waiter = CheckedContinuation<Reader, any Error>

    /// The answer to a request.
    enum Request {
        case lend(Reader)
        case wait
        case refuse
    }

    /// What becomes of a reader that came back.
    enum Return {
        case lend(Waiter)
        case keep
        case close
    }

    private let limit: Int
    private var idle: [Reader] = []
    private var waiting: [(ticket: UInt64, waiter: Waiter)] = []
    private var closers: [CheckedContinuation<Void, Never>] = []
    private var tickets: UInt64 = 0
    private var isClosed = false

    /// How many readers exist, lent or idle.
    private(set) var count = 0

    init(limit: Int) { self.limit = limit }

    /// A name for one request, by which it can be cancelled.
    mutating func newTicket() -> UInt64 {
        tickets += 1
        return tickets
    }

    /// Somebody wants a reader; on ``Request/wait`` the waiter is kept.
    mutating func requested(_ ticket: UInt64, _ waiter: Waiter, make: () -> Reader) -> Request {
        if isClosed { return .refuse }
        if let reader = idle.popLast() { return .lend(reader) }
        if count < limit {
            count += 1
            return .lend(make())
        }
        waiting.append((ticket, waiter))
        return .wait
    }

    /// Somebody no longer waits; returns the waiter to tell, unless it was served already.
    mutating func cancelled(_ ticket: UInt64) -> Waiter? {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return waiting.remove(at: index).waiter
    }

    /// A lent reader came back.
    mutating func returned(_ reader: Reader) -> Return {
        if isClosed { return .close }
        if !waiting.isEmpty { return .lend(waiting.removeFirst().waiter) }
        idle.append(reader)
        return .keep
    }

    /// The pool closes; returns the waiters to refuse and the readers to close.
    mutating func closed() -> (waiting: [Waiter], idle: [Reader]) {
        isClosed = true
        defer {
            waiting = []
            idle = []
        }
        return (waiting.map(\.waiter), idle)
    }

    /// One reader closed its connection; returns whom to tell when it was the last.
    mutating func readerClosed() -> [CheckedContinuation<Void, Never>] {
        count -= 1
        guard count == 0 else { return [] }
        defer { closers = [] }
        return closers
    }

    /// Keeps `closer` until the last reader closed, or returns `true` when it has.
    mutating func awaitEnd(_ closer: CheckedContinuation<Void, Never>) -> Bool {
        if count == 0 { return true }
        closers.append(closer)
        return false
    }
}
