internal import Synchronization

/// Wakes one waiting task; raised while nobody waits, it is kept for the next who does.
final class Alarm: Sendable {
    private struct State {
        var isRaised = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func raise() {
        let waiter = state.withLock { state in
            let waiter = state.waiter
            state.waiter = nil
            state.isRaised = waiter == nil
            return waiter
        }
        waiter?.resume()
    }

    /// Returns once raised or cancelled; for one task at a time.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isRaised || Task.isCancelled {
                        state.isRaised = false
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }
    }
}
