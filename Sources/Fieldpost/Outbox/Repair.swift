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
        guard let entry = try db.entry(id) else {
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
        let group = try db.group(of: entry)
        // One that is held by something that is gone would wait for ever.
        if entry.state == .held, let holder = entry.heldBy, try db.entry(holder) != nil {
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
                UPDATE fieldpost_outbox SET state = 0, attempts = 0, next_attempt_at = NULL, held_by = NULL, error = NULL,
                  decision = NULL WHERE seq = ?
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
    /// What the server may have is given up as soon as a run has had its word: nothing must arrive later.
    /// - Parameters:
    ///   - id: an operation of the group.
    ///   - dependants: whether what depends on it goes too.
    ///   - now: the time.
    /// - Returns: the ids of all operations given up.
    /// - Throws: ``FieldpostError/Code/hasDependants`` naming what depends on it.
    package func discard(_ id: OperationID, dependants: Bool = false, now: Timestamp) throws -> [OperationID]
    {
        try db.applying {
            let entry = try entry(id)
            let entries = try closure(of: entry, naming: !dependants)
            guard try entries.contains(where: InDoubt(db).contains) else {
                try takeBack(entry, now: now)
                return entries.map(\.id)
            }
            var seen: Set<Int64> = []
            for entry in entries where seen.insert(entry.group).inserted {
                try Decisions(db, now: now).keep(.discard, for: entry)
            }
            return entries.map(\.id)
        }
    }

    /// Takes a group and all that depends on it out of the outbox and out of the rows.
    func takeBack(_ entry: OutboxEntry, now: Timestamp) throws {
        let entries = try closure(of: entry, naming: false)
        for entry in entries {
            try OutcomeJournal(db).keep(entry, as: "discarded", at: now)
            try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
            try db.connection.run("DELETE FROM fieldpost_released WHERE seq = ?", .integer(entry.seq))
        }
        for entry in entries {
            if let table = db.schema.table(entry.table) {
                try RowState(db: db, table: table, row: entry.row).rebuild()
            }
        }
    }

    /// The entries of a group and of all that depends on it, oldest first.
    ///
    /// - Parameter naming: whether to throw instead when something depends on it.
    func closure(of entry: OutboxEntry, naming: Bool) throws -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        var seen: Set<Int64> = [entry.group]
        var waiting = [entry]
        while let next = waiting.popLast() {
            let members = try db.group(of: next)
            entries += members
            let others = try members.flatMap { try Dependants(db).of($0) }.filter { $0.group != next.group }
            if naming, !others.isEmpty {
                throw FieldpostError(
                    .hasDependants,
                    "Other operations depend on this one; discard them first.",
                    names: others.map(\.id.text)
                )
            }
            waiting += others.filter { seen.insert($0.group).inserted }
        }
        return entries.sorted { $0.seq < $1.seq }
    }
}
