internal import CFieldpostSQLite

/// Owns one open `sqlite3` handle and closes it exactly once.
///
/// Shared by a connection and its statements, so that a statement never outlives the handle that it runs on.
final class DatabaseHandle {
    let pointer: OpaquePointer
    let interrupter: Interrupter

    /// Whether each step must ask first: a hook is set, the connection is dead, or it is closed.
    ///
    /// One flag, so that a step pays one test when there is nothing to ask.
    private(set) var isGuarded = false
    private(set) var isClosed = false
    private(set) var isKilled = false

    var willStep: ((String) throws(StoreError) -> Void)? {
        didSet { updateGuard() }
    }

    /// Watches statements and commits, when somebody wants to know.
    var observer: ChangeObserver?

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
        interrupter = Interrupter(pointer)
    }

    deinit { close() }

    private func updateGuard() { isGuarded = isClosed || isKilled || willStep != nil }

    /// Throws when the connection is closed or dead.
    func checkUsable() throws(StoreError) {
        if isKilled { throw .killed }
        if isClosed {
            throw StoreError(.closed, "The database connection is closed; open it again.")
        }
    }

    /// Throws when the connection may not run `sql` (read only if a hook is set); tells the hook if it
    /// starts.
    func admit(starting: Bool, _ sql: () -> String) throws(StoreError) {
        try checkUsable()
        guard starting, let willStep else { return }
        do {
            try willStep(sql())
        } catch {
            if error.code == .killed {
                isKilled = true
                updateGuard()
            }
            throw error
        }
    }

    /// The error that SQLite holds for its last call.
    func error(_ code: Int32) -> StoreError {
        StoreError(sqlite: code, detail: sqlite3_errmsg(pointer).map { String(cString: $0) })
    }

    /// Throws unless `code` reports success.
    func check(_ code: Int32) throws(StoreError) {
        if code != SQLITE_OK { throw error(code) }
    }

    /// Rolls back what is open and closes; a second call does nothing.
    ///
    /// Statements that a caller still holds are reset first: otherwise SQLite would keep the transaction, and
    /// its locks, until the last of them goes.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        willStep = nil
        observer?.stop()
        observer = nil
        interrupter.invalidate()
        // A killed process does not checkpoint on its way out.
        if isKilled { _ = fieldpost_db_config(pointer, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
        var statement = sqlite3_next_stmt(pointer, nil)
        while let current = statement {
            sqlite3_reset(current)
            statement = sqlite3_next_stmt(pointer, current)
        }
        if sqlite3_get_autocommit(pointer) == 0 { sqlite3_exec(pointer, "ROLLBACK", nil, nil, nil) }
        sqlite3_close_v2(pointer)
    }
}

extension StoreError {
    /// What every call on a dead connection throws.
    package static var killed: StoreError {
        StoreError(.killed, "The simulated process was killed; open the database again.")
    }
}
