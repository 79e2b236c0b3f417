package import FieldpostCore
internal import FieldpostSQLite

/// What a person does with operations that were set aside. Each action works on the whole group.
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
    package func retry(_ id: OperationID, now: Timestamp, random: inout some RandomNumberGenerator) throws -> [OperationID] {
        try db.applying {
            let entry = try entry(id)
            let group = try db.entries(where: "ifnull(grp, seq) = ?", .integer(entry.group))
            if entry.state == .held {
                throw FieldpostError(
                    .wrongState, "The operation waits for another one; retry or discard that one.",
                    names: entry.heldBy.map { [$0.text] } ?? [])
            }
            var ids: [OperationID] = []
            for entry in group {
                let isRefused = entry.state == .failed
                ids.append(isRefused ? try renew(entry, now: now, random: &random) : entry.id)
                try db.connection.run(
                    """
                    UPDATE fieldpost_outbox SET state = 0, attempts = 0, next_attempt_at = NULL, held_by = NULL, error = NULL
                    WHERE seq = ?
                    """, .integer(entry.seq))
            }
            try releaseHeld(by: group.map(\.id) + ids)
            return ids
        }
    }

    /// Gives an entry a new id and a new place on the wire, in its old place here.
    private func renew(_ entry: OutboxEntry, now: Timestamp, random: inout some RandomNumberGenerator) throws -> OperationID {
        let new = OperationID(stored: UUIDText.version7(at: now, using: &random))
        // The places on the wire come from the one counter that never goes back.
        try db.connection.run("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'fieldpost_outbox'")
        try db.connection.run(
            """
            UPDATE fieldpost_outbox SET id = ?,
              wire_seq = (SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox') WHERE seq = ?
            """, .text(new.text), .integer(entry.seq))
        for dependant in try Dependants(db).of(entry) {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET after = replace(after, ?1, ?2), base = CASE WHEN base = ?1 THEN ?2 ELSE base END,
                  held_by = CASE WHEN held_by = ?1 THEN ?2 ELSE held_by END WHERE seq = ?3
                """, .text(entry.id.text), .text(new.text), .integer(dependant.seq))
        }
        return new
    }

    private func releaseHeld(by ids: [OperationID]) throws {
        var freed = ids
        while let id = freed.popLast() {
            let held = try db.entries(where: "state >= 2 AND state = 2 AND held_by = ?", .text(id.text))
            for entry in held {
                try db.connection.run(
                    "UPDATE fieldpost_outbox SET state = 0, held_by = NULL WHERE seq = ?", .integer(entry.seq))
                freed.append(entry.id)
            }
        }
    }

    /// Gives a group up and takes its changes back from the rows.
    ///
    /// - Throws: ``FieldpostError/Code/hasDependants`` naming what depends on it;
    ///   ``FieldpostError/Code/wrongState`` while the server may have it.
    package func discard(_ id: OperationID, now: Timestamp) throws -> [OperationID] {
        try db.applying {
            let entry = try entry(id)
            let group = try db.entries(where: "ifnull(grp, seq) = ?", .integer(entry.group))
            let sent = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
            if group.contains(where: { $0.seq <= sent && $0.state != .failed && $0.state != .held }) {
                throw FieldpostError(
                    .wrongState, "The operation was sent and the answer is outstanding; sync first, then decide.")
            }
            let dependants = try group.flatMap { try Dependants(db).of($0) }.filter { $0.group != entry.group }
            if !dependants.isEmpty {
                throw FieldpostError(
                    .hasDependants, "Other operations depend on this one; discard them first.",
                    names: dependants.map(\.id.text))
            }
            for entry in group { try remove(entry, now: now) }
            for entry in group {
                if let table = db.schema.table(entry.table) {
                    try RowState(db: db, table: table, row: entry.row).rebuild()
                }
            }
            return group.map(\.id)
        }
    }

    private func remove(_ entry: OutboxEntry, now: Timestamp) throws {
        try db.connection.run(
            """
            INSERT OR REPLACE INTO fieldpost_outcomes
              (seq, id, grp, tbl, row, action, change, base, after, schema, created_at, status, result, settled_at)
            SELECT seq, id, grp, tbl, row, action, change, base, after, schema, created_at, 'discarded', error, ?
            FROM fieldpost_outbox WHERE seq = ?
            """, .integer(now.milliseconds), .integer(entry.seq))
        try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
    }
}
