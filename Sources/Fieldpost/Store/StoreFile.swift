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

extension StoreFile {
    /// One name for all paths and links that lead to the file; its folder exists, or opening fails right after.
    var identity: String {
        if vfs != nil { return "memory:" + path }
        let url = URL(fileURLWithPath: path)
        let folder = url.deletingLastPathComponent().resolvingSymlinksInPath()
        return folder.appending(path: url.lastPathComponent).resolvingSymlinksInPath().path
    }
}

/// The process's writers, one for each open file.
///
/// Two writing connections in one process would be safe with SQLite from 3.51.3 on only.
enum OpenFiles {
    private struct Entry {
        weak var writer: StoreWriter?
    }

    private static let entries = Locked<[String: Entry]>([:])

    /// The writer of `file`, made where there is none.
    static func writer(of file: StoreFile, _ make: () -> StoreWriter) -> StoreWriter {
        let name = file.identity
        return entries.withLock { entries in
            if let known = entries[name]?.writer { return known }
            entries = entries.filter { $0.value.writer != nil }
            let new = make()
            entries[name] = Entry(writer: new)
            return new
        }
    }

    /// Forgets a writer that has closed its file for good.
    static func remove(_ writer: StoreWriter, of file: StoreFile) {
        let name = file.identity
        entries.withLock { if $0[name]?.writer === writer { $0[name] = nil } }
    }
}
