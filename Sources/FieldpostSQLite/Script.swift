internal import CFieldpostSQLite

/// SQL text that is prepared statement by statement.
struct Script {
    /// The text with a NUL, without which SQLite would copy the whole rest for each statement.
    private let bytes: [CChar]
    private var offset = 0

    init(_ sql: String) { bytes = sql.utf8.map { CChar(bitPattern: $0) } + [0] }

    /// Prepares the next statement, or returns `nil` when only white space and comments are left.
    mutating func next(_ database: DatabaseHandle, persistent: Bool) throws(StoreError) -> Statement? {
        while !isExhausted {
            guard let observer = database.observer else {
                let (code, statement) = prepare(database, persistent: persistent)
                if code != SQLITE_OK { throw database.error(code) }
                if let statement { return Statement(statement, database: database) }
                continue
            }
            let ((code, statement), log) = try observer.recording { () throws(StoreError) in
                prepare(database, persistent: persistent)
            }
            if code != SQLITE_OK { throw database.error(code) }
            if let statement { return Statement(statement, database: database, log: log) }
        }
        return nil
    }

    /// Whether no further statement follows; one that does not even parse counts as one.
    mutating func isAtEnd(_ database: DatabaseHandle) -> Bool {
        while !isExhausted {
            let (code, statement) = prepare(database, persistent: false)
            sqlite3_finalize(statement)
            if code != SQLITE_OK || statement != nil { return false }
        }
        return true
    }

    private var isExhausted: Bool { offset >= bytes.count - 1 }

    private mutating func prepare(_ database: DatabaseHandle, persistent: Bool) -> (Int32, OpaquePointer?) {
        var statement: OpaquePointer?
        var consumed = 0
        let flags = persistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
        let code = bytes.withUnsafeBufferPointer { buffer in
            let start = buffer.baseAddress! + offset
            var tail: UnsafePointer<CChar>?
            let count = Int32(clamping: buffer.count - offset)
            let code = sqlite3_prepare_v3(database.pointer, start, count, flags, &statement, &tail)
            consumed = tail.map { $0 - start } ?? 0
            return code
        }
        offset += consumed
        // A NUL inside the text ends it for SQLite: what follows it must not be lost silently.
        if code == SQLITE_OK && consumed == 0 && !isExhausted {
            sqlite3_finalize(statement)
            return (SQLITE_MISUSE, nil)
        }
        return (code, statement)
    }
}
