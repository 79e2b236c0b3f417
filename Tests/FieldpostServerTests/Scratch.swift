import Foundation

/// A folder that goes with the last reference to it.
final class ScratchFolder: Sendable {
    let path: String
    init() throws {
        path = NSTemporaryDirectory() + "fieldpost-server-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// Numbered bytes, so that a test's keys and tokens are the same each time.
final class CountingRandom: @unchecked Sendable {
    // Safe because: the counter is only reached under the lock.
    private let lock = NSLock()
    private var next: UInt64 = 0
    func bytes(_ count: Int) -> [UInt8] {
        lock.withLock {
            next += 1
            return (0..<count).map {
                UInt8(truncatingIfNeeded: next &* 2_654_435_761 >> UInt64($0 % 4 * 8)) ^ UInt8($0)
            }
        }
    }
}

/// Opens once; threads wait for it by blocking, tasks without.
final class Gate: @unchecked Sendable {
    // Safe because: the condition guards the flag.
    private let condition = NSCondition()
    private var isOpen = false

    func open() {
        condition.withLock {
            isOpen = true
            condition.broadcast()
        }
    }

    func wait() {
        condition.withLock { while !isOpen { condition.wait() } }
    }

    func opened() async {
        while !condition.withLock({ isOpen }) { await Task.yield() }
    }
}
