/// Prepared statements by their SQL, the least recently used leaving first.
///
/// A statement is handed out only while nobody else holds it, so that one query may run inside the loop over
/// another with the same SQL.
struct StatementCache {
    private struct Slot {
        var sql: String
        var statement: Statement
        var lastUse: UInt64
    }

    /// Enough for a schema of some dozens of tables; a statement takes a few KiB.
    static let capacity = 200

    private var indexes: [String: Int] = [:]
    private var slots: [Slot] = []
    private var clock: UInt64 = 0

    /// How many statements it holds.
    var count: Int { slots.count }

    /// What the cache has to say about a SQL text.
    enum Answer {
        /// Here it is, ready to bind.
        case ready(Statement)
        /// It is in use: prepare another one and do not store it.
        case busy
        /// It is unknown: prepare it and store it.
        case unknown
    }

    /// Looks `sql` up.
    mutating func take(_ sql: String) -> Answer {
        guard let index = indexes[sql] else { return .unknown }
        guard isKnownUniquelyReferenced(&slots[index].statement) else { return .busy }
        clock += 1
        slots[index].lastUse = clock
        let statement = slots[index].statement
        statement.prepareForReuse()
        return .ready(statement)
    }

    /// Keeps `statement`, in place of the oldest when full.
    mutating func store(_ statement: Statement, for sql: String) {
        clock += 1
        let slot = Slot(sql: sql, statement: statement, lastUse: clock)
        guard slots.count >= Self.capacity else {
            indexes[sql] = slots.count
            slots.append(slot)
            return
        }
        let oldest = slots.indices.min { slots[$0].lastUse < slots[$1].lastUse }!
        indexes[slots[oldest].sql] = nil
        slots[oldest] = slot
        indexes[sql] = oldest
    }

    /// Forgets every statement.
    mutating func removeAll() {
        indexes = [:]
        slots = []
    }
}
