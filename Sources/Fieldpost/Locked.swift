internal import Foundation

/// A value behind a lock.
///
/// `Synchronization.Mutex` makes the thread sanitizer report races that are not there on Linux.
final class Locked<State>: @unchecked Sendable {
    // Safe because: the state is only reached under the lock.
    private let lock = NSLock()
    private var state: State

    init(_ state: sending State) { self.state = state }

    func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}
