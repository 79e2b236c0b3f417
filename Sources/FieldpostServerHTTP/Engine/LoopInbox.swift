import Glibc

/// What other threads tell a loop.
enum LoopMessage: Sendable {
    /// The handler has answered; with a writer when the body follows in pieces.
    case answered(ExchangeID, HTTPResponse, ResponseWriter?)
    case wrote(ExchangeID, [UInt8])
    /// A streamed answer is over, cut short when its closure threw.
    case finished(ExchangeID, cut: Bool)
    /// The reader of a body has made room.
    case drained(ExchangeID)
    /// Accept nobody, finish what runs, close the rest after `grace`.
    case stop(grace: Duration)
}

/// The messages that wait for a loop, and the descriptor that wakes it.
final class LoopInbox: Sendable {
    private struct State {
        var messages: [LoopMessage] = []
        var isClosed = false
    }

    /// Readable while messages wait.
    let waker: Int32
    private let state = Guarded(State())

    init() throws(HTTPServerError) { waker = try Poller.makeWaker() }

    deinit { close(waker) }

    func post(_ message: LoopMessage) {
        let mustWake = state.withLock { state in
            guard !state.isClosed else { return false }
            state.messages.append(message)
            // One write wakes the loop for all that come until it looks.
            return state.messages.count == 1
        }
        guard mustWake else { return }
        var one: UInt64 = 1
        _ = write(waker, &one, MemoryLayout<UInt64>.size)
    }

    func takeAll() -> [LoopMessage] {
        var count: UInt64 = 0
        _ = read(waker, &count, MemoryLayout<UInt64>.size)
        return state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Throws away what waits and what will come.
    func closeForGood() {
        state.withLock { $0 = State(messages: [], isClosed: true) }
    }
}
