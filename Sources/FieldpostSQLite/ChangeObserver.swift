internal import CFieldpostSQLite

/// Watches one connection: what its statements touch, and what its commits change.
///
/// The update hook says which tables had rows inserted, updated or deleted; the authorizer, which columns the statements
/// that ran may have updated; the commit and rollback hooks, whether it counts. Three gaps of the update hook are closed:
/// it does not see a `DELETE` without `WHERE` (that shortcut is switched off through the authorizer, as SQLite's manual
/// describes), nor tables without row ids and virtual ones (taken as changed when a statement that may write them ran
/// and anything changed), nor rows removed by `OR REPLACE` (an update that replaces counts for all columns).
final class ChangeObserver {
    private let pointer: OpaquePointer
    private var log: AccessLog?
    private var reprepared: AccessLog?
    /// The statements that ran since the last commit or rollback, each once.
    private var ran: [StatementAccess] = []
    private var isCollectingReads = false
    private var collected: [String: Set<String>] = [:]

    private var touched: [String: DatabaseChanges.Change] = [:]
    private var lastTable: UnsafePointer<CChar>?
    private var lastOperation: Int32 = 0
    private var silentTables: Set<String>?
    private var totalChanges: Int64 = 0
    private var committed = DatabaseChanges()

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
        totalChanges = sqlite3_total_changes64(pointer)
        // Safe because: the database handle owns this object and clears the hooks before it closes.
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_set_authorizer(
            pointer,
            { context, action, first, second, _, _ in
                ChangeObserver.from(context).authorize(action, first, second)
            },
            context
        )
        sqlite3_update_hook(
            pointer,
            { context, operation, _, table, _ in ChangeObserver.from(context).updated(operation, table) },
            context
        )
        sqlite3_commit_hook(
            pointer,
            { context in
                ChangeObserver.from(context).committing()
                return 0
            },
            context
        )
        sqlite3_rollback_hook(pointer, { context in ChangeObserver.from(context).reset() }, context)
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> ChangeObserver {
        Unmanaged<ChangeObserver>.fromOpaque(context!).takeUnretainedValue()
    }

    /// Takes the hooks off again.
    func stop() {
        sqlite3_set_authorizer(pointer, nil, nil)
        sqlite3_update_hook(pointer, nil, nil)
        sqlite3_commit_hook(pointer, nil, nil)
        sqlite3_rollback_hook(pointer, nil, nil)
    }

    // MARK: Preparing

    /// Runs `prepare` and returns what the authorizer told meanwhile.
    func recording<Result>(_ prepare: () throws(StoreError) -> Result) throws(StoreError) -> (
        Result, AccessLog
    ) {
        log = AccessLog()
        defer { log = nil }
        let result = try prepare()
        return (result, log ?? AccessLog())
    }

    private func authorize(_ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?)
        -> Int32
    {
        // In place: a copy of the log at each call would make long statements quadratic.
        if log != nil { return Self.note(action, first, second, &log!) }
        if reprepared == nil { reprepared = AccessLog() }
        return Self.note(action, first, second, &reprepared!)
    }

    private static func note(
        _ action: Int32,
        _ first: UnsafePointer<CChar>?,
        _ second: UnsafePointer<CChar>?,
        _ log: inout AccessLog
    ) -> Int32 {
        switch action {
        case SQLITE_READ:
            let table = text(first)
            if let second, second.pointee != 0 {
                log.reads[table, default: []].insert(String(cString: second))
            } else {
                log.reads[table, default: []].formUnion([])
            }
        case SQLITE_UPDATE: log.updates[text(first), default: []].insert(text(second))
        case SQLITE_INSERT: log.inserts.insert(text(first))
        case SQLITE_DELETE:
            let table = text(first)
            log.inserts.insert(table)
            // For a plain delete this only switches the truncate shortcut off; within DROP it would stop the statement.
            if !log.isDropping && !table.hasPrefix("sqlite_") { return SQLITE_IGNORE }
        case SQLITE_DROP_TABLE, SQLITE_DROP_TEMP_TABLE, SQLITE_DROP_VIEW, SQLITE_DROP_TEMP_VIEW,
            SQLITE_DROP_VTABLE:
            log.isDropping = true
        default: break
        }
        return SQLITE_OK
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
        pointer.map { String(cString: $0) } ?? ""
    }

    // MARK: Running

    /// A statement starts.
    func willRun(_ access: StatementAccess) {
        if isCollectingReads { collected.merge(access.reads) { $0.union($1) } }
        if access.writes, !ran.contains(where: { $0 === access }) { ran.append(access) }
    }

    /// What SQLite told when it prepared a running statement again, after the schema had changed.
    func takeReprepared() -> AccessLog? {
        guard let found = reprepared else { return nil }
        reprepared = nil
        return found
    }

    private func updated(_ operation: Int32, _ name: UnsafePointer<CChar>?) {
        if name == lastTable && operation == lastOperation { return }
        (lastTable, lastOperation) = (name, operation)
        let table = name.map { String(cString: $0) } ?? ""
        if operation == SQLITE_UPDATE {
            if touched[table] == nil { touched[table] = .columns([]) }
        } else {
            touched[table] = .rows
        }
    }

    private func committing() {
        var changes = DatabaseChanges()
        if ran.contains(where: \.changesSchema) {
            changes.isEverything = true
            silentTables = nil
        }
        for (table, change) in touched {
            guard change != .rows else {
                changes.add(table, .rows)
                continue
            }
            let columns = ran.compactMap { $0.updates[table] }
            let isWhole =
                columns.isEmpty || ran.contains { $0.inserts.contains(table) && $0.updates[table] == nil }
            changes.add(table, isWhole ? .rows : .columns(columns.reduce(into: []) { $0.formUnion($1) }))
        }
        changes.add(unseen())
        committed.add(changes)
        reset()
    }

    /// Changes of tables that the update hook is silent about.
    private func unseen() -> DatabaseChanges {
        var changes = DatabaseChanges()
        guard sqlite3_total_changes64(pointer) != totalChanges, let silentTables else { return changes }
        for access in ran {
            for table in access.inserts.union(access.updates.keys) where silentTables.contains(table) {
                changes.add(table, .rows)
            }
        }
        return changes
    }

    private func reset() {
        touched = [:]
        ran = []
        lastTable = nil
        totalChanges = sqlite3_total_changes64(pointer)
    }

    /// Whether ``silentTables`` has to be told.
    var needsSilentTables: Bool { silentTables == nil }

    func setSilentTables(_ names: Set<String>) { silentTables = names }

    /// What was committed since the last call.
    func takeCommitted() -> DatabaseChanges {
        defer { committed = DatabaseChanges() }
        return committed
    }

    /// Collects what statements read, until ``endReads()``.
    func beginReads() {
        isCollectingReads = true
        collected = [:]
    }

    func endReads() -> [String: Set<String>] {
        isCollectingReads = false
        return collected
    }
}
