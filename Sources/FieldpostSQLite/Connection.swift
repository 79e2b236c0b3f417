internal import CFieldpostSQLite
internal import FieldpostCore

/// How a database file is opened.
public enum OpenMode: Sendable {
    /// For reading only; the file must exist.
    case readOnly
    /// For reading and writing; the file must exist.
    case readWrite
    /// For reading and writing; a missing file is created.
    case readWriteCreate
}

/// One connection to one database file.
///
/// It belongs to one thread or one actor at a time, and is not `Sendable`. Extended result codes are on and
/// double-quoted strings are off. A misspelt column in double quotes is therefore an error, not a text.
/// Closing, or the last reference going away, rolls back what is open.
///
///     let connection = try Connection(path: "app.db")
///     try connection.configureWriter(synchronous: .full)
///     try connection.run("INSERT INTO notes (id, body) VALUES (?, ?)", "n1", "hello")
public final class Connection {
    let database: DatabaseHandle
    private var cache = StatementCache()

    /// Opens `path`, or a private database in memory for `:memory:`, and reads its header.
    ///
    /// - Parameters:
    ///   - path: A path in the file system; its folder must exist.
    ///   - mode: Whether to write, and to create.
    ///   - vfs: The name of a registered SQLite VFS, or `nil` for the system's.
    ///   - busyTimeout: How long a call waits for another connection's lock before it throws
    ///     ``StoreError/Code/busy``.
    /// - Throws: ``StoreError`` with the code `missing`, `cantOpen`, `accessDenied`, `readOnly`,
    ///   `notADatabase`, `corrupt`, `newerFormat`, `busy` or `ioError`.
    public init(
        path: String,
        mode: OpenMode = .readWriteCreate,
        vfs: String? = nil,
        busyTimeout: Duration = .seconds(5)
    ) throws(StoreError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(.cantOpen, "The path of the database is empty or holds a NUL; correct it.")
        }
        var pointer: OpaquePointer?
        let code = sqlite3_open_v2(path, &pointer, Self.flags(mode), vfs)
        guard let pointer else { throw StoreError(sqlite: code, detail: nil) }
        // From here on the handle closes itself if a check below throws.
        database = DatabaseHandle(pointer)
        do throws(StoreError) {
            try database.check(code)
            try prepareForUse(mode: mode, busyTimeout: busyTimeout)
        } catch {
            let facts = vfs == nil && path != ":memory:" ? OpenFacts(path: path) : nil
            throw .opening(
                error.sqliteCode ?? SQLITE_CANTOPEN,
                detail: error.detail,
                mode: mode,
                facts: facts
            )
        }
    }

    // One thread at a time is the contract, so SQLite's own mutexes are left out.
    private static func flags(_ mode: OpenMode) -> Int32 {
        let access =
            switch mode {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            case .readWriteCreate: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        return access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    }

    private func prepareForUse(mode: OpenMode, busyTimeout: Duration) throws(StoreError) {
        let pointer = database.pointer
        try database.check(fieldpost_db_config(pointer, SQLITE_DBCONFIG_DQS_DML, 0, nil))
        try database.check(fieldpost_db_config(pointer, SQLITE_DBCONFIG_DQS_DDL, 0, nil))
        sqlite3_busy_timeout(pointer, Self.milliseconds(busyTimeout))
        // SQLite opens lazily: without a first read, a file that is no database would fail later and
        // elsewhere.
        try database.check(sqlite3_exec(pointer, "SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil, nil))
        // SQLite falls back to reading when it may not write; a writer must know at once.
        if mode != .readOnly && sqlite3_db_readonly(pointer, "main") == 1 {
            throw StoreError(sqlite: SQLITE_READONLY, detail: nil)
        }
    }

    private static func milliseconds(_ duration: Duration) -> Int32 {
        let (seconds, attoseconds) = duration.components
        let milliseconds =
            min(seconds, Int64(Int32.max) / 1_000 - 1) * 1_000 + attoseconds / 1_000_000_000_000_000
        return Int32(max(0, milliseconds))
    }

    deinit { close() }

    /// Rolls back what is open and closes the file; a second call does nothing.
    ///
    /// Every later call throws ``StoreError/Code/closed``.
    public func close() {
        cache.removeAll()
        database.close()
    }

    // MARK: Statements

    /// A statement for `sql` from the cache, prepared on first use, with no bindings.
    ///
    /// While one is held and asked for again, the second is prepared afresh.
    ///
    /// - Throws: ``StoreError/Code/sqlError``, or ``StoreError/Code/misuse`` for more or less than one
    ///   statement.
    public func statement(_ sql: String) throws(StoreError) -> Statement {
        switch cache.take(sql) {
        case .ready(let statement): return statement
        case .busy: return try prepare(sql, persistent: false)
        case .unknown:
            let statement = try prepare(sql, persistent: true)
            cache.store(statement, for: sql)
            return statement
        }
    }

    /// A statement for `sql` that is not cached, for SQL that is not used again.
    ///
    /// - Throws: As ``statement(_:)``.
    public func prepare(_ sql: String) throws(StoreError) -> Statement {
        try prepare(sql, persistent: false)
    }

    /// How many statements are cached.
    package var cachedStatementCount: Int { cache.count }

    /// Empties the cache of statements.
    func forgetStatements() { cache.removeAll() }

    private func prepare(_ sql: String, persistent: Bool) throws(StoreError) -> Statement {
        if database.isGuarded { try database.checkUsable() }
        var script = Script(sql)
        guard let statement = try script.next(database, persistent: persistent) else {
            throw StoreError(.misuse, "The SQL holds no statement; write one.")
        }
        guard script.isAtEnd(database) else {
            throw StoreError(.misuse, "The SQL holds more than one statement; run them one by one.")
        }
        return statement
    }

    // MARK: State

    /// Whether the connection has not been closed.
    public var isOpen: Bool { !database.isClosed }

    /// How many rows the last `INSERT`, `UPDATE` or `DELETE` changed, without those of its triggers.
    public var changes: Int { database.isClosed ? 0 : Int(sqlite3_changes64(database.pointer)) }

    /// How many rows were changed since opening, with those of triggers.
    public var totalChanges: Int { database.isClosed ? 0 : Int(sqlite3_total_changes64(database.pointer)) }

    /// The row id of the last inserted row.
    public var lastInsertRowID: Int64 { database.isClosed ? 0 : sqlite3_last_insert_rowid(database.pointer) }

    /// Whether a transaction is open.
    public var inTransaction: Bool { !database.isClosed && sqlite3_get_autocommit(database.pointer) == 0 }

    /// Called with its SQL before each statement's first step.
    ///
    /// A simulator uses it to kill the process between any two statements: once it throws
    /// ``StoreError/Code/killed``, every later call on this connection throws it too, `COMMIT` and `ROLLBACK`
    /// included, and closing only drops the file. Any other error fails that statement alone.
    package var willStep: ((String) throws(StoreError) -> Void)? {
        get { database.willStep }
        set { database.willStep = newValue }
    }

    /// Stops what this connection runs, from any thread.
    package var interrupter: Interrupter { database.interrupter }
}

@available(*, unavailable)
extension Connection: Sendable {}
