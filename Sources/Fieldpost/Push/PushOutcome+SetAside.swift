internal import FieldpostCore
internal import FieldpostSQLite

/// What becomes of operations that were not applied.
extension PushOutcome {
    /// The longest that a result may make an operation wait, in milliseconds: a day.
    private static let longestAskedDelay: Int64 = 86_400_000

    /// A conflict takes the server's row; the edit is kept as a conflict.
    ///
    /// Its mates were not applied either, and are dead letters until someone decides. Where updates win against deletes,
    /// the row is created again instead.
    mutating func conflict(_ group: [OutboxEntry], _ results: [OperationResult]) throws {
        var mates: [(OutboxEntry, OperationResult)] = []
        var lost: Set<OperationID> = []
        for (entry, result) in zip(group, results) where !lost.contains(entry.id) {
            guard result.status == .conflict, result.code != "group", let table = db.schema.table(entry.table)
            else {
                mates.append((entry, result))
                continue
            }
            // Edits made on top of one that lost were made on a row that never was.
            let later = try db.entries(
                where: "row = ? AND tbl = ? AND seq > ?",
                .text(entry.row),
                .text(entry.table),
                .integer(entry.seq)
            )
            let state = RowState(db: db, table: table, row: entry.row)
            let again = try rowToMakeAgain(entry, later, result, state)
            for entry in [entry] + later {
                if again != nil { _ = try leaveOutbox(entry, result) } else { try lose(entry, result) }
                lost.insert(entry.id)
            }
            try takeServerRow(result, state)
            if let again { try makeAgain(again, state) }
            for entry in [entry] + later { try Dependants(db).forget(entry) }
            try setAsideMates(of: later.filter { $0.group != entry.group })
        }
        mates.removeAll { lost.contains($0.0.id) }
        if !mates.isEmpty { try setAside(mates.map(\.0), mates.map(\.1)) }
    }

    /// The row as the user has it, where it is to win against the server's delete.
    private func rowToMakeAgain(
        _ entry: OutboxEntry,
        _ later: [OutboxEntry],
        _ result: OperationResult,
        _ state: RowState
    ) throws -> JSONObject? {
        let isEdit = entry.action == "update" && !later.contains { $0.action == "delete" }
        guard state.table.onRemoteDelete == .updateWins, isEdit, result.deleted else { return nil }
        return try Conflicts(db).shown(entry.row, state.table)
    }

    /// Creates the row anew, with an operation like any other's.
    private func makeAgain(_ row: JSONObject, _ state: RowState) throws {
        try db.capturing(at: now) {
            _ = try RowWriter(db: db, table: state.table).write(
                LocalJSON.wire(row, state.table),
                key: state.row
            )
        }
    }

    private mutating func lose(_ entry: OutboxEntry, _ result: OperationResult) throws {
        var own = result
        own.id = entry.id
        guard try leaveOutbox(entry, own) else { return }
        summary.conflicts += 1
        let lost = LostEdit(
            operation: entry.id,
            action: entry.action,
            change: entry.change ?? "{}",
            theirs: result.row?.text
        )
        try Conflicts(db).add(lost, table: entry.table, row: entry.row, now: now)
    }

    private func takeServerRow(_ result: OperationResult, _ state: RowState) throws {
        let known = try state.known()
        if let version = result.version, version > (known.version ?? 0) {
            let pending = try db.operations(on: state.row, of: state.table)
            _ = try state.takeOrPark(result.row, version: version, pending: pending)
        } else {
            try state.rebuild()
        }
    }

    /// What is left of groups that lost an operation would be half a transaction, and is never sent by itself.
    private mutating func setAsideMates(of lost: [OutboxEntry]) throws {
        for entry in lost {
            let mates = try db.group(of: entry).filter { $0.state != .failed }
            if mates.isEmpty { continue }
            let cause = OperationResult(id: entry.id, status: .conflict)
            try setAside(mates, mates.map { OutboxEntry.mate($0, of: cause) })
        }
    }

    /// Makes a group dead letters, and holds what depends on it.
    ///
    /// The rows keep the user's values.
    ///
    /// - Parameter isFinal: whether the server has settled them as refused. What it has not keeps its ids at a retry:
    ///   an earlier send may have been applied.
    mutating func setAside(_ group: [OutboxEntry], _ results: [OperationResult], isFinal: Bool = true) throws
    {
        for (entry, result) in zip(group, results) {
            var error: JSONObject = [
                "code": .string(result.code ?? result.status.rawValue),
                "message": .string(result.message ?? ""),
                "fields": .array(result.fields.map(JSON.string)),
            ]
            if !isFinal { error.append("unsettled", true) }
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET state = 3, error = ?1, attempts = attempts + 1, last_attempt_at = ?2,
                next_attempt_at = NULL, held_by = NULL, history = \(Attempt.appended("?5"))
                WHERE seq = ?3 AND id = ?4 AND state < 3
                """,
                .text(error.text),
                .integer(now.milliseconds),
                .integer(entry.seq),
                .text(entry.id.text),
                .text(attempt(result))
            )
            summary.rejected += db.connection.changes
        }
        for entry in group { try hold(dependantsOf: entry) }
    }

    /// Holds every group that depends on `entry`, and what depends on those.
    private mutating func hold(dependantsOf entry: OutboxEntry) throws {
        for dependant in try Dependants(db).of(entry) where dependant.group != entry.group {
            if dependant.state == .pending || dependant.state == .waiting {
                try hold(try db.group(of: dependant), by: entry.id)
            }
        }
    }

    mutating func hold(_ group: [OutboxEntry], by id: OperationID) throws {
        for entry in group {
            try db.connection.run(
                "UPDATE fieldpost_outbox SET state = 2, held_by = ?, next_attempt_at = NULL WHERE seq = ? AND state < 2",
                .text(id.text),
                .integer(entry.seq)
            )
            guard db.connection.changes > 0 else { continue }
            summary.held += 1
            try hold(dependantsOf: entry)
        }
    }

    /// The result as a line of an operation's history.
    private func attempt(_ result: OperationResult) -> String {
        let (code, message) = (result.code ?? result.status.rawValue, result.message ?? "")
        return Attempt(at: now, code: code, message: message).json.text
    }

    // MARK: Not now

    /// Makes a group wait, unless the same answer has set it aside by now.
    mutating func wait(
        _ group: [OutboxEntry],
        _ results: [OperationResult],
        backoff: Backoff,
        random: inout some RandomNumberGenerator
    ) throws {
        let attempts = (group.map(\.attempts).max() ?? 0) + 1
        if attempts >= Self.maxAttempts {
            try setAside(group, results, isFinal: false)
            return
        }
        // At least as long as the backoff says: a server that says “at once” eight times must not use up all attempts.
        let asked = min(results.compactMap(\.afterMilliseconds).max() ?? 0, Self.longestAskedDelay)
        let delay = max(asked, backoff.delay(failures: attempts, using: &random))
        for (entry, result) in zip(group, results) {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET state = 1, attempts = ?1, last_attempt_at = ?2, next_attempt_at = ?3,
                history = \(Attempt.appended("?6")) WHERE seq = ?4 AND id = ?5 AND state < 2
                """,
                .integer(Int64(attempts)),
                .integer(now.milliseconds),
                .integer(now.milliseconds + delay),
                .integer(entry.seq),
                .text(entry.id.text),
                .text(attempt(result))
            )
            summary.waiting += db.connection.changes
        }
    }
}
