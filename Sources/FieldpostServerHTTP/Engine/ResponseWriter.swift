/// Writes a streamed answer piece by piece.
///
/// A piece goes out at once. `write` waits while too much already waits for the client, and throws `CancellationError` once
/// the client has left. Several tasks may write; each piece stays whole.
package final class ResponseWriter: Sendable {
    private struct State {
        var queued = 0
        var isClosed = false
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let highWater: Int
    private let send: @Sendable ([UInt8]) -> Void
    private let state = Guarded(State())

    init(highWater: Int, send: @escaping @Sendable ([UInt8]) -> Void) {
        self.highWater = highWater
        self.send = send
    }

    /// Sends `bytes`, which may be any number.
    package func write(_ bytes: [UInt8]) async throws {
        guard !bytes.isEmpty else { return }
        while try !reserve(bytes.count) { await waitForRoom() }
        send(bytes)
    }

    /// Sends a text as UTF-8.
    package func write(_ text: String) async throws { try await write(Array(text.utf8)) }

    /// Counts bytes that the client's socket has taken.
    func sent(_ count: Int) {
        let waiters = state.withLock { state in
            state.queued -= count
            return state.queued <= highWater / 2 ? Self.takeWaiters(&state) : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Makes every further write throw.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            return Self.takeWaiters(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    private func reserve(_ count: Int) throws -> Bool {
        try Task.checkCancellation()
        return try state.withLock { state in
            guard !state.isClosed else { throw CancellationError() }
            guard state.queued < highWater else { return false }
            state.queued += count
            return true
        }
    }

    /// Returns when there may be room, the writer closed or the task was cancelled.
    private func waitForRoom() async {
        let waiter = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    // Checked under the lock: the cancellation handler may have run already.
                    let mustWait = !state.isClosed && state.queued >= highWater && !Task.isCancelled
                    if mustWait { state.waiters[waiter] = continuation }
                    return mustWait
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
        }
    }

    private static func takeWaiters(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        defer { state.waiters = [:] }
        return Array(state.waiters.values)
    }
}
