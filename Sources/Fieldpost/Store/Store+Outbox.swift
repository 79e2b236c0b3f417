public import FieldpostCore
internal import FieldpostSQLite

extension Store {
    /// Where the user's data stands now.
    public func status() async throws -> SyncStatus {
        let failure = engineFailure.withLock { $0 }
        return try await read { try StatusReader($0.context).status(failure: failure) }
    }

    /// Where one row stands now.
    ///
    /// - Throws: ``FieldpostError/Code/rowMissing`` for a row that is nowhere.
    public func status(of row: String, in table: String) async throws -> RowStatus {
        guard let table = schema.table(table) else {
            throw FieldpostError(.unknownTable, "There is no table \(table).")
        }
        let key = table.column(table.key)?.type == .uuid ? row.lowercased() : row
        return try await read { try StatusReader($0.context).status(of: key, table: table) }
    }

    /// The unsettled operations, oldest first, at most `limit`.
    ///
    /// - Parameters:
    ///   - state: only those that stand there.
    ///   - seq: only those after this place, to read a long outbox piece by piece.
    ///   - limit: how many, at most.
    public func outbox(
        _ state: OutboxItem.State? = nil,
        after seq: Int64 = 0,
        limit: Int = 1_000
    ) async throws -> [OutboxItem] {
        try await read { try OutboxReader($0.context).items(state, after: seq, limit: limit) }
    }

    /// One unsettled operation; `nil` when there is none with this id.
    public func outboxItem(_ operation: OperationID) async throws -> OutboxItem? {
        try await read { try OutboxReader($0.context).item(operation) }
    }

    /// The edits that lost and wait to be settled, oldest first.
    public func conflicts() async throws -> [ConflictItem] {
        let schema = schema
        return try await read { transaction in
            try transaction.context.connection.query(
                "SELECT id, operation, tbl, row, mine, theirs, at FROM fieldpost_conflicts ORDER BY id"
            ).map { ConflictItem($0, schema: schema) }
        }
    }

    /// Sends a failed operation again, with its group.
    ///
    /// - Returns: the ids of the group's operations from now on.
    @discardableResult
    public func retry(_ operation: OperationID) async throws -> [OperationID] {
        try await writer.repair { db, now, random in
            try Repair(db).retry(operation, now: now, random: &random)
        }
    }

    /// Gives a failed or unsent operation up, with its group, and takes its changes back from the rows.
    ///
    /// What the server may have is given up as soon as a sync has had its word; see ``OutboxItem/decision``.
    /// - Parameters:
    ///   - operation: the operation to give up.
    ///   - dependants: whether the operations that depend on it go too.
    /// - Returns: the ids of all operations given up.
    /// - Throws: ``FieldpostError/Code/hasDependants``, naming them, when others depend on it and may not go.
    @discardableResult
    public func discard(_ operation: OperationID, dependants: Bool = false) async throws -> [OperationID] {
        try await writer.repair { db, now, _ in
            try Repair(db).discard(operation, dependants: dependants, now: now)
        }
    }

    /// Gives an operation that was refused, or never sent, other values, and sends its group again.
    ///
    /// Where the server may have it, a sync has its word first; see ``OutboxItem/decision``.
    /// - Parameters:
    ///   - operation: the operation to edit.
    ///   - values: wire values by column; columns left out stay as they were recorded.
    /// - Returns: the operation's id from now on.
    /// - Throws: ``FieldpostError`` for values the table does not take.
    @discardableResult
    public func edit(_ operation: OperationID, set values: JSONObject) async throws -> OperationID {
        try await writer.repair { db, now, random in
            try Repair(db).edit(operation, set: values, now: now, random: &random)
        }
    }

    /// Takes back an operation that was never sent, with its group.
    ///
    /// - Throws: ``FieldpostError/Code/wrongState`` for one that was sent, and ``FieldpostError/Code/hasDependants``.
    @discardableResult
    public func undo(_ operation: OperationID) async throws -> [OperationID] {
        try await writer.repair { db, now, _ in try Repair(db).undo(operation, now: now) }
    }

    /// The identity of this installation, as the server knows it.
    public func deviceID() async throws -> String {
        try await writer.perform { db, _, _ in try db.deviceID() }
    }
}

/// Reads the outbox for people.
struct OutboxReader {
    private let connection: Connection
    private let schema: Schema
    private let context: TransactionContext

    init(_ context: TransactionContext) {
        connection = context.connection
        schema = context.schema
        self.context = context
    }

    func item(_ operation: OperationID) throws -> OutboxItem? {
        let onWire = try onWire()
        return try OutboxLookup(connection).entry(operation).map { item($0, onWire) }
    }

    private func onWire() throws -> Set<Int64> {
        let rows = try connection.query("SELECT value FROM json_each(?)", .text(try Lease.onWire(context)))
        return Set(rows.compactMap { $0[0].integer })
    }

    private func item(_ entry: OutboxEntry, _ onWire: Set<Int64>) -> OutboxItem {
        OutboxItem(entry, isOnWire: entry.state == .pending && onWire.contains(entry.seq), schema: schema)
    }

    func items(_ state: OutboxItem.State?, after seq: Int64, limit: Int) throws -> [OutboxItem] {
        let onWire = try onWire()
        let condition =
            switch state {
            case nil: "1"
            case .pending, .inFlight: "state < 2"
            case .held: "state >= 2 AND state = 2"
            case .failed: "state >= 2 AND state = 3"
            }
        let statement = try connection.statement(
            "SELECT \(OutboxEntry.columns) FROM fieldpost_outbox WHERE \(condition) AND seq > ? ORDER BY seq"
        )
        try statement.bind(1, seq)
        defer { statement.reset() }
        var items: [OutboxItem] = []
        while items.count < limit, try statement.step() {
            let item = item(OutboxEntry(statement), onWire)
            if state == nil || item.state == state { items.append(item) }
        }
        return items
    }
}
