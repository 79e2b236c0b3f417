package import FieldpostCore
internal import FieldpostSQLite

/// Ends what was only a try.
private struct Fits: Error {}

extension Repair {
    /// Gives an operation that was refused, or never sent, other values, and sends its group again.
    ///
    /// The values replace those of the same columns; the other columns stay as they were recorded. The row shows the
    /// new values at once; but where the server may have the operation, a run has its word first.
    /// - Returns: the operation's id from now on: a new one where the old one was refused.
    /// - Throws: ``FieldpostError/Code/unknownColumn``, ``FieldpostError/Code/type`` and
    ///   ``FieldpostError/Code/check`` for values the table does not take.
    package func edit(
        _ id: OperationID,
        set values: JSONObject,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws -> OperationID {
        do {
            return try db.applying {
                let entry = try entry(id)
                _ = try change(of: entry, try db.table(entry.table), with: values)
                if try db.group(of: entry).contains(where: InDoubt(db).contains) {
                    try checkFits(entry, values, now: now, random: &random)
                    try Decisions(db, now: now).keep(.edit(values), for: entry)
                    return id
                }
                return try rewrite(entry, set: values, now: now, random: &random)
            }
        } catch let error as StoreError {
            throw FieldpostError(error) ?? error
        }
    }

    /// Fails where the row could not take the values; nothing is changed.
    private func checkFits(
        _ entry: OutboxEntry,
        _ values: JSONObject,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        do {
            try db.connection.savepoint {
                _ = try rewrite(entry, set: values, now: now, random: &random)
                throw Fits()
            }
        } catch is Fits {}
    }

    /// What ``edit(_:set:now:random:)`` does once nothing is in doubt, inside the caller's transaction.
    func rewrite(
        _ entry: OutboxEntry,
        set values: JSONObject,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws -> OperationID {
        let table = try db.table(entry.table)
        let text = try change(of: entry, table, with: values).json.text
        let after = try entry.after + createsReferred(by: values, entry, table)
        try db.connection.run(
            "UPDATE fieldpost_outbox SET change = ?, after = ? WHERE seq = ?",
            .text(text),
            after.isEmpty ? .null : .text(JSON.array(after.map { .string($0.text) }).text()),
            .integer(entry.seq)
        )
        if entry.state == .failed { _ = try sendAgain(entry, now: now, random: &random) }
        try RowState(db: db, table: table, row: entry.row).rebuild()
        return try db.entries(where: "seq = ?", .integer(entry.seq)).first?.id ?? entry.id
    }

    /// The unsettled creates of rows that the new values refer to.
    private func createsReferred(by values: JSONObject, _ entry: OutboxEntry, _ table: Table) throws
        -> [OperationID]
    {
        var found: [OperationID] = []
        for column in table.columns {
            guard let parent = column.reference?.table, let key = values[column.name]?.string else {
                continue
            }
            found += try db.entries(
                where: "row = ? AND tbl = ? AND action = 'create' AND seq <> ?",
                .text(key),
                .text(parent),
                .integer(entry.seq)
            ).map(\.id)
        }
        return found.filter { !entry.after.contains($0) }
    }

    /// Takes back an operation that was never sent, with its group.
    ///
    /// - Throws: ``FieldpostError/Code/wrongState`` for one that was sent, and ``FieldpostError/Code/hasDependants``.
    package func undo(_ id: OperationID, now: Timestamp) throws -> [OperationID] {
        try db.applying {
            let entry = try entry(id)
            let sent = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
            if entry.seq <= sent {
                throw FieldpostError(
                    .wrongState,
                    "The operation was sent already; change the row back instead."
                )
            }
            let entries = try closure(of: entry, naming: true)
            try takeBack(entry, now: now)
            return entries.map(\.id)
        }
    }

    private func change(of entry: OutboxEntry, _ table: Table, with values: JSONObject) throws -> Change {
        guard entry.action == "create" || entry.action == "update" else {
            throw FieldpostError(.usage, "A \(entry.action) has no values to edit; discard it instead.")
        }
        var change = try entry.change.map { Change(json: try JSON(text: $0).object ?? [:]) } ?? Change()
        for member in values.members {
            guard let column = table.column(member.name), column.name != table.key else {
                throw FieldpostError(
                    .unknownColumn,
                    "\(table.name) has no column \(member.name) to edit.",
                    names: [member.name]
                )
            }
            let rule = table.rule(for: column.name)
            if entry.action == "update", rule == .counter || rule == .set {
                throw FieldpostError(
                    .type,
                    "\(table.name).\(column.name) is recorded as a difference; discard the change and make it again.",
                    names: [column.name]
                )
            }
            change.set[column.name] = try captured(member.value, column, table)
        }
        return change
    }

    /// A wire value as capture would have recorded it.
    private func captured(_ value: JSON, _ column: Column, _ table: Table) throws(FieldpostError) -> JSON {
        do throws(ColumnTypeError) {
            let json = try column.type.json(from: try column.value(from: value))
            return LocalJSON.captured([column.name: json], table)[column.name] ?? json
        } catch {
            throw FieldpostError(
                .type,
                "\(table.name).\(column.name): \(error.message).",
                names: [column.name]
            )
        }
    }
}
