public import FieldpostCore
internal import FieldpostSQLite

/// What a person decided about an operation while the server may have it.
///
/// It is kept with the operation and carried out as soon as the server's word is here: a run asks the server to void what
/// it does not know, so that a late request can do no harm.
public enum Decision: Equatable, Sendable {
    /// To give it up.
    case discard
    /// To give it these wire values, by column.
    case edit(JSONObject)

    var text: String {
        switch self {
        case .discard: #"{"do":"discard"}"#
        case .edit(let values): JSON.object(["do": "edit", "set": .object(values)]).text()
        }
    }

    init?(_ text: String) {
        guard let object = try? JSON(text: text).object else { return nil }
        self = object["set"]?.object.map(Decision.edit) ?? .discard
    }

    /// This decision after an earlier one about the same operation.
    func following(_ earlier: Decision?) -> Decision {
        guard case .edit(let values) = self, case .edit(var all)? = earlier else { return self }
        for member in values.members { all[member.name] = member.value }
        return .edit(all)
    }
}

/// The decisions that wait for an answer.
struct Decisions {
    let db: LocalDatabase
    let now: Timestamp

    init(_ db: LocalDatabase, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Keeps a decision until the answer is here: a discard takes the place of all edits in the group, an edit adds to
    /// those before it.
    func keep(_ decision: Decision, for entry: OutboxEntry) throws {
        for mate in try db.group(of: entry) {
            let known = mate.decision.flatMap(Decision.init)
            var kept: Decision?
            if mate.seq == entry.seq {
                kept = decision.following(known)
            } else if case .edit = decision, case .edit = known {
                kept = known
            }
            try db.connection.run(
                "UPDATE fieldpost_outbox SET decision = ? WHERE seq = ?",
                kept.map { .text($0.text) } ?? .null,
                .integer(mate.seq)
            )
        }
    }

    /// The decisions by their operation's place.
    func all() throws -> [Int64: Decision] {
        var decisions: [Int64: Decision] = [:]
        try db.connection.forEach("SELECT seq, decision FROM fieldpost_outbox WHERE decision IS NOT NULL") {
            decisions[$0.integer(0)] = Decision($0.text(1))
        }
        return decisions
    }

    /// Carries out what no answer can upset any more, inside the engine's transaction.
    func fulfil(random: inout some RandomNumberGenerator) throws {
        for entry in try db.entries(where: "decision IS NOT NULL") {
            // An earlier decision may have taken this one's operation with it.
            guard let entry = try db.entries(where: "seq = ?", .integer(entry.seq)).first,
                entry.decision != nil
            else { continue }
            let group = try db.group(of: entry)
            if try group.contains(where: InDoubt(db).contains) { continue }
            for mate in group {
                try db.connection.run(
                    "UPDATE fieldpost_outbox SET decision = NULL WHERE seq = ?",
                    .integer(mate.seq)
                )
            }
            try fulfil(group, random: &random)
        }
    }

    private func fulfil(_ group: [OutboxEntry], random: inout some RandomNumberGenerator) throws {
        for entry in group {
            switch entry.decision.flatMap(Decision.init) {
            case .discard: return try discard(entry)
            // The first one has sent the group again, under other ids: what follows is an edit of what is unsent.
            case .edit(let values):
                guard let entry = try db.entries(where: "seq = ?", .integer(entry.seq)).first else { return }
                try edit(entry, values, random: &random)
            case nil: break
            }
        }
    }

    /// What was made on top of it since, and is to stay, keeps it: a dead letter that holds what depends on it.
    private func discard(_ entry: OutboxEntry) throws {
        let closure = try Repair(db).closure(of: entry, naming: false)
        let decided = Set(closure.filter { $0.decision != nil || $0.group == entry.group }.map(\.group))
        if closure.allSatisfy({ decided.contains($0.group) }) { try Repair(db).takeBack(entry, now: now) }
    }

    /// An edit that turns out to break a rule of the app leaves a dead letter that says so.
    private func edit(_ entry: OutboxEntry, _ values: JSONObject, random: inout some RandomNumberGenerator)
        throws
    {
        let problem: (code: String, message: String)
        do {
            try db.connection.savepoint {
                _ = try Repair(db).rewrite(entry, set: values, now: now, random: &random)
            }
            return
        } catch let error as FieldpostError {
            problem = ("\(error.code)", error.message)
        } catch let error as StoreError where error.code == .constraint || error.code == .aborted {
            problem = ("check", error.detail ?? "the values break a constraint of the app's schema")
        }
        let error: JSONObject = [
            "code": .string(problem.code), "message": .string(problem.message), "fields": [],
        ]
        try db.connection.run(
            "UPDATE fieldpost_outbox SET state = 3, error = ?, next_attempt_at = NULL, held_by = NULL WHERE seq = ?",
            .text(error.text),
            .integer(entry.seq)
        )
    }

    /// Makes a new edit of one whose operation was applied after all; where the row cannot take it, it is a conflict.
    func editAgain(_ entry: OutboxEntry, _ values: JSONObject) throws {
        let isMade = try db.capturing(at: now) { try update(entry, values) }
        if isMade { return }
        let lost = LostEdit(
            operation: entry.id,
            action: "update",
            change: Change(set: values).json.text,
            theirs: nil
        )
        try Conflicts(db).add(lost, table: entry.table, row: entry.row, now: now)
    }

    private func update(_ entry: OutboxEntry, _ values: JSONObject) throws -> Bool {
        guard let table = db.schema.table(entry.table) else { return false }
        let columns = table.columns.filter { values[$0.name] != nil && $0.name != table.key }
        let list = columns.map { "\(quoted($0.name)) = ?" }.joined(separator: ", ")
        do {
            let new = try columns.map { try $0.value(from: values[$0.name] ?? .null) }
            try db.connection.savepoint {
                try db.connection.run(
                    "UPDATE \(quoted(table.name)) SET \(list) WHERE \(quoted(table.key)) = ?",
                    new + [.text(entry.row)]
                )
            }
            return db.connection.changes > 0
        } catch is ColumnTypeError {
            return false
        } catch let error as StoreError where error.code == .constraint || error.code == .aborted {
            return false
        }
    }
}

/// Which operations may have been applied without our knowing: sent, and no answer that settles them.
struct InDoubt {
    let db: LocalDatabase
    private let sentUpTo: Int64

    init(_ db: LocalDatabase) throws {
        self.db = db
        sentUpTo = try db.connection.scalar("SELECT sent_upto FROM fieldpost_lease")?.integer ?? 0
    }

    func contains(_ entry: OutboxEntry) throws -> Bool {
        if entry.seq > sentUpTo || entry.isRefused { return false }
        // What was sent after an operation that is settled as refused names it, and can never be applied.
        guard entry.state == .held, let holder = entry.heldBy else { return true }
        guard let first = try db.entry(holder), first.seq < entry.seq else { return false }
        return try contains(first)
    }

    /// What the server has to be asked about: operations that someone has decided about, and dead letters that it never
    /// settled.
    func toVoid(limit: Int) throws -> [OutboxEntry] {
        let deadLetters = #"state = 3 AND instr(error, '"unsettled":true')"#
        let asked = try db.entries(where: "decision IS NOT NULL") + db.entries(where: deadLetters)
        var found: [OutboxEntry] = []
        var seen: Set<Int64> = []
        for entry in asked where seen.insert(entry.group).inserted {
            let group = try db.group(of: entry).filter { try contains($0) }
            if !found.isEmpty, found.count + group.count > limit { break }
            found += group
        }
        return found
    }
}
