import Foundation

/// A value behind a lock.
///
/// An `NSLock` rather than `Synchronization.Mutex`, which makes the thread sanitizer report races that are none.
final class Guarded<Value>: @unchecked Sendable {
    // Safe because: `value` is touched only while `lock` is held.
    private let lock = NSLock()
    private var value: Value

    init(_ value: sending Value) { self.value = value }

    func withLock<Result, Failure>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result
    {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
