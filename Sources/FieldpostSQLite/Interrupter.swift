internal import CFieldpostSQLite
internal import Foundation

/// Interrupts what a connection is running, from any thread.
///
/// It may outlive the connection, and then does nothing. The interrupted statement throws
/// ``StoreError/Code/interrupted``.
package final class Interrupter: @unchecked Sendable {
    // Safe because: the pointer is only read and cleared under the lock, and SQLite allows
    // sqlite3_interrupt from any thread while the handle is open.
    private let lock = NSLock()
    private var pointer: OpaquePointer?

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    /// Stops the statements that run now; later ones are not affected.
    package func interrupt() {
        lock.withLock {
            if let pointer { sqlite3_interrupt(pointer) }
        }
    }

    func invalidate() { lock.withLock { pointer = nil } }
}
