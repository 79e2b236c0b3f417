package import FieldpostCore
internal import FieldpostSQLite

/// What a person does with operations that were set aside.
///
/// Each action works on the whole group.
package struct Repair {
    let db: LocalDatabase

    package init(_ db: LocalDatabase) { self.db = db }

    /// The entry with this id.
    package func entry(_ id: OperationID) throws -> OutboxEntry {
        guard let entry = try db.entries(where: "id = ?", .text(id.text)).first else {
            throw FieldpostError(.operationMissing, "There is no unsettled operation with this id.")
        }
        return entry
    }

    /// Sends a group again.
    ///
    /// One that the server refused gets new ids and new places on the wire, since the old ids are settled as refused;
    /// what depends on it is told the new ids. One that was never answered keeps its ids.
    /// - Returns: the ids of the group's operations from now on.
    package func retry(_ id: OperationID, now: Timestamp, random: inout some RandomNumberGenerator) throws
        -> [OperationID]
    {
        try db.applying { try sendAgain(try entry(id), now: now, random: &random) }
    }

    /// What ``retry(_:now:random:)`` does, inside the caller's transaction.
    func sendAgain(_ entry: OutboxEntry, now: Timestamp, random: inout some RandomNumberGenerator) throws
        -> [OperationID]
    {
        let group = try db.entries(where: "ifnull(grp, seq) = ?", .integer(entry.group))
        // One that is held by something that is gone would wait for ever.
        if entry.state == .held, let holder = entry.heldBy,
            try !db.entries(where: "id = ?", .text(holder.text)).isEmpty
        {
            throw FieldpostError(
                .wrongState,
                "The operation waits for another one; retry or discard that one.",
                names: [holder.text]
            )
        }
        var ids: [OperationID] = []
        for entry in group {
            ids.append(entry.isRefused ? try renew(entry, now: now, random: &random) : entry.id)
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET state = 0, attempts = 0, next_attempt_at = NULL, held_by = NULL, error = NULL
                WHERE seq = ?
                """,
                .integer(entry.seq)
            )
        }
        try Dependants(db).release(heldBy: group.map(\.id) + ids)
        return ids
    }

    /// Gives an entry a new id and a new place on the wire, in its old place here.
    private func renew(_ entry: OutboxEntry, now: Timestamp, random: inout some RandomNumberGenerator) throws
        -> OperationID
    {
        let new = OperationID(stored: UUIDText.version7(at: now, using: &random))
        // The places on the wire come from the one counter that never goes back.
        try db.connection.run("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'fieldpost_outbox'")
        try db.connection.run(
            """
            UPDATE fieldpost_outbox SET id = ?,
              wire_seq = (SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox') WHERE seq = ?
            """,
            .text(new.text),
            .integer(entry.seq)
        )
        for dependant in try Dependants(db).of(entry) {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET after = replace(after, ?1, ?2), base = CASE WHEN base = ?1 THEN ?2 ELSE base END,
                  held_by = CASE WHEN held_by = ?1 THEN ?2 ELSE held_by END WHERE seq = ?3
                """,
                .text(entry.id.text),
                .text(new.text),
                .integer(dependant.seq)
            )
        }
        return new
    }

    /// Gives a group up and takes its changes back from the rows.
    ///
    /// - Parameter dependants: whether what depends on it goes too.
    /// - Throws: ``FieldpostError/Code/hasDependants`` naming what depends on it;
    ///   ``FieldpostError/Code/wrongState`` while the server may have it.
    package func discard(_ id: OperationID, dependants: Bool = false, now: Timestamp) throws -> [OperationID]
    {
        try db.applying {
            let first = try entry(id).group
            let entries = try closure(of: first, naming: !dependants)
            let sent = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
            if entries.contains(where: { $0.seq <= sent && $0.state != .failed && $0.state != .held }) {
                throw FieldpostError(
                    .wrongState,
                    "The operation was sent and the answer is outstanding; sync first, then decide."
                )
            }
            for entry in entries { try remove(entry, now: now) }
            for entry in entries {
                if let table = db.schema.table(entry.table) {
                    try RowState(db: db, table: table, row: entry.row).rebuild()
                }
            }
            return entries.map(\.id)
        }
    }

    /// The entries of a group and of all that depends on it, oldest first.
    ///
    /// - Parameter naming: whether to throw instead when something depends on it.
    private func closure(of group: Int64, naming: Bool) throws -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        var seen: Set<Int64> = [group]
        var waiting = [group]
        while let group = waiting.popLast() {
            let members = try db.entries(where: "ifnull(grp, seq) = ?", .integer(group))
            entries += members
            let others = try members.flatMap { try Dependants(db).of($0) }.filter { $0.group != group }
            if naming, !others.isEmpty {
                throw FieldpostError(
                    .hasDependants,
                    "Other operations depend on this one; discard them first.",
                    names: others.map(\.id.text)
                )
            }
            waiting += others.map(\.group).filter { seen.insert($0).inserted }
        }
        return entries.sorted { $0.seq < $1.seq }
    }

    private func remove(_ entry: OutboxEntry, now: Timestamp) throws {
        try db.connection.run(
            """
            INSERT OR REPLACE INTO fieldpost_outcomes
              (seq, id, grp, tbl, row, action, change, base, after, schema, created_at, status, result, settled_at)
            SELECT seq, id, grp, tbl, row, action, change, base, after, schema, created_at, 'discarded', error, ?
            FROM fieldpost_outbox WHERE seq = ?
            """,
            .integer(now.milliseconds),
            .integer(entry.seq)
        )
        try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
    }
}
