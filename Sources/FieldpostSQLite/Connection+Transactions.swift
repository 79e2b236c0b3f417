internal import CFieldpostSQLite

/// When a transaction takes its locks.
public enum TransactionKind: Sendable {
    /// The write lock at once, so that no later statement finds it taken.
    case immediate
    /// A read lock at the first read. Writing in one may fail with ``StoreError/Code/busy`` at any statement.
    case deferred
}

extension Connection {
    /// Runs `body` in one transaction, which commits if and only if `body` returns.
    ///
    /// `full`, `ioError`, `interrupted`, `outOfMemory` and `RAISE(ROLLBACK)` may end the whole transaction
    /// inside `body`: let them out, or check ``inTransaction`` before going on, because what follows would
    /// commit by itself.
    ///
    /// - Throws: What `body` throws, or the ``StoreError`` of `BEGIN` or `COMMIT`; nothing is then changed. A
    ///   failing rollback never hides the first error.
    public func transaction<Result>(
        _ kind: TransactionKind = .immediate,
        _ body: () throws -> Result
    ) throws -> Result {
        try run(kind == .immediate ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED", [])
        do {
            let result = try body()
            try run("COMMIT", [])
            return result
        } catch {
            // Some failures have rolled back already; the first error is the interesting one in any case.
            if inTransaction { try? run("ROLLBACK", []) }
            throw error
        }
    }

    /// Runs `body` in a savepoint, which is kept if and only if `body` returns.
    ///
    /// After an error that ended the surrounding transaction (``inTransaction`` is `false`), do not go on:
    /// the next savepoint would commit by itself.
    ///
    /// Outside of a transaction it opens and commits one. Savepoints nest, also with equal names.
    ///
    /// - Throws: What `body` throws, or ``StoreError``; what `body` changed is then undone.
    public func savepoint<Result>(_ name: String = "fieldpost", _ body: () throws -> Result) throws -> Result
    {
        let name = Self.quoted(name)
        try run("SAVEPOINT " + name, [])
        do {
            let result = try body()
            try run("RELEASE " + name, [])
            return result
        } catch {
            if inTransaction {
                try? run("ROLLBACK TO " + name, [])
                try? run("RELEASE " + name, [])
            }
            throw error
        }
    }

    /// `name` as an SQL identifier, whatever it holds.
    package static func quoted(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "\"")) else { return "\"" + name + "\"" }
        return "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
            + "\""
    }

    /// Whether the open transaction still breaks a foreign key, so that its commit would fail.
    package var deferredForeignKeyViolations: Bool {
        guard isOpen else { return false }
        var current: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(database.pointer, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0)
        return current != 0
    }
}
