internal import Foundation

/// Rung at any time, heard once by whoever waits next.
///
/// An `AsyncStream` will not do: it ends for good when one wait on it is cancelled.
final class Bell: @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var hasRung = false
    private var waiting: CheckedContinuation<Void, Never>?

    func ring() {
        let listener = lock.withLock {
            defer { waiting = nil }
            if waiting == nil { hasRung = true }
            return waiting
        }
        listener?.resume()
    }

    /// Returns once it rings, or at once when it has rung since the last time, or when the task is cancelled.
    ///
    /// One waits at a time.
    func heard() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = lock.withLock {
                    if hasRung || Task.isCancelled {
                        hasRung = false
                        return true
                    }
                    waiting = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let listener = lock.withLock {
                defer { waiting = nil }
                return waiting
            }
            listener?.resume()
        }
    }

    /// Returns once it rings, or after `pause`, or when the task is cancelled.
    func heard(orAfter pause: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.heard() }
            group.addTask { try? await sleep(pause) }
            await group.next()
            group.cancelAll()
        }
    }
}
