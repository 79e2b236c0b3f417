public import FieldpostCore
internal import FieldpostSQLite

/// What is kept of an edit that lost: see ``Store/settle(_:keep:)``.
public enum Winner: Equatable, Sendable {
    /// The edit that lost: it is made again, on the row as it is now; on a row that is gone, the row is made again.
    case mine
    /// The server's row, which is there already.
    case theirs
    /// These wire values, by column.
    case value(JSONObject)
}

/// An edit on its way to the conflicts.
struct LostEdit {
    var operation: OperationID
    var action: String
    /// As captured.
    var change: String
    /// The server's row as JSON, or `nil` for one that is gone.
    var theirs: String?
}

/// The edits that lost, until someone settles them.
struct Conflicts {
    let db: LocalDatabase

    init(_ db: LocalDatabase) { self.db = db }

    /// Keeps a lost edit, with the row as the user saw it: to be called before the row takes the server's values.
    func add(_ lost: LostEdit, table: String, row: String, now: Timestamp) throws {
        let image = try db.schema.table(table).flatMap { try shown(row, $0) }
        try db.connection.run(
            """
            INSERT INTO fieldpost_conflicts (operation, tbl, row, mine, theirs, at, action, image)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .text(lost.operation.text),
            .text(table),
            .text(row),
            .text(lost.change),
            lost.theirs.map(Value.text) ?? .null,
            .integer(now.milliseconds),
            .text(lost.action),
            image.map { .text($0.text) } ?? .null
        )
    }

    /// The app's row, as capture spells it.
    func shown(_ row: String, _ table: Table) throws -> JSONObject? {
        let object = ColumnJSON(row: "r").object(table.columns)
        let text = try db.connection.scalar(
            "SELECT \(object) FROM \(quoted(table.name)) AS r WHERE r.\(quoted(table.key)) = ?",
            .text(row)
        )
        return try text?.text.flatMap { try JSON(text: $0).object }
    }

    /// Settles a conflict in the app's transaction: what it writes is an edit like any other.
    func settle(_ conflict: Int64, keep winner: Winner) throws {
        let found = try db.connection.query(
            "SELECT tbl, row, mine, action, image FROM fieldpost_conflicts WHERE id = ?",
            .integer(conflict)
        ).first
        guard let found else {
            throw FieldpostError(
                .rowMissing,
                "There is no conflict with this number; it may be settled already."
            )
        }
        let table = try db.table(found[0].text ?? "")
        let row = found[1].text ?? ""
        let mine = Change(json: try JSON(text: found[2].text ?? "{}").object ?? [:])
        switch winner {
        case .theirs: break
        case .value(let values):
            if values.isEmpty {
                throw FieldpostError(.usage, "A conflict is settled by values of columns; none are given.")
            }
            try write(LocalJSON.captured(values, table), over: try shown(row, table) ?? [:], row, table)
        case .mine where found[3] == "delete":
            try db.connection.run(
                "DELETE FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?",
                .text(row)
            )
        case .mine:
            if let current = try shown(row, table) {
                try write(Merge.changed(current, by: mine), over: current, row, table)
            } else {
                let image = try found[4].text.flatMap { try JSON(text: $0).object }
                try write(image ?? mine.set, over: [:], row, table)
            }
        }
        try db.connection.run("DELETE FROM fieldpost_conflicts WHERE id = ?", .integer(conflict))
    }

    /// Writes values in capture's spelling over a row; what it lacks is the row's, or a default's.
    private func write(_ values: JSONObject, over current: JSONObject, _ row: String, _ table: Table) throws {
        var whole = current.isEmpty ? table.emptyRow(key: row) : current
        for member in values.members {
            guard table.column(member.name) != nil, member.name != table.key || member.value == .string(row)
            else {
                throw FieldpostError(
                    .unknownColumn,
                    "\(table.name) has no column \(member.name).",
                    names: [member.name]
                )
            }
            whole[member.name] = member.value
        }
        do {
            _ = try RowWriter(db: db, table: table).write(LocalJSON.wire(whole, table), key: row)
        } catch let error as ColumnTypeError {
            throw FieldpostError(.type, "\(table.name): \(error.message).", names: values.names)
        }
    }
}

extension Store {
    /// Settles a conflict.
    ///
    /// What is kept is written as an edit of its own, with its operation; the conflict is gone in the same transaction.
    ///
    ///     for conflict in try await store.conflicts() { try await store.settle(conflict.id, keep: .mine) }
    ///
    /// - Parameters:
    ///   - conflict: its number, ``ConflictItem/id``.
    ///   - winner: what is kept.
    /// - Returns: the operations that this made.
    /// - Throws: ``FieldpostError/Code/rowMissing`` for a conflict that is not there, and whatever a write of the values
    ///   throws; nothing is changed then.
    @discardableResult
    public func settle(_ conflict: Int64, keep winner: Winner) async throws -> [OperationID] {
        try await write { transaction in
            try transaction.settle(conflict, keep: winner)
            return try transaction.operations()
        }
    }
}
