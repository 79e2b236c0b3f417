internal import Foundation

/// Wakes one waiting task; raised while nobody waits, it is kept for the next who does.
///
/// An `AsyncStream` will not do: it ends for good when one wait on it is cancelled.
final class Alarm: @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var isRaised = false
    private var waiter: CheckedContinuation<Void, Never>?

    func raise() {
        let woken = lock.withLock {
            defer { waiter = nil }
            isRaised = waiter == nil
            return waiter
        }
        woken?.resume()
    }

    /// Returns once raised or cancelled; for one task at a time.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = lock.withLock {
                    if isRaised || Task.isCancelled {
                        isRaised = false
                        return true
                    }
                    waiter = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let woken = lock.withLock {
                defer { waiter = nil }
                return waiter
            }
            woken?.resume()
        }
    }
}
