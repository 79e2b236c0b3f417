internal import FieldpostCore
internal import FieldpostSQLite

/// What the device knows of one row: the server's state, and what the app shows on top of it.
///
/// Every way in which either changes (a pull, an answer, a discard) goes through here, so that the rule
/// "local = base + replay of what is unsettled" is held in one place.
struct RowState {
    let db: LocalDatabase
    let table: Table
    let row: String

    /// The server's state as stored: its version, whether it is deleted, and the row while edits are unsettled.
    struct Known {
        var version: Int64?
        var base: JSONObject?
        var isDeleted = false
    }

    func known() throws -> Known {
        let statement = try db.connection.statement(
            "SELECT version, base, deleted FROM fieldpost_rows WHERE tbl = ? AND row = ?"
        )
        try statement.bind([.text(table.name), .text(row)])
        defer { statement.reset() }
        guard try statement.step() else { return Known() }
        let base = statement.isNull(1) ? nil : try JSON(text: statement.text(1)).object
        return Known(
            version: statement.value(0).integer,
            base: base.map { LocalJSON.wire($0, table) },
            isDeleted: statement.integer(2) != 0
        )
    }

    /// Takes in a state of the row from the server and shows it under what is still unsettled.
    ///
    /// - Parameters:
    ///   - serverRow: the whole row, or `nil` for one that is gone.
    ///   - pending: the unsettled operations on it.
    /// - Returns: whether the app sees a difference.
    func take(_ serverRow: JSONObject?, version: Int64, pending: [Operation]) throws -> Bool {
        var base = serverRow
        if serverRow == nil, table.onRemoteDelete == .updateWins,
            pending.contains(where: { $0.action == .update })
        {
            // The edit will create the row again; until the server has judged it, the user keeps it.
            base = try known().base
        }
        // Shown first: a state that the app's schema refuses must not count as known.
        let isChanged = try show(Merge.replay(base: base, operations: pending, table: table))
        try store(version: version, base: pending.isEmpty ? nil : base, isDeleted: serverRow == nil)
        return isChanged
    }

    /// What became of a state that the server gave.
    enum Taken { case changed, unchanged, parked }

    /// As ``take(_:version:pending:)``, but a state that the app's schema refuses is set aside with its reason, so that
    /// one bad row stops neither a page nor an answer.
    func takeOrPark(_ serverRow: JSONObject?, version: Int64, pending: [Operation]) throws -> Taken {
        let reason: String
        do {
            return try take(serverRow, version: version, pending: pending) ? .changed : .unchanged
        } catch let error as ColumnTypeError {
            reason = error.message
        } catch let error as StoreError where error.code == .constraint || error.code == .aborted {
            reason = error.detail ?? "a constraint of the app's schema refuses it"
        }
        try Parked(db).add(table: table.name, row: row, version: version, set: serverRow, reason: reason)
        return .parked
    }

    /// Writes what the server last said; `base` only while edits are unsettled.
    func store(version: Int64, base: JSONObject?, isDeleted: Bool) throws {
        let statement = try db.connection.statement(
            """
            INSERT INTO fieldpost_rows (tbl, row, version, base, deleted) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (tbl, row) DO UPDATE SET version = excluded.version, base = excluded.base, deleted = excluded.deleted
            """
        )
        try statement.bind(1, table.name)
        try statement.bind(2, row)
        try statement.bind(3, version)
        try statement.bind(4, base.map { .text(LocalJSON.captured($0, table).text) } ?? .null)
        try statement.bind(5, Int64(isDeleted ? 1 : 0))
        try statement.run()
    }

    /// Shows the row again after one of its unsettled operations went away without the server's doing.
    @discardableResult
    func rebuild() throws -> Bool {
        let known = try known()
        let pending = try db.operations(on: row, of: table)
        let isOnServer = known.version != nil && !known.isDeleted
        if pending.isEmpty {
            guard isOnServer else { return try show(nil) }
            // Without a base there was no unsettled change, so the row is as the server has it.
            guard let base = known.base, let version = known.version else { return false }
            try store(version: version, base: nil, isDeleted: false)
            return try show(base)
        }
        return try show(Merge.replay(base: known.base, operations: pending, table: table))
    }

    /// Makes the app's row equal to `wanted`; `nil` removes it.
    ///
    /// - Returns: whether anything changed.
    private func show(_ wanted: JSONObject?) throws -> Bool {
        guard let wanted else {
            try db.connection.run(
                "DELETE FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?",
                .text(row)
            )
            return db.connection.changes > 0
        }
        return try RowWriter(db: db, table: table).write(wanted, key: row)
    }
}

/// Writes whole rows in wire form into the app's table.
struct RowWriter {
    let db: LocalDatabase
    let table: Table

    /// Inserts or updates the row called `key`; columns that `row` lacks keep their value, or take their default.
    ///
    /// - Returns: whether anything changed.
    func write(_ row: JSONObject, key: String) throws -> Bool {
        let columns = table.columns.filter { $0.name == table.key || row[$0.name] != nil }
        let statement = try db.connection.statement(sql(columns))
        for (index, column) in columns.enumerated() {
            let value =
                column.name == table.key ? .text(key) : try column.value(from: row[column.name] ?? .null)
            try statement.bind(Int32(index + 1), value)
        }
        try statement.run()
        return db.connection.changes > 0
    }

    private func sql(_ columns: [Column]) -> String {
        let names = columns.map { quoted($0.name) }
        let others = columns.filter { $0.name != table.key }.map { quoted($0.name) }
        let update =
            others.isEmpty
            ? "DO NOTHING"
            : "DO UPDATE SET " + others.map { "\($0) = excluded.\($0)" }.joined(separator: ", ") + " WHERE "
                + others.map { "\(quoted(table.name)).\($0) IS NOT excluded.\($0)" }.joined(separator: " OR ")
        return "INSERT INTO \(quoted(table.name)) (\(names.joined(separator: ", "))) "
            + "VALUES (\(names.map { _ in "?" }.joined(separator: ", "))) ON CONFLICT (\(quoted(table.key))) \(update)"
    }
}
