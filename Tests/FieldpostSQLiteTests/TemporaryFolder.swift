import FieldpostCore
import FieldpostSQLite
import Foundation

/// A folder of its own for one test, removed with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fieldpost-" + UUID().uuidString
        )
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    func write(_ bytes: [UInt8], to name: String) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
        return file(name)
    }

    /// A writer on `store.db` with one table of notes.
    func notes(synchronous: Synchronous = .normal) throws -> Connection {
        let connection = try Connection(path: file("store.db"))
        try connection.configureWriter(synchronous: synchronous)
        try connection.execute("CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, body TEXT)")
        return connection
    }

    /// How many notes another connection finds.
    func countOfNotes() throws -> Int64? {
        try Connection(path: file("store.db")).scalar("SELECT count(*) FROM notes")?.integer
    }
}

/// The error that `body` throws, when it is a ``StoreError``.
func storeError(_ body: () throws -> Void) -> StoreError? {
    do {
        try body()
        return nil
    } catch {
        return error as? StoreError
    }
}
