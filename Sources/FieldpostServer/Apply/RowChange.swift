internal import FieldpostCore
internal import FieldpostSQLite

/// Carries out one operation on one row by the rules of its table.
struct RowChange {
    let apply: Apply
    let access: TableAccess
    let operation: Operation

    /// A key beyond this length is a mistake, and costs in every index and feed entry.
    private static let maxKeyBytes = 1_024

    private var connection: Connection { apply.connection }
    private var table: Table { access.table }
    private var scopes: Credential.Scopes { apply.credential.scopes }

    /// The row, as far as this credential may know of it.
    private func visible(_ state: RowState) -> [Value]? {
        guard let values = state.values, let scope = state.scope, scopes.contains(scope) else { return nil }
        return values
    }

    private func checkKey() throws(Rejection) {
        let isUUID = table.column(table.key)?.type == .uuid
        let usable =
            isUUID
            ? UUIDText.lowered(operation.row) != nil
            : !operation.row.isEmpty && operation.row.utf8.count <= RowChange.maxKeyBytes
                && !operation.row.utf8.contains(0)
        if !usable {
            let what = isUUID ? "a UUID" : "1 to \(RowChange.maxKeyBytes) bytes of text"
            throw Rejection("type", "expected \(what) as key", fields: [table.key])
        }
    }

    // MARK: Create

    func create() throws -> Outcome {
        try checkKey()
        let values = try ChangeReader(table: table, operation: operation).created()
        try checkScope(of: values)
        let state = try access.state(connection, operation.row)
        if state.values != nil {
            guard let present = visible(state) else {
                // Nothing more is said: whose row it is must not be learned by trying keys.
                throw Rejection("scope", "The key cannot be used.", fields: [table.key])
            }
            let row = access.wire(present)
            guard row == access.wire(values) else { throw RowConflict(version: state.version, row: row) }
            return Outcome(version: state.version, after: row, shown: shownAfterCreate)
        }
        try access.insert(connection, values)
        return try outcome(shown: shownAfterCreate)
    }

    private var shownAfterCreate: (Operation) -> JSONObject? {
        { [table] sent in Merge.apply(sent, to: nil, table: table) }
    }

    private func checkScope(of values: [Value]) throws(Rejection) {
        guard case .column(let name) = table.scope,
            let index = table.columns.firstIndex(where: { $0.name == name })
        else { return }
        try checkScope(values[index], name)
    }

    private func checkScope(_ value: Value, _ column: String) throws(Rejection) {
        // An empty scope would be the scope of global rows.
        guard let scope = value.text, !scope.isEmpty, scopes.contains(scope) else {
            throw Rejection("scope", "This token does not reach that scope.", fields: [column])
        }
    }

    // MARK: Update

    func update() throws -> Outcome {
        try refuseIfAppendOnly()
        try checkKey()
        let state = try access.state(connection, operation.row)
        guard let before = visible(state) else { throw absent(state) }
        let base = try baseVersion()
        let changed = try ChangeReader(table: table, operation: operation).updated(before)
        if isStale(state, base) { throw RowConflict(version: state.version, row: access.wire(before)) }
        if case .column(let name) = table.scope,
            let new = changed.first(where: { table.columns[$0.index].name == name })
        {
            try checkScope(new.value, name)
        }
        let shown = shownAfterUpdate(before, isCurrent: base == state.version)
        if changed.isEmpty {
            return Outcome(version: state.version, after: access.wire(before), shown: shown)
        }
        try keepLosers(before, changed, state, base)
        try access.update(connection, operation.row, changed)
        return try outcome(shown: shown)
    }

    private func shownAfterUpdate(_ before: [Value], isCurrent: Bool) -> (Operation) -> JSONObject? {
        let row = access.wire(before)
        return { [table] sent in isCurrent ? Merge.apply(sent, to: row, table: table) : nil }
    }

    private func refuseIfAppendOnly() throws(Rejection) {
        if table.conflict == .appendOnly {
            throw Rejection("append_only", "Rows of this table are created and never changed.")
        }
    }

    /// What an edit of a row that is not there, or not this credential's, is told: the same for both.
    private func absent(_ state: RowState) -> RowConflict {
        let deletion =
            state.values == nil
            ? state.deletedIn.filter { scopes.contains($0.scope) }.map(\.version).max() : nil
        return RowConflict(version: deletion, row: nil, deleted: deletion != nil)
    }

    /// The version of the row that the edit was made on.
    private func baseVersion() throws -> Int64? {
        switch operation.base {
        case .none: nil
        case .version(let version): version
        case .after(let id): try apply.log.entry(id)?.result.version
        }
    }

    /// Whether a rule refuses the edit because what it touches has changed since.
    private func isStale(_ state: RowState, _ base: Int64?) -> Bool {
        operation.change.columns.contains { name in
            guard name != table.key, table.rule(for: name) == .compareAndSet else { return false }
            if table.conflict == .compareAndSet { return base != state.version }
            return base.map { lastChange(of: name, state) > $0 } ?? true
        }
    }

    private func lastChange(of column: String, _ state: RowState) -> Int64 {
        state.columnVersions[column]?.integer ?? state.version ?? .max
    }

    /// Keeps the values that this edit replaces although its device had not seen them.
    private func keepLosers(
        _ before: [Value],
        _ changed: [(index: Int, value: Value)],
        _ state: RowState,
        _ base: Int64?
    ) throws {
        for (index, value) in changed where before[index] != value {
            let name = table.columns[index].name
            guard table.rule(for: name) == .keepLosingVersion,
                base.map({ lastChange(of: name, state) > $0 }) ?? true
            else { continue }
            let losing = (try? table.columns[index].type.json(from: before[index])) ?? .null
            try connection.run(
                """
                INSERT INTO fieldpost_conflicts \
                (version, tbl, row, scope, column_name, losing, losing_operation, winning_operation, device, at) \
                VALUES (?, ?, ?, ?, ?, ?, (SELECT id FROM fieldpost_operations WHERE version = ?), ?, ?, ?)
                """,
                .integer(try apply.log.nextVersion()),
                .text(table.name),
                .text(operation.row),
                .text(state.scope ?? ""),
                .text(name),
                .text(losing.text()),
                .integer(lastChange(of: name, state)),
                .text(operation.id.text),
                apply.log.device.map { .text($0.id) } ?? .null,
                .integer(apply.now.milliseconds)
            )
        }
    }

    // MARK: Delete

    func delete() throws -> Outcome {
        try refuseIfAppendOnly()
        try checkKey()
        let state = try access.state(connection, operation.row)
        guard let before = visible(state) else { return Outcome(version: absent(state).version) }
        if table.conflict == .compareAndSet, try baseVersion() != state.version {
            throw RowConflict(version: state.version, row: access.wire(before))
        }
        try checkCascade(access, operation.row, depth: 0)
        try access.delete(connection, operation.row)
        return Outcome(version: absent(try access.state(connection, operation.row)).version, changed: true)
    }

    /// A delete must not reach, by cascades, what its credential could not change row by row.
    private func checkCascade(_ access: TableAccess, _ row: String, depth: Int) throws {
        // Deeper than any schema's tables: rows of one table that refer to each other in a ring.
        guard depth < 64 else { return }
        for referrer in access.referrers where referrer.onDelete != .restrict {
            guard let child = apply.core.tables[referrer.table] else { continue }
            let rows = try connection.query(
                "SELECT \(quoted(referrer.key)) FROM \(quoted(referrer.table)) WHERE \(quoted(referrer.column)) = ?",
                .text(row)
            )
            if rows.isEmpty { continue }
            guard child.table.writable.contains(apply.credential.role) else {
                throw Rejection("role", "This token may not write to rows that refer to it.")
            }
            for key in rows.compactMap(\.[0].text) {
                guard try scopes == .all || scopes.contains(child.state(connection, key).scope ?? "") else {
                    throw Rejection("reference", "Rows that refer to it are beyond this token.")
                }
                if referrer.onDelete == .cascade { try checkCascade(child, key, depth: depth + 1) }
            }
        }
    }

    private func outcome(shown: @escaping (Operation) -> JSONObject?) throws -> Outcome {
        let state = try access.state(connection, operation.row)
        return Outcome(
            version: state.version,
            after: state.values.map(access.wire),
            changed: true,
            shown: shown
        )
    }
}
