internal import FieldpostCore
internal import FieldpostSQLite

/// Makes one of an operation and the one before it on the same row, where neither was ever sent and the table allows it.
///
/// What was sent stays as it is: its bytes are fixed until the answer is here, and a newer edit waits behind it. A
/// transaction stays whole: the groups of both operations become one, with what came between and depends on the first.
/// Where that would make a group too large, the two stay two.
struct Coalescing {
    let db: LocalDatabase
    private let sentUpTo: Int64

    /// Operations that a group may come to hold: what is refused in one takes all of them along.
    static let largestGroup = 20

    init(_ db: LocalDatabase) throws {
        self.db = db
        sentUpTo = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
    }

    /// Looks at every operation that was recorded since the last time, inside the caller's transaction.
    ///
    /// - Returns: the places of operations from before that took in a newer one.
    func run() throws -> Set<Int64> {
        var place = try db.connection.scalar("SELECT coalesced_upto FROM fieldpost_session") ?? 0
        let names = Value.text(JSON.array(db.coalescingTables.sorted().map { .string($0) }).text())
        var touched: Set<Int64> = []
        // What moves on the way is not new: its id was told to someone, who may wait for it.
        let new = Set(try db.entries(where: "seq > ?", place).map(\.id))
        // One after the other, since operations get new places on the way.
        while let later = try db.entries(
            where: """
                seq = (SELECT min(seq) FROM fieldpost_outbox WHERE seq > ?
                AND tbl IN (SELECT value FROM json_each(?)))
                """,
            place,
            names
        ).first {
            place = .integer(later.seq)
            if new.contains(later.id), let earlier = try predecessor(of: later),
                let seq = try coalesce(earlier, later)
            {
                touched.insert(seq)
            }
        }
        try db.connection.run(
            """
            UPDATE fieldpost_session SET coalesced_upto =
              ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox'), 0)
            """
        )
        return touched
    }

    private func predecessor(of entry: OutboxEntry) throws -> OutboxEntry? {
        try db.entries(
            where:
                "seq = (SELECT max(p.seq) FROM fieldpost_outbox AS p WHERE p.row = ? AND p.tbl = ? AND p.seq < ?)",
            .text(entry.row),
            .text(entry.table),
            .integer(entry.seq)
        ).first
    }

    private func isFree(_ entry: OutboxEntry) -> Bool {
        entry.seq > sentUpTo && entry.state == .pending && entry.attempts == 0
    }

    /// - Returns: the place of the one operation; `nil` where there is none, or still two.
    private func coalesce(_ earlier: OutboxEntry, _ later: OutboxEntry) throws -> Int64? {
        guard isFree(earlier), isFree(later), earlier.schema == later.schema,
            later.schema == db.schema.version,
            let table = db.schema.table(later.table), table.outbox == .state || later.action != "create"
        else { return nil }
        if try takesUnique(earlier, later, table) { return nil }
        let result = Merge.coalesce(
            (earlier.wireAction, try earlier.recordedChange()),
            (later.wireAction, try later.recordedChange()),
            base: later.wireAction == .create ? try row(before: earlier, table) : nil,
            table: table
        )
        let pair = Pair(db: db, earlier: earlier, later: later, sentUpTo: sentUpTo)
        switch result {
        case .apart: return nil
        case .nothing:
            try pair.removeBoth()
            return nil
        case .one(let action, let change):
            return try pair.join(action, change, renewsPlace: table.outbox == .state)
        }
    }
}

extension Coalescing {
    /// Whether one of the two sets a value that must be unique: another row's operation between them may free it first.
    private func takesUnique(_ earlier: OutboxEntry, _ later: OutboxEntry, _ table: Table) throws -> Bool {
        let columns = Set(table.unique.joined())
        if columns.isEmpty { return false }
        return try [earlier, later].contains { entry in
            guard entry.action != "delete", entry.action != "create" || entry.seq == later.seq else {
                return false
            }
            return try !columns.isDisjoint(with: entry.recordedChange().columns)
        }
    }

    /// The row that an operation was made on, in the spelling of capture.
    private func row(before entry: OutboxEntry, _ table: Table) throws -> JSONObject? {
        let base = try db.connection.scalar(
            "SELECT base FROM fieldpost_rows WHERE tbl = ? AND row = ?",
            .text(table.name),
            .text(entry.row)
        )
        let earlier = try db.entries(
            where: "row = ? AND tbl = ? AND seq < ?",
            .text(entry.row),
            .text(entry.table),
            .integer(entry.seq)
        )
        let operations = try earlier.map { earlier in
            var operation = try earlier.operation(table)
            operation.change = try earlier.recordedChange()
            return operation
        }
        let known = try base?.text.flatMap { try JSON(text: $0).object }
        return Merge.replay(base: known, operations: operations, table: table)
    }
}

/// Two operations on one row, the later made on top of the earlier.
private struct Pair {
    let db: LocalDatabase
    let earlier: OutboxEntry
    let later: OutboxEntry
    let sentUpTo: Int64

    // MARK: Nothing is left

    /// Takes both away, unless something depends on the earlier one or half a transaction would be left.
    func removeBoth() throws {
        let isWhole =
            try earlier.group == later.group || mates(of: earlier).isEmpty || mates(of: later).isEmpty
        let naming = try Dependants(db).of(earlier) + Dependants(db).of(later)
        let isOnTop = { (entry: OutboxEntry) in
            entry.row == later.row && entry.table == later.table && entry.seq > later.seq
        }
        let onTop = naming.filter(isOnTop)
        let isNamed = naming.contains { $0.seq != later.seq && !isOnTop($0) }
        guard isWhole, !isNamed else { return }
        for dependant in onTop { try repoint(dependant) }
        for entry in [earlier, later] {
            let reason = OutcomeJournal.neverSent
            try OutcomeJournal(db).keep(entry, as: "discarded", result: reason, at: entry.createdAt)
            try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(entry.seq))
            try db.connection.run("DELETE FROM fieldpost_released WHERE seq = ?", .integer(entry.seq))
        }
        try db.connection.run(
            """
            UPDATE fieldpost_rows SET base = NULL WHERE tbl = ?1 AND row = ?2
            AND NOT EXISTS (SELECT 1 FROM fieldpost_outbox WHERE row = ?2 AND tbl = ?1)
            """,
            .text(later.table),
            .text(later.row)
        )
    }

    /// Lets what was made on top of the later one rest on what the earlier one was made on.
    private func repoint(_ dependant: OutboxEntry) throws {
        let gone = [earlier.id, later.id]
        let after = dependant.after.filter { !gone.contains($0) } + earlier.after
        try write(dependant.seq, after: after)
        guard case .after(later.id) = dependant.base else { return }
        try db.connection.run(
            "UPDATE fieldpost_outbox SET base = (SELECT base FROM fieldpost_outbox WHERE seq = ?) WHERE seq = ?",
            .integer(earlier.seq),
            .integer(dependant.seq)
        )
    }

    // MARK: One is left

    /// Makes one of the two, under the earlier one's id.
    ///
    /// - Parameters:
    ///   - action: what it does.
    ///   - change: its change.
    ///   - renewsPlace: whether it goes where the later one is, if nothing speaks against that.
    /// - Returns: its place; `nil` when they stay two.
    func join(_ action: Operation.Action, _ change: Change, renewsPlace: Bool) throws -> Int64? {
        let others = later.after.filter { $0 != earlier.id && !earlier.after.contains($0) }
        let isOneGroup = earlier.group == later.group
        let canMove = try dependants().isEmpty && (isOneGroup || mates(of: earlier).isEmpty)
        let canStay = try others.allSatisfy(isEarlier) && (isOneGroup || mates(of: later).isEmpty)
        guard canMove || canStay else {
            guard !isOneGroup, let merged = try mergeGroups() else { return nil }
            return try merged.join(action, change, renewsPlace: renewsPlace)
        }
        let (place, other) =
            canMove && (renewsPlace || !canStay) ? (later.seq, earlier.seq) : (earlier.seq, later.seq)
        try rewrite(place, action, change, after: earlier.after + others)
        try remove(other, inFavourOf: place)
        return place
    }

    private func isEarlier(_ id: OperationID) throws -> Bool {
        try db.entry(id).map { $0.seq <= earlier.seq } ?? true
    }

    private func rewrite(
        _ seq: Int64,
        _ action: Operation.Action,
        _ change: Change,
        after: [OperationID]
    ) throws {
        try db.connection.run(
            """
            UPDATE fieldpost_outbox SET id = ?1, action = ?2, change = ?3,
              base = (SELECT e.base FROM fieldpost_outbox AS e WHERE e.seq = ?4) WHERE seq = ?5
            """,
            .text(earlier.id.text),
            .text(action.word),
            action == .delete ? .null : .text(change.json.text),
            .integer(earlier.seq),
            .integer(seq)
        )
        try write(seq, after: after)
    }

    private func write(_ seq: Int64, after: [OperationID]) throws {
        let list = JSON.array(after.map { .string($0.text) }).text()
        try db.connection.run(
            "UPDATE fieldpost_outbox SET after = ? WHERE seq = ?",
            after.isEmpty ? .null : .text(list),
            .integer(seq)
        )
    }

    /// Takes one of the two away, whose id, if anything names it, is now the other's.
    private func remove(_ seq: Int64, inFavourOf other: Int64) throws {
        // Its own group may name it from an earlier place.
        let dependants =
            try Dependants(db).of(later) + db.group(of: later).filter { $0.after.contains(later.id) }
        for dependant in dependants {
            try db.connection.run(
                """
                UPDATE fieldpost_outbox SET after = replace(after, ?1, ?2), base = CASE WHEN base = ?1 THEN ?2 ELSE base END
                WHERE seq = ?3
                """,
                .text(later.id.text),
                .text(earlier.id.text),
                .integer(dependant.seq)
            )
        }
        try db.connection.run("DELETE FROM fieldpost_outbox WHERE seq = ?", .integer(seq))
        try db.connection.run(
            "UPDATE OR REPLACE fieldpost_released SET seq = ? WHERE seq = ?",
            .integer(other),
            .integer(seq)
        )
    }

    // MARK: Groups

    private func mates(of entry: OutboxEntry) throws -> [OutboxEntry] {
        try db.group(of: entry).filter { $0.seq != earlier.seq && $0.seq != later.seq }
    }

    /// What depends on the earlier one and would be left before it if it moved.
    private func dependants() throws -> [OutboxEntry] {
        try Dependants(db).of(earlier).filter {
            $0.seq != later.seq && !($0.group == later.group && $0.seq > later.seq)
        }
    }

    /// Makes one group of both groups and of all that depends on the earlier one's, behind everything else.
    ///
    /// - Returns: the two in their new places; `nil`, with nothing changed, where the group would be too large or something in it cannot move.
    private func mergeGroups() throws -> Pair? {
        var members: [OutboxEntry] = []
        var seen: Set<Int64> = [earlier.group, later.group]
        var waiting = [earlier, later]
        while let next = waiting.popLast() {
            let group = try db.group(of: next)
            members += group
            if members.count > Coalescing.largestGroup { return nil }
            for entry in group {
                waiting += try Dependants(db).of(entry).filter { seen.insert($0.group).inserted }
            }
        }
        let bytes = members.reduce(0) { $0 + ($1.change?.utf8.count ?? 0) }
        let isMovable = members.allSatisfy { $0.seq > sentUpTo && $0.state == .pending && $0.attempts == 0 }
        guard isMovable, bytes <= LocalDatabase.bytesPerTransaction / 2 else { return nil }
        return try renumber(members.sorted { $0.seq < $1.seq })
    }

    private func renumber(_ members: [OutboxEntry]) throws -> Pair {
        var next =
            try db.connection.scalar("SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox'")?
            .integer ?? 0
        var places: [Int64: Int64] = [:]
        for member in members {
            next += 1
            places[member.seq] = next
            try db.connection.run(
                "UPDATE fieldpost_outbox SET seq = ?, grp = ?, wire_seq = NULL WHERE seq = ?",
                .integer(next),
                .integer(later.group),
                .integer(member.seq)
            )
            try db.connection.run(
                "UPDATE fieldpost_released SET seq = ? WHERE seq = ?",
                .integer(next),
                .integer(member.seq)
            )
        }
        try db.connection.run(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = 'fieldpost_outbox'",
            .integer(next)
        )
        db.movedOperations += Int64(members.count)
        return try Pair(
            db: db,
            earlier: entry(places[earlier.seq]) ?? earlier,
            later: entry(places[later.seq]) ?? later,
            sentUpTo: sentUpTo
        )
    }

    private func entry(_ seq: Int64?) throws -> OutboxEntry? {
        try seq.flatMap { try db.entries(where: "seq = ?", .integer($0)).first }
    }
}
