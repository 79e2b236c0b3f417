package import FieldpostCore
internal import FieldpostSQLite

/// What one request carries: whole groups, in order.
package struct PushBatch: Equatable, Sendable {
    /// The entries, group after group.
    package var entries: [OutboxEntry]
    /// The JSON body, the same bytes at every retry.
    package var body: [UInt8]

    /// How many groups there are.
    package var groupCount: Int { Set(entries.map(\.group)).count }
}

/// Decides which operations go in the next request.
///
/// Pure but for the file: the same file, limits and time give the same batch.
package enum PushPlan {
    /// How much one request may carry.
    package struct Limits: Equatable, Sendable {
        package var operations: Int
        package var bytes: Int

        package init(operations: Int, bytes: Int = WireLimits.unpackedBytes / 2) {
            self.operations = operations
            self.bytes = bytes
        }
    }

    /// The next batch, noted in the lease as being on the wire; `nil` when nothing is ready.
    ///
    /// Groups go in order of their place. One that depends on work that cannot go now is passed over, and what depends
    /// on it too; the first group goes whatever its size, since a group is never split.
    /// - Throws: ``LeaseLost`` when another owner has taken over.
    package static func next(_ db: LocalDatabase, lease: Lease, limits: Limits, now: Timestamp) throws
        -> PushBatch?
    {
        try db.connection.transaction(.immediate) {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            try db.coalesce()
            try wakeWaiting(db, now: now)
            var batch = Collector(db, limits: limits)
            let statement = try db.connection.statement(
                "SELECT \(OutboxEntry.columns) FROM fieldpost_outbox WHERE state = 0 ORDER BY seq"
            )
            defer { statement.reset() }
            while try statement.step() {
                if try !batch.add(OutboxEntry(statement)) { break }
            }
            try batch.finish()
            statement.reset()
            try batch.holdDependants()
            guard !batch.taken.isEmpty else { return nil }
            try lease.willSend(db, batch.taken.map(\.seq), now: now)
            return PushBatch(entries: batch.taken, body: batch.body())
        }
    }

    /// Makes waiting operations whose time has come ready again.
    private static func wakeWaiting(_ db: LocalDatabase, now: Timestamp) throws {
        // A clock that was set back since: what was judged in the future waits its delay from now on, not for the day.
        try db.connection.run(
            """
            UPDATE fieldpost_outbox SET next_attempt_at = ?1 + next_attempt_at - last_attempt_at, last_attempt_at = ?1
            WHERE state = 1 AND last_attempt_at > ?1
            """,
            .integer(now.milliseconds)
        )
        try db.connection.run(
            "UPDATE fieldpost_outbox SET state = 0 WHERE state = 1 AND next_attempt_at <= ?",
            .integer(now.milliseconds)
        )
    }

    /// When the earliest waiting operation is due, in milliseconds since 1970.
    package static func nextDue(_ db: LocalDatabase) throws -> Int64? {
        try db.connection.scalar("SELECT min(next_attempt_at) FROM fieldpost_outbox WHERE state = 1")?.integer
    }
}

/// Another owner holds the lease; what this one was doing no longer counts.
package struct LeaseLost: Error {}

/// Gathers whole groups until the limits are reached.
private struct Collector {
    private let db: LocalDatabase
    private let limits: PushPlan.Limits
    private(set) var taken: [OutboxEntry] = []
    private var group: [OutboxEntry] = []
    private var bytes = 0
    private var isFull = false
    /// Ready operations that cannot go in this request, and which of them depend on one that is set aside; what names
    /// one waits as well.
    private var blocked: [OperationID: Bool] = [:]
    /// Groups found to depend on an operation that is set aside.
    private var held: [(group: [OutboxEntry], by: OperationID)] = []

    init(_ db: LocalDatabase, limits: PushPlan.Limits) {
        self.db = db
        self.limits = limits
    }

    /// Marks what was recorded on top of an operation that was set aside before.
    func holdDependants() throws {
        for (group, by) in held {
            for entry in group {
                try db.connection.run(
                    "UPDATE fieldpost_outbox SET state = 2, held_by = ? WHERE seq = ? AND state = 0",
                    .text(by.text),
                    .integer(entry.seq)
                )
            }
        }
    }

    /// Takes in one entry; `false` once no more is wanted.
    mutating func add(_ entry: OutboxEntry) throws -> Bool {
        if let first = group.first, first.group != entry.group { try closeGroup() }
        if isFull { return false }
        group.append(entry)
        return true
    }

    mutating func finish() throws { if !isFull { try closeGroup() } }

    private mutating func closeGroup() throws {
        defer { group = [] }
        guard !group.isEmpty else { return }
        if let (blocker, isAside) = try blocker() {
            if isAside { held.append((group, blocker)) }
            for entry in group { blocked[entry.id] = isAside }
            return
        }
        if try group.contains(where: isNewerState) {
            for entry in group { blocked[entry.id] = false }
            return
        }
        let size = group.reduce(0) { $0 + ($1.change?.utf8.count ?? 0) + 300 }
        let fits = taken.count + group.count <= limits.operations && bytes + size <= limits.bytes
        guard fits || taken.isEmpty else { return isFull = true }
        taken += group
        bytes += size
        if taken.count >= limits.operations || bytes >= limits.bytes { isFull = true }
    }

    /// The first operation named by the group that cannot go now, and whether it is set aside.
    private func blocker() throws -> (OperationID, isAside: Bool)? {
        for id in group.lazy.flatMap(\.after) {
            if let isAside = blocked[id] { return (id, isAside) }
            if let state = try db.stopped(id)?.state { return (id, state != .waiting) }
        }
        return nil
    }

    /// Whether an entry of a `.state` table has to wait for the answer to the one before it on the same row.
    ///
    /// Until then it takes in newer edits.
    private func isNewerState(_ entry: OutboxEntry) throws -> Bool {
        guard db.stateTables.contains(entry.table), case .after(let id) = entry.base else { return false }
        return try !db.entries(
            where: "row = ? AND tbl = ? AND seq < ? AND id = ?",
            .text(entry.row),
            .text(entry.table),
            .integer(entry.seq),
            .text(id.text)
        ).isEmpty && !group.contains { $0.id == id }
    }

    /// The request's JSON.
    ///
    /// A captured change is spliced in as it was stored, but for blobs.
    func body() -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes + 64)
        out.append(contentsOf: #"{"groups":["#.utf8)
        var current: Int64?
        for entry in taken {
            if entry.group != current {
                out.append(contentsOf: (current == nil ? #"{"ops":["# : #"]},{"ops":["#).utf8)
                current = entry.group
            } else {
                out.append(UInt8(ascii: ","))
            }
            entry.writeWire(to: &out, table: db.schema.table(entry.table, asOf: entry.schema))
        }
        out.append(contentsOf: "]}]}".utf8)
        return out
    }
}

extension OutboxEntry {
    fileprivate func writeWire(to out: inout [UInt8], table: Table?) {
        if let table, table.columns.contains(where: { $0.type == .blob }),
            let operation = try? operation(table)
        {
            operation.write(to: &out)
            return
        }
        func member(_ name: StaticString, _ value: String) {
            name.withUTF8Buffer { out.append(contentsOf: $0) }
            JSON.write(value, to: &out)
        }
        func member(_ name: StaticString, _ value: Int64) {
            name.withUTF8Buffer { out.append(contentsOf: $0) }
            JSON.write(value, to: &out)
        }
        member(#"{"id":"#, id.text)
        member(#","table":"#, self.table)
        member(#","row":"#, row)
        member(#","action":"#, action)
        if let change, change.utf8.count > 2 {
            out.append(UInt8(ascii: ","))
            out.append(contentsOf: change.utf8.dropFirst().dropLast())
        }
        switch base {
        case .none: break
        case .version(let version): member(#","base":"#, version)
        case .after(let id):
            member(#","base":{"after":"#, id.text)
            out.append(UInt8(ascii: "}"))
        }
        if !after.isEmpty {
            out.append(contentsOf: #","after":"#.utf8)
            JSON.array(after.map { .string($0.text) }).write(to: &out)
        }
        member(#","seq":"#, wireSeq)
        member(#","schema":"#, Int64(schema))
        member(#","at":"#, createdAt.milliseconds)
        out.append(UInt8(ascii: "}"))
    }
}
