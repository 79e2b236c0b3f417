package import FieldpostCore
internal import FieldpostSQLite

/// What an answer to a push changes in the file.
///
/// One transaction an answer: an operation leaves the outbox, its outcome is kept and its row takes the server's state
/// together, or not at all. An answer that comes too late, under another owner's lease, changes nothing.
package struct PushOutcome {
    let db: LocalDatabase
    let now: Timestamp
    package internal(set) var summary = Summary()
    /// The operations that have left the outbox by this answer or page.
    private var settled: Set<OperationID> = []
    /// Decisions about operations that were applied after all.
    private var overtaken: [(entry: OutboxEntry, values: JSONObject)] = []

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
        _ db: LocalDatabase,
        lease: Lease,
        batch: PushBatch,
        results: [OperationResult],
        now: Timestamp,
        backoff: Backoff = Backoff(),
        random: inout some RandomNumberGenerator
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
            try outcome.finish(lease: lease, random: &random)
            return outcome.summary
        }
    }

    /// Makes a batch that the server will never read a dead letter.
    package static func reject(
        _ db: LocalDatabase,
        lease: Lease,
        batch: PushBatch,
        code: String,
        message: String,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws -> Summary {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            var outcome = PushOutcome(db, now: now)
            for group in batch.groups {
                var result = OperationResult(id: group[0].id, status: .rejected)
                (result.code, result.message) = (code, message)
                let mates = group.dropFirst().map { OutboxEntry.mate($0, of: result) }
                try outcome.setAside(group, [result] + mates, isFinal: false)
            }
            try outcome.finish(lease: lease, random: &random)
            return outcome.summary
        }
    }

    /// Counts one attempt of a group that made the server fail while it was alone in the request.
    package static func countAttempt(
        _ db: LocalDatabase,
        lease: Lease,
        batch: PushBatch,
        reason: String,
        now: Timestamp,
        backoff: Backoff = Backoff(),
        random: inout some RandomNumberGenerator
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
            try outcome.finish(lease: lease, random: &random)
            return outcome.summary
        }
    }

    /// Takes in the server's word on operations in doubt: those it did not know are voided, and settled as refused.
    ///
    /// - Throws: ``LeaseLost`` when another owner has taken over.
    package static func voided(
        _ db: LocalDatabase,
        lease: Lease,
        results: [OperationResult],
        now: Timestamp,
        backoff: Backoff = Backoff(),
        random: inout some RandomNumberGenerator
    ) throws -> Summary {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            let byID = Dictionary(results.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
            var outcome = PushOutcome(db, now: now)
            var seen: Set<Int64> = []
            for entry in try InDoubt(db).toVoid(limit: .max) where byID[entry.id] != nil {
                guard seen.insert(entry.group).inserted else { continue }
                let group = try db.group(of: entry)
                let results = group.compactMap { byID[$0.id] }
                if results.count == group.count {
                    try outcome.settleVoided(group, results, backoff: backoff, random: &random)
                }
            }
            try outcome.finish(lease: lease, random: &random)
            return outcome.summary
        }
    }

    private mutating func settleVoided(
        _ group: [OutboxEntry],
        _ results: [OperationResult],
        backoff: Backoff,
        random: inout some RandomNumberGenerator
    ) throws {
        for entry in group where entry.state == .failed {
            // Its reason stays, unless the server has a better one.
            let isKept = results.contains { $0.id == entry.id && $0.code == "voided" }
            try db.connection.run(
                isKept
                    ? "UPDATE fieldpost_outbox SET error = json_remove(error, '$.unsettled') WHERE seq = ?"
                    : "UPDATE fieldpost_outbox SET state = 0, error = NULL WHERE seq = ?",
                .integer(entry.seq)
            )
        }
        try settle(group, results, backoff: backoff, random: &random)
    }

    /// Settles operations whose results came with a page rather than with their own answer.
    ///
    /// A device that lost an answer learns here what was applied. Only what has been sent can be named. The rows
    /// themselves come with the page: a result here says nothing of what else changed in them.
    mutating func settlePulled(_ results: [OperationResult]) throws {
        if results.isEmpty { return }
        for (entry, result) in try sent(results.filter { $0.status == .applied }) {
            guard try leaveOutbox(entry, result) else { continue }
            summary.applied += 1
            if let table = db.schema.table(entry.table) { try advanceBase(by: entry, table) }
            try release(by: entry.id)
        }
    }

    /// The operations that results are about, where they are here and may have been sent.
    private func sent(_ results: [OperationResult]) throws -> [(OutboxEntry, OperationResult)] {
        let sentUpTo = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
        var ready: [OperationID: Int64] = [:]
        // Few beside those whose answer was lost.
        try db.connection.forEach(
            "SELECT id, seq FROM fieldpost_outbox WHERE state = 0 AND seq <= ?",
            [.integer(sentUpTo)]
        ) { ready[OperationID(stored: $0.text(0))] = $0.integer(1) }
        return try results.compactMap { result in
            let entry =
                if let place = ready[result.id] {
                    try db.entries(where: "seq = ?", .integer(place)).first
                } else {
                    try db.stopped(result.id)
                }
            return entry.flatMap { $0.seq <= sentUpTo ? ($0, result) : nil }
        }
    }

    /// Whether an operation that the server names is here: set aside, or sent and not settled.
    private func isHere(_ id: OperationID) throws -> Bool {
        if try db.stopped(id) != nil { return true }
        return try !db.entries(
            where: "state = 0 AND seq <= (SELECT sent_upto FROM fieldpost_lease) AND id = ?",
            .text(id.text)
        ).isEmpty
    }

    /// Moves the base over an operation that is applied, until the page brings the row as it is now.
    private func advanceBase(by entry: OutboxEntry, _ table: Table) throws {
        let state = RowState(db: db, table: table, row: entry.row)
        let known = try state.known()
        let isPending = try !db.operations(on: entry.row, of: table).isEmpty
        guard isPending || known.version != nil else { return }
        let row = Merge.apply(try entry.operation(table).upcast(to: db.schema), to: known.base, table: table)
        try state.store(
            version: known.version ?? 0,
            base: isPending ? row : nil,
            isDeleted: entry.action == "delete" ? true : known.isDeleted && entry.action != "create"
        )
    }

    mutating func settle(
        _ group: [OutboxEntry],
        _ results: [OperationResult],
        backoff: Backoff,
        random: inout some RandomNumberGenerator
    ) throws {
        if results.allSatisfy({ $0.status == .applied }) {
            // What builds on an operation without an answer says nothing of the row before that one is settled.
            if try group.contains(where: { try isOutOfTurn($0) }) { return }
            for (entry, result) in zip(group, results) { try applied(entry, result) }
        } else if results.contains(where: { $0.status == .conflict }) {
            try conflict(group, results)
        } else if results.contains(where: { $0.status == .rejected }) {
            try setAside(group, results)
        } else if let blocker = results.first(where: { $0.status == .blocked && $0.code != "group" })?.by {
            try settle(group, results, blockedBy: blocker, backoff: backoff, random: &random)
        } else {
            try wait(group, results, backoff: backoff, random: &random)
        }
    }

    private mutating func settle(
        _ group: [OutboxEntry],
        _ results: [OperationResult],
        blockedBy blocker: OperationID,
        backoff: Backoff,
        random: inout some RandomNumberGenerator
    ) throws {
        // What stood in the way was settled by the same answer; the group is free already.
        if settled.contains(blocker) { return }
        if !group.contains(where: { $0.id == blocker }), try isHere(blocker) {
            try hold(group, by: blocker)
        } else {
            // Also what is blocked by something that is not here: nothing would ever free it.
            try wait(group, results, backoff: backoff, random: &random)
        }
    }

    // MARK: Applied

    private mutating func applied(_ entry: OutboxEntry, _ result: OperationResult) throws {
        guard try leaveOutbox(entry, result) else { return }
        summary.applied += 1
        if let table = db.schema.table(entry.table) { try settleRow(of: entry, table, result) }
        try release(by: entry.id)
    }

    /// Whether an earlier operation of another group on the same row is unsettled.
    private func isOutOfTurn(_ entry: OutboxEntry) throws -> Bool {
        try db.connection.scalar(
            "SELECT 1 FROM fieldpost_outbox WHERE row = ? AND tbl = ? AND seq < ? AND ifnull(grp, seq) <> ? LIMIT 1",
            .text(entry.row),
            .text(entry.table),
            .integer(entry.seq),
            .integer(entry.group)
        ) != nil
    }

    private func settleRow(of entry: OutboxEntry, _ table: Table, _ result: OperationResult) throws {
        let state = RowState(db: db, table: table, row: entry.row)
        let known = try state.known()
        let pending = try db.operations(on: entry.row, of: table)
        guard let version = result.version else {
            // The server had no such row to delete: there is nothing that a version could name.
            if entry.action == "delete" {
                _ = try state.take(nil, version: known.version ?? 0, pending: pending)
            }
            return
        }
        if let current = known.version, version <= current {
            // A page was faster and brought this or a later state: it is the base already.
            if pending.isEmpty { try state.rebuild() }
        } else if let row = result.row {
            _ = try state.takeOrPark(row, version: version, pending: pending)
        } else if pending.isEmpty, !table.hasSpellings {
            // The server has what the device shows: nothing to write but what it is called.
            try state.store(version: version, base: nil, isDeleted: entry.action == "delete")
        } else {
            let row = Merge.apply(
                try entry.operation(table).upcast(to: db.schema),
                to: known.base,
                table: table
            )
            _ = try state.takeOrPark(row, version: version, pending: pending)
        }
    }

    /// Moves an entry to the outcomes; `false` when it is not in the outbox any more.
    mutating func leaveOutbox(_ entry: OutboxEntry, _ result: OperationResult) throws -> Bool {
        let isPlain = result.status == .applied && result.row == nil
        let isKept = try OutcomeJournal(db).keep(
            entry,
            as: result.status.rawValue,
            version: result.version,
            result: isPlain ? nil : result.json.text,
            at: now
        )
        guard isKept else { return false }
        if case .edit(let values)? = try Decisions(db, now: now).all()[entry.seq] {
            overtaken.append((entry, values))
        }
        try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
        try db.connection.run("DELETE FROM fieldpost_released WHERE seq = ?", .integer(entry.seq))
        settled.insert(entry.id)
        return true
    }

    /// What follows every answer: decisions that waited for it are carried out, and old outcomes go.
    mutating func finish(lease: Lease, random: inout some RandomNumberGenerator) throws {
        try decide(random: &random)
        if summary.applied > 0 { try OutcomeJournal(db).prune() }
        try lease.wireIsClear(db)
    }

    /// Carries out the decisions that the answer has made possible.
    mutating func decide(random: inout some RandomNumberGenerator) throws {
        let decisions = Decisions(db, now: now)
        for (entry, values) in overtaken { try decisions.editAgain(entry, values) }
        try decisions.fulfil(random: &random)
        overtaken = []
    }

    /// Frees what waited for `id`, and what waited for that.
    private func release(by id: OperationID) throws { try Dependants(db).release(heldBy: [id]) }
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
            if groups.last?.first?.group == entry.group {
                groups[groups.count - 1].append(entry)
            } else {
                groups.append([entry])
            }
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
