internal import FieldpostCore
internal import FieldpostSQLite

/// Finds what depends on an operation.
struct Dependants {
    let db: LocalDatabase

    init(_ db: LocalDatabase) { self.db = db }

    /// The unsettled operations that depend on `entry` directly: later ones on its row, and those that name it.
    ///
    /// Only where an operation can be named by operations on other rows are they searched, from its place on.
    func of(_ entry: OutboxEntry) throws -> [OutboxEntry] {
        var found = try db.entries(
            where: "row = ? AND tbl = ? AND seq > ?",
            .text(entry.row),
            .text(entry.table),
            .integer(entry.seq)
        )
        if isNamed(entry) {
            let known = Set(found.map(\.seq))
            let named = try db.entries(
                where: "seq > ? AND after IS NOT NULL AND instr(after, ?) > 0",
                .integer(entry.seq),
                .text(entry.id.text)
            )
            found += named.filter { !known.contains($0.seq) }
        }
        return found.sorted { $0.seq < $1.seq }
    }

    /// Whether operations on other rows may name `entry`: the create of a row that others refer to, and whatever ended a
    /// reference, which the delete of the row referred to waits for; where operations are coalesced, each may hold both.
    private func isNamed(_ entry: OutboxEntry) -> Bool {
        let isReferenced = db.schema.tables.contains {
            $0.columns.contains { $0.reference?.table == entry.table }
        }
        let refers = db.schema.table(entry.table)?.columns.contains { $0.reference != nil } ?? false
        if db.coalescingTables.contains(entry.table) { return isReferenced || refers }
        return entry.action == "create" ? isReferenced : refers
    }

    /// Makes what is held by `ids` ready again, and what is held by that.
    ///
    /// A plan holds again what waits for another one.
    func release(heldBy ids: [OperationID]) throws {
        var freed = ids
        while let id = freed.popLast() {
            let held = try db.entries(where: "state = 2 AND held_by = ?", .text(id.text))
            for entry in held {
                try db.connection.run(
                    "UPDATE fieldpost_outbox SET state = 0, held_by = NULL WHERE seq = ?",
                    .integer(entry.seq)
                )
                freed.append(entry.id)
            }
        }
    }

    /// Lets what named `entry` go on without it: it will never be applied, and the row it was about is the server's.
    func forget(_ entry: OutboxEntry) throws {
        if isNamed(entry) {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET after = (SELECT nullif(json_group_array(value), '[]')
                  FROM json_each(fieldpost_outbox.after) WHERE value <> ?1)
                WHERE seq > ?2 AND after IS NOT NULL AND instr(after, ?1) > 0
                """,
                .text(entry.id.text),
                .integer(entry.seq)
            )
        }
        try release(heldBy: [entry.id])
    }
}
