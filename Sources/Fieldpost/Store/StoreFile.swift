internal import FieldpostCore
internal import Foundation

/// Where a store lives: in a file, or in this process's memory.
struct StoreFile: Sendable {
    let path: String
    /// SQLite's name for what holds it; `nil` for the file system.
    let vfs: String?

    init(path: String) {
        self.path = path
        vfs = nil
    }

    private init(memory name: String) {
        path = name
        vfs = "memdb"
    }

    /// A database in memory that several connections of the process share by its name.
    static func inMemory(_ environment: Environment) -> StoreFile {
        // Chance of its own: two stores of a test may have one seed.
        var system = SystemRandomNumberGenerator()
        return StoreFile(memory: "/fieldpost-\(String(system.next() as UInt64, radix: 16))")
    }

    /// The write-ahead log, through which other processes' writes show; `nil` in memory.
    var log: String? { vfs == nil ? path + "-wal" : nil }
}

/// The right of one store of the process to a file; given back when it goes.
///
/// Two writing connections in one process would be safe with SQLite from 3.51.3 on only, and two stores would each believe
/// that they see every commit.
final class StoreClaim: Sendable {
    private static let claimed = Locked<Set<String>>([])
    private let name: String

    /// - Throws: ``FieldpostError/Code/alreadyOpen``.
    init(_ file: StoreFile) throws(FieldpostError) {
        // Links and relative paths lead to one file; its folder exists, or opening fails right after.
        let url = URL(fileURLWithPath: file.path)
        let folder = url.deletingLastPathComponent().resolvingSymlinksInPath()
        let name =
            file.vfs == nil
            ? folder.appending(path: url.lastPathComponent).resolvingSymlinksInPath().path
            : "memory:" + file.path
        self.name = name
        isHeld = StoreClaim.claimed.withLock { $0.insert(name).inserted }
        if !isHeld {
            throw FieldpostError(
                .alreadyOpen,
                "This process has the file open; use that store, or close it first."
            )
        }
    }

    private let isHeld: Bool

    deinit { if isHeld { _ = StoreClaim.claimed.withLock { $0.remove(name) } } }
}
