internal import Fieldpost
internal import Foundation

/// Where requests wait until a test lets them go on.
final class Hold: @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
    private var watchers: [CheckedContinuation<Void, Never>] = []
    private var next = 0

    /// Waits for ``release()``.
    ///
    /// - Throws: ``ExchangeFailure/unreachable(_:)`` when the task is cancelled, as a real transport does.
    func wait() async throws(ExchangeFailure) {
        let id = lock.withLock {
            next += 1
            return next
        }
        let isReleased = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in enter(id, continuation) }
        } onCancel: {
            leave(id)
        }
        if !isReleased { throw .unreachable("the request was cancelled") }
    }

    private func enter(_ id: Int, _ continuation: CheckedContinuation<Bool, Never>) {
        let seen = lock.withLock {
            waiting[id] = continuation
            defer { watchers = [] }
            return watchers
        }
        for watcher in seen { watcher.resume() }
        // A cancellation before this point found nobody to wake.
        if Task.isCancelled { leave(id) }
    }

    private func leave(_ id: Int) {
        lock.withLock { waiting.removeValue(forKey: id) }?.resume(returning: false)
    }

    func release() {
        let held = lock.withLock {
            defer { waiting = [:] }
            return waiting.values.map(\.self)
        }
        for one in held { one.resume(returning: true) }
    }

    func untilHeld() async {
        await withCheckedContinuation { continuation in
            let isHeld = lock.withLock {
                if waiting.isEmpty { watchers.append(continuation) }
                return !waiting.isEmpty
            }
            if isHeld { continuation.resume() }
        }
    }
}
