/// The results of a query, now and whenever a commit changes them.
///
///     for try await orders in store.watch(Order.where(\.status == .open)) { show(orders) }
///
/// The first result comes at once, each later one after a commit that could change it, and never the same twice in a
/// row. Results are of whole transactions. Who reads slowly gets the latest, and never a queue of older ones. Leaving
/// the loop, or cancelling its task, ends the watching; closing the store ends the sequence.
public struct WatchSequence<Element: Sendable>: AsyncSequence, Sendable {
    /// What the query throws.
    public typealias Failure = any Error

    let start: @Sendable (WatchSubscriber<Element>) -> WatchLease

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator {
        let subscriber = WatchSubscriber<Element>()
        return Iterator(subscriber: subscriber, lease: start(subscriber))
    }

    /// One loop over the results; it watches from its making to its end.
    public struct Iterator: AsyncIteratorProtocol {
        let subscriber: WatchSubscriber<Element>
        let lease: WatchLease

        /// The next result; `nil` after cancellation and when the store was closed.
        ///
        /// - Throws: what the query throws, once; the sequence ends with it.
        public mutating func next() async throws -> Element? {
            defer { withExtendedLifetime(lease) {} }
            return try await subscriber.next()
        }
    }
}

/// Ends a subscription when it goes.
final class WatchLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// Where results wait for one loop: at most one, the latest.
final class WatchSubscriber<Element: Sendable>: Sendable {
    private struct State {
        var latest: Element?
        var failure: (any Error)?
        var isFinished = false
        var waiter: CheckedContinuation<Element?, any Error>?
    }

    private let state = Locked(State())

    /// Replaces a result that was not taken yet.
    func deliver(_ element: Element) {
        let waiter = state.withLock { state in
            if state.waiter == nil, !state.isFinished { state.latest = element }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: element)
    }

    /// Ends the sequence, after a result that still waits.
    func finish(_ failure: (any Error)? = nil) {
        let waiter = state.withLock { state in
            if state.isFinished { return CheckedContinuation<Element?, any Error>?.none }
            state.isFinished = true
            defer { state.waiter = nil }
            if state.waiter == nil { state.failure = failure }
            return state.waiter
        }
        if let failure { waiter?.resume(throwing: failure) } else { waiter?.resume(returning: nil) }
    }

    func next() async throws -> Element? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer: Result<Element?, any Error>? = state.withLock { state in
                    if let latest = state.latest {
                        state.latest = nil
                        return .success(latest)
                    }
                    if let failure = state.failure {
                        state.failure = nil
                        return .failure(failure)
                    }
                    if state.isFinished || Task.isCancelled { return .success(nil) }
                    state.waiter = continuation
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            finish()
        }
    }
}
