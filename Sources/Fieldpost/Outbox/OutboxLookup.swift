internal import FieldpostCore
internal import FieldpostSQLite

/// Finds operations in the outbox, on any connection.
struct OutboxLookup {
    private let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    /// The entries that `condition` selects, oldest first.
    func entries(where condition: String, _ arguments: [Value]) throws -> [OutboxEntry] {
        let statement = try connection.statement(
            "SELECT \(OutboxEntry.columns) FROM fieldpost_outbox WHERE \(condition) ORDER BY seq"
        )
        try statement.bind(arguments)
        var entries: [OutboxEntry] = []
        while try statement.step() { entries.append(OutboxEntry(statement)) }
        return entries
    }

    /// The entry with this id that does not go now: it waits, is held, or is a dead letter.
    ///
    /// (`state > 0` as written lets SQLite use the partial index.)
    func stopped(_ id: OperationID) throws -> OutboxEntry? {
        try entries(where: "state > 0 AND id = ?", [.text(id.text)]).first
    }

    /// The entry with this id.
    ///
    /// Of those that are ready there is no index of ids, which would cost each write; but ids begin with the time at which
    /// they were made, and nearly all stand in its order.
    func entry(_ id: OperationID) throws -> OutboxEntry? {
        if let entry = try stopped(id) { return entry }
        // Two queries: one that asks for both reads every row.
        let bounds = try connection.query(
            "SELECT (SELECT min(seq) FROM fieldpost_outbox), (SELECT max(seq) FROM fieldpost_outbox)"
        )[0]
        guard var low = bounds[0].integer, var high = bounds[1].integer else { return nil }
        let time = String(id.text.prefix(13))
        while low < high {
            let middle = low + (high - low) / 2
            // Places may be empty, so that the next one that is not may lie beyond `high`.
            let next = try connection.query(
                "SELECT seq, id < ? FROM fieldpost_outbox WHERE seq >= ? ORDER BY seq LIMIT 1",
                .text(time),
                .integer(middle)
            )[0]
            if next[1] == .integer(1) { low = (next[0].integer ?? middle) + 1 } else { high = middle }
        }
        let statement = try connection.statement(
            "SELECT \(OutboxEntry.columns) FROM fieldpost_outbox WHERE seq >= ? ORDER BY seq"
        )
        try statement.bind(1, low)
        defer { statement.reset() }
        while try statement.step() {
            let entry = OutboxEntry(statement)
            if entry.id == id { return entry }
            if !entry.id.text.hasPrefix(time) { break }
        }
        // A repair gave it its id, or the clock was set back.
        return try entries(where: "id = ?", [.text(id.text)]).first
    }
}
