public import FieldpostCore
internal import FieldpostSQLite

/// An operation to wait for, by ``Store/operation(_:)``.
public struct OperationHandle: Sendable, Identifiable {
    /// The operation's id, its idempotency key at the server.
    public let id: OperationID
    private let store: Store

    init(id: OperationID, store: Store) {
        self.id = id
        self.store = store
    }

    /// Waits until the operation is settled; see ``Store/settled(_:)``.
    public func settled() async throws -> Outcome { try await store.settled(id) }
}

extension Store {
    /// A handle of an operation, whose id a write gets from ``WriteTransaction/operations()``.
    ///
    ///     let sale = try await store.write { transaction in
    ///         try transaction.insert(order)
    ///         return try transaction.operations()[0]
    ///     }
    ///     let outcome = try await store.operation(sale).settled()
    public func operation(_ id: OperationID) -> OperationHandle { OperationHandle(id: id, store: self) }

    /// Waits until the server has judged an operation, or someone has given it up.
    ///
    /// The outcome's status says which: `applied`, `conflict`, `discarded`, or `rejected` for a dead letter, which is
    /// still in the outbox and can be retried, edited or discarded. One that was retried before this looked is waited for
    /// under its new id. Without a network it waits; cancel the task to stop.
    ///
    /// - Throws: ``FieldpostError/Code/operationMissing`` for an operation that is unknown, or was applied too long ago to
    ///   be remembered; `CancellationError`; `StoreError` with `closed` when the store is closed meanwhile.
    public func settled(_ operation: OperationID) async throws -> Outcome {
        let place = try await read { try OutcomeReader($0.context).place(of: operation) }
        for try await outcome in watch({ try OutcomeReader($0.context).outcome(of: operation, at: place) }) {
            if let outcome { return outcome }
        }
        try Task.checkCancellation()
        throw StoreError(.closed, "The store was closed before the operation was settled.")
    }

    /// What became of an operation; `nil` while it is unsettled, or was settled too long ago to be kept.
    public func outcome(of operation: OperationID) async throws -> Outcome? {
        try await read { try OutcomeReader($0.context).outcome(where: "id = ?", .text(operation.text)) }
    }
}

/// Reads what became of operations.
struct OutcomeReader {
    private let connection: Connection

    init(_ context: TransactionContext) { connection = context.connection }

    /// The place of an operation in the outbox and in the journal alike, where it is found at once.
    func place(of operation: OperationID) throws -> Int64 {
        if let entry = try OutboxLookup(connection).entry(operation) { return entry.seq }
        let sql = "SELECT seq FROM fieldpost_outcomes WHERE id = ?"
        if let seq = try connection.scalar(sql, .text(operation.text))?.integer { return seq }
        throw Self.missing
    }

    /// The outcome of the operation at a place, whatever it is called by now; `nil` while it is open.
    func outcome(of operation: OperationID, at place: Int64) throws -> Outcome? {
        let lookup = OutboxLookup(connection)
        if let entry = try lookup.entries(where: "seq = ?", [.integer(place)]).first {
            return outcome(ofEntry: entry)
        }
        if let outcome = try outcome(where: "seq = ?", .integer(place)) { return outcome }
        // Coalescing gives operations new places, and leaves them their ids.
        if let entry = try lookup.entry(operation) { return outcome(ofEntry: entry) }
        guard let outcome = try outcome(where: "id = ?", .text(operation.text)) else { throw Self.missing }
        return outcome
    }

    private func outcome(ofEntry entry: OutboxEntry) -> Outcome? {
        if entry.state != .failed { return nil }
        return Outcome(
            status: OperationResult.Status.rejected.rawValue,
            version: nil,
            settledAt: Timestamp(milliseconds: entry.lastAttemptAt ?? 0),
            failure: entry.error.flatMap(OutboxItem.Failure.init(json:)),
            history: Attempt.list(entry.history)
        )
    }

    func outcome(where condition: String, _ argument: Value) throws -> Outcome? {
        try connection.query(
            "SELECT status, version, settled_at, history FROM fieldpost_outcomes WHERE \(condition) ORDER BY seq DESC LIMIT 1",
            argument
        ).first.map {
            Outcome(
                status: $0[0].text ?? "",
                version: $0[1].integer,
                settledAt: Timestamp(milliseconds: $0[2].integer ?? 0),
                history: Attempt.list($0[3].text)
            )
        }
    }

    private static let missing = FieldpostError(
        .operationMissing,
        "There is no operation with this id, or it was applied too long ago to be remembered."
    )
}
