package import FieldpostCore
internal import FieldpostSQLite

/// What an answer to a push changes in the file.
///
/// One transaction an answer: an operation leaves the outbox, its outcome is kept and its row takes the server's state
/// together, or not at all. An answer that comes too late, under another owner's lease, changes nothing.
package struct PushOutcome {
    let db: LocalDatabase
    let now: Timestamp
    package private(set) var summary = Summary()

    /// How many operations went which way.
    package struct Summary: Equatable, Sendable {
        package var applied = 0
        package var conflicts = 0
        package var rejected = 0
        package var waiting = 0
        package var held = 0

        package init() {}

        /// Whether the answer moved anything forward.
        package var isProgress: Bool { applied + conflicts + rejected + held > 0 }

        package static func + (left: Summary, right: Summary) -> Summary {
            var sum = left
            sum.applied += right.applied
            sum.conflicts += right.conflicts
            sum.rejected += right.rejected
            sum.waiting += right.waiting
            sum.held += right.held
            return sum
        }
    }

    /// Failures judged by the server after which an operation is a dead letter.
    package static let maxAttempts = 8
    /// Outcomes of applied operations that are kept.
    package static let keptOutcomes: Int64 = 10_000

    init(_ db: LocalDatabase, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Settles the operations of `batch` by the server's results.
    ///
    /// - Throws: ``LeaseLost`` when another owner has taken over.
    package static func apply(
        _ db: LocalDatabase, lease: Lease, batch: PushBatch, results: [OperationResult], now: Timestamp,
        backoff: Backoff = Backoff(), random: inout some RandomNumberGenerator
    ) throws -> Summary {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            let byID = Dictionary(results.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
            var outcome = PushOutcome(db, now: now)
            for group in batch.groups {
                // A group is settled as one; a result that is missing says nothing, so the group stays as it is.
                let results = group.compactMap { byID[$0.id] }
                if results.count == group.count {
                    try outcome.settle(group, results, backoff: backoff, random: &random)
                }
            }
            try lease.wireIsClear(db)
            try outcome.pruneOutcomes()
            return outcome.summary
        }
    }

    /// Makes a batch that the server will never read a dead letter.
    package static func reject(
        _ db: LocalDatabase, lease: Lease, batch: PushBatch, code: String, message: String, now: Timestamp
    ) throws -> Summary {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            var outcome = PushOutcome(db, now: now)
            for group in batch.groups {
                var result = OperationResult(id: group[0].id, status: .rejected)
                (result.code, result.message) = (code, message)
                let mates = group.dropFirst().map { OutboxEntry.mate($0, of: result) }
                try outcome.setAside(group, [result] + mates)
            }
            try lease.wireIsClear(db)
            return outcome.summary
        }
    }

    /// Counts one attempt of a group that made the server fail while it was alone in the request.
    package static func countAttempt(
        _ db: LocalDatabase, lease: Lease, batch: PushBatch, reason: String, now: Timestamp,
        backoff: Backoff = Backoff(), random: inout some RandomNumberGenerator
    ) throws -> Summary {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            var outcome = PushOutcome(db, now: now)
            for group in batch.groups {
                var result = OperationResult(id: group[0].id, status: .retry)
                (result.code, result.message) = ("server_error", reason)
                let mates = group.dropFirst().map { OutboxEntry.mate($0, of: result) }
                try outcome.wait(group, [result] + mates, backoff: backoff, random: &random)
            }
            try lease.wireIsClear(db)
            return outcome.summary
        }
    }

    /// Settles operations whose results came with a page rather than with their own answer.
    ///
    /// A device that lost an answer learns here what was applied. Only what has been sent can be named.
    mutating func settlePulled(_ results: [OperationResult]) throws {
        if results.isEmpty { return }
        let sent = try db.entries(where: "seq <= (SELECT sent_upto FROM fieldpost_lease) AND state < 2")
        let byID = Dictionary(sent.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        for result in results where result.status == .applied {
            if let entry = byID[result.id] { try applied(entry, result) }
        }
    }

    private mutating func settle(
        _ group: [OutboxEntry], _ results: [OperationResult], backoff: Backoff, random: inout some RandomNumberGenerator
    ) throws {
        if results.allSatisfy({ $0.status == .applied }) {
            for (entry, result) in zip(group, results) { try applied(entry, result) }
        } else if results.contains(where: { $0.status == .conflict }) {
            try conflict(group, results)
        } else if results.contains(where: { $0.status == .rejected }) {
            try setAside(group, results)
        } else if let blocked = results.first(where: { $0.status == .blocked }) {
            try hold(group, by: blocked.by ?? blocked.id)
        } else {
            try wait(group, results, backoff: backoff, random: &random)
        }
    }

    // MARK: Applied

    private mutating func applied(_ entry: OutboxEntry, _ result: OperationResult) throws {
        guard try leaveOutbox(entry, result) else { return }
        summary.applied += 1
        guard let table = db.schema.table(entry.table), let version = result.version else { return }
        let state = RowState(db: db, table: table, row: entry.row)
        let known = try state.known()
        let pending = try db.operations(on: entry.row, of: table)
        if let current = known.version, version <= current {
            // A page was faster and brought this or a later state: it is the base already.
            if pending.isEmpty { try state.rebuild() }
        } else if let row = result.row {
            _ = try state.take(row, version: version, pending: pending)
        } else if pending.isEmpty, !table.hasSpellings {
            // The server has what the device shows: nothing to write but what it is called.
            try state.store(version: version, base: nil, isDeleted: entry.action == "delete")
        } else {
            let row = Merge.apply(try entry.operation(table), to: known.base, table: table)
            _ = try state.take(row, version: version, pending: pending)
        }
        try release(by: entry.id)
    }

    /// Moves an entry to the outcomes; `false` when it is not in the outbox any more.
    private func leaveOutbox(_ entry: OutboxEntry, _ result: OperationResult) throws -> Bool {
        let statement = try db.connection.statement(
            """
            INSERT OR REPLACE INTO fieldpost_outcomes
              (seq, id, grp, tbl, row, action, change, base, after, schema, created_at, status, version, result, settled_at)
            SELECT seq, id, grp, tbl, row, action, change, base, after, schema, created_at, ?, ?, ?, ?
            FROM fieldpost_outbox WHERE seq = ? AND id = ?
            """)
        let isPlain = result.status == .applied && result.row == nil
        try statement.bind([
            .text(result.status.rawValue), result.version.map(Value.integer) ?? .null,
            isPlain ? .null : .text(result.json.text), .integer(now.milliseconds), .integer(entry.seq), .text(entry.id.text),
        ])
        try statement.run()
        guard db.connection.changes > 0 else { return false }
        try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
        return true
    }

    private func pruneOutcomes() throws {
        guard summary.applied > 0 else { return }
        try db.connection.run(
            """
            DELETE FROM fieldpost_outcomes WHERE status = 'applied'
            AND seq <= (SELECT max(seq) FROM fieldpost_outcomes) - ?
            """, .integer(Self.keptOutcomes))
    }

    /// Frees what waited for `id`. (`state >= 2` as written lets SQLite use the partial index.)
    private func release(by id: OperationID) throws {
        try db.connection.run(
            "UPDATE fieldpost_outbox SET state = 0, held_by = NULL WHERE state >= 2 AND state = 2 AND held_by = ?", .text(id.text))
    }

    // MARK: Set aside

    /// A conflict takes the server's row; the edit is kept as a conflict. Its mates were not applied either, and are
    /// dead letters until someone decides.
    private mutating func conflict(_ group: [OutboxEntry], _ results: [OperationResult]) throws {
        var mates: [(OutboxEntry, OperationResult)] = []
        for (entry, result) in zip(group, results) {
            guard result.status == .conflict, result.code != "group", let table = db.schema.table(entry.table) else {
                mates.append((entry, result))
                continue
            }
            let later = try db.entries(
                where: "row = ? AND tbl = ? AND seq > ? AND ifnull(grp, seq) <> ?", .text(entry.row), .text(entry.table),
                .integer(entry.seq), .integer(entry.group))
            // Edits made on top of one that lost were made on a row that never was.
            for lost in [entry] + later {
                var own = result
                own.id = lost.id
                guard try leaveOutbox(lost, own) else { continue }
                summary.conflicts += 1
                try db.connection.run(
                    "INSERT INTO fieldpost_conflicts (operation, tbl, row, mine, theirs, at) VALUES (?, ?, ?, ?, ?, ?)",
                    .text(lost.id.text), .text(lost.table), .text(lost.row), .text(lost.change ?? "{}"),
                    result.row.map { .text($0.text) } ?? .null, .integer(now.milliseconds))
            }
            let state = RowState(db: db, table: table, row: entry.row)
            let known = try state.known()
            let pending = try db.operations(on: entry.row, of: table)
            if let version = result.version, version > (known.version ?? 0) {
                _ = try state.take(result.row, version: version, pending: pending)
            } else {
                try state.rebuild()
            }
            try hold(dependantsOf: entry)
        }
        if !mates.isEmpty { try setAside(mates.map(\.0), mates.map(\.1)) }
    }

    /// Makes a group dead letters, and holds what depends on it. The rows keep the user's values.
    private mutating func setAside(_ group: [OutboxEntry], _ results: [OperationResult]) throws {
        for (entry, result) in zip(group, results) {
            let error: JSONObject = [
                "code": .string(result.code ?? "rejected"), "message": .string(result.message ?? ""),
                "fields": .array(result.fields.map(JSON.string)),
            ]
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET state = 3, error = ?, attempts = attempts + 1, last_attempt_at = ?,
                next_attempt_at = NULL, held_by = NULL WHERE seq = ? AND id = ?
                """,
                .text(error.text), .integer(now.milliseconds), .integer(entry.seq), .text(entry.id.text))
            summary.rejected += db.connection.changes
        }
        for entry in group { try hold(dependantsOf: entry) }
    }

    /// Holds every group that depends on `entry`, and what depends on those.
    private mutating func hold(dependantsOf entry: OutboxEntry) throws {
        for dependant in try Dependants(db).of(entry) where dependant.group != entry.group {
            if dependant.state == .pending || dependant.state == .waiting {
                try hold(try db.entries(where: "ifnull(grp, seq) = ?", .integer(dependant.group)), by: entry.id)
            }
        }
    }

    private mutating func hold(_ group: [OutboxEntry], by id: OperationID) throws {
        for entry in group {
            try db.connection.run(
                "UPDATE fieldpost_outbox SET state = 2, held_by = ?, next_attempt_at = NULL WHERE seq = ? AND state < 2",
                .text(id.text), .integer(entry.seq))
            guard db.connection.changes > 0 else { continue }
            summary.held += 1
            try hold(dependantsOf: entry)
        }
    }

    // MARK: Not now

    private mutating func wait(
        _ group: [OutboxEntry], _ results: [OperationResult], backoff: Backoff, random: inout some RandomNumberGenerator
    ) throws {
        let attempts = (group.map(\.attempts).max() ?? 0) + 1
        if attempts >= Self.maxAttempts {
            try setAside(group, results)
            return
        }
        let asked = results.compactMap(\.afterMilliseconds).max()
        let delay = min(asked ?? backoff.delay(failures: attempts, using: &random), backoff.capMilliseconds)
        for entry in group {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET state = 1, attempts = ?, last_attempt_at = ?, next_attempt_at = ?
                WHERE seq = ? AND id = ?
                """,
                .integer(Int64(attempts)), .integer(now.milliseconds), .integer(now.milliseconds + delay),
                .integer(entry.seq), .text(entry.id.text))
            summary.waiting += db.connection.changes
        }
    }
}

extension Table {
    /// Whether one value can be written in several ways (a set in any order, JSON with white space), so that the
    /// device may show another text than the server has.
    fileprivate var hasSpellings: Bool { columns.contains { $0.type == .set || $0.type == .json } }
}

extension PushBatch {
    /// The entries by group, in order.
    var groups: [[OutboxEntry]] {
        var groups: [[OutboxEntry]] = []
        for entry in entries {
            if groups.last?.first?.group == entry.group { groups[groups.count - 1].append(entry) } else { groups.append([entry]) }
        }
        return groups
    }
}

extension OutboxEntry {
    /// The result of a mate of a group whose first operation got `result`.
    static func mate(_ entry: OutboxEntry, of result: OperationResult) -> OperationResult {
        var own = OperationResult(id: entry.id, status: result.status)
        own.code = "group"
        own.message = "another operation of the same transaction was not applied"
        own.by = result.id
        return own
    }
}
