package import FieldpostCore
internal import FieldpostSQLite

/// One row of the outbox.
package struct OutboxEntry: Equatable, Sendable {
    /// Where an operation stands.
    package enum State: Int64, Sendable {
        /// Ready to go.
        case pending = 0
        /// Ready again at ``OutboxEntry/nextAttemptAt``.
        case waiting = 1
        /// Waits for another operation that is set aside.
        case held = 2
        /// A dead letter.
        case failed = 3
    }

    package var seq: Int64
    package var id: OperationID
    package var group: Int64
    package var table: String
    package var row: String
    package var action: String
    /// The change as captured.
    package var change: String?
    package var base: Operation.Base
    package var after: [OperationID]
    package var schema: Int
    package var createdAt: Timestamp
    package var state: State
    package var attempts: Int
    package var nextAttemptAt: Int64?
    package var lastAttemptAt: Int64?
    package var heldBy: OperationID?
    package var error: String?
    package var wireSeq: Int64
    package var history: String?
    /// What a person decided while the answer was outstanding.
    package var decision: String?

    static let columns = """
        seq, id, ifnull(grp, seq), tbl, row, action, change, base, after, schema, created_at, state, attempts, \
        next_attempt_at, last_attempt_at, held_by, error, ifnull(wire_seq, seq), history, decision
        """

    /// Reads the current row of a statement that selects ``columns``.
    init(_ statement: Statement) {
        seq = statement.integer(0)
        id = OperationID(stored: statement.text(1))
        group = statement.integer(2)
        table = statement.text(3)
        row = statement.text(4)
        action = statement.text(5)
        change = statement.isNull(6) ? nil : statement.text(6)
        base =
            switch statement.value(7) {
            case .integer(let version): .version(version)
            case .text(let id): .after(OperationID(stored: id))
            default: .none
            }
        after = statement.isNull(8) ? [] : OutboxEntry.ids(statement.text(8))
        schema = Int(statement.integer(9))
        createdAt = Timestamp(milliseconds: statement.integer(10))
        state = State(rawValue: statement.integer(11)) ?? .pending
        attempts = Int(statement.integer(12))
        nextAttemptAt = statement.value(13).integer
        lastAttemptAt = statement.value(14).integer
        heldBy = statement.isNull(15) ? nil : OperationID(stored: statement.text(15))
        error = statement.isNull(16) ? nil : statement.text(16)
        wireSeq = statement.integer(17)
        history = statement.isNull(18) ? nil : statement.text(18)
        decision = statement.isNull(19) ? nil : statement.text(19)
    }

    /// Whether the server has settled the operation as refused, so that its id can never be applied.
    var isRefused: Bool {
        guard state == .failed else { return false }
        return error.flatMap { try? JSON(text: $0).object }?["unsettled"]?.bool != true
    }

    private static func ids(_ json: String) -> [OperationID] {
        let array = (try? JSON(text: json))?.array ?? []
        return array.compactMap { $0.string.map { OperationID(stored: $0) } }
    }

    /// The change as captured, which spells blobs in its own way.
    func recordedChange() throws(JSONError) -> Change {
        guard let change else { return Change() }
        return Change(json: try JSON(text: change).object ?? [:])
    }

    /// The operation that it stands for.
    package func operation(_ table: Table) throws(JSONError) -> Operation {
        var parsed = try recordedChange()
        parsed.set = LocalJSON.wire(parsed.set, table)
        return Operation(
            id: id,
            table: self.table,
            row: row,
            action: wireAction,
            change: parsed,
            base: base,
            after: after,
            seq: wireSeq,
            schema: schema,
            at: createdAt
        )
    }

    var wireAction: Operation.Action {
        switch action {
        case "create": .create
        case "delete": .delete
        default: .update
        }
    }
}

extension LocalDatabase {
    /// The entries that `condition` selects, oldest first.
    func entries(where condition: String, _ arguments: Value...) throws -> [OutboxEntry] {
        try OutboxLookup(connection).entries(where: condition, arguments)
    }

    /// The entry with this id.
    func entry(_ id: OperationID) throws -> OutboxEntry? { try OutboxLookup(connection).entry(id) }

    /// The entry with this id that does not go now: it waits, is held, or is a dead letter.
    func stopped(_ id: OperationID) throws -> OutboxEntry? { try OutboxLookup(connection).stopped(id) }

    /// The group of `entry`, oldest first: the entries of a transaction stand next to each other.
    func group(of entry: OutboxEntry) throws -> [OutboxEntry] {
        func neighbours(_ condition: String, _ order: String) throws -> [OutboxEntry] {
            let statement = try connection.statement(
                "SELECT \(OutboxEntry.columns) FROM fieldpost_outbox WHERE seq \(condition) ? ORDER BY seq \(order)"
            )
            defer { statement.reset() }
            try statement.bind(1, entry.seq)
            var found: [OutboxEntry] = []
            while try statement.step() {
                let next = OutboxEntry(statement)
                if next.group != entry.group { break }
                found.append(next)
            }
            return found
        }
        return try neighbours("<", "DESC").reversed() + neighbours(">=", "ASC")
    }

    /// The unsettled operations on one row, oldest first.
    func operations(on row: String, of table: Table) throws -> [Operation] {
        try entries(where: "row = ? AND tbl = ?", .text(row), .text(table.name)).map {
            // Sent as they were recorded; replayed as they read under the app's schema.
            try $0.operation(schema.table(table.name, asOf: $0.schema) ?? table).upcast(to: schema)
        }
    }
}
