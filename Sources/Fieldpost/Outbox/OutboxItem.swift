public import FieldpostCore

/// One unsettled operation, for people and programs to look at.
public struct OutboxItem: Equatable, Sendable {
    /// Where an operation stands.
    public enum State: String, Sendable, CaseIterable {
        /// Waits to be sent.
        case pending
        /// Is on the wire.
        case inFlight
        /// Waits for another operation that is set aside.
        case held
        /// A dead letter: refused, until someone retries, edits or discards it.
        case failed
    }

    /// Why an operation was refused.
    public struct Failure: Equatable, Sendable {
        /// The stable reason.
        public var code: String
        /// The server's words.
        public var message: String
        /// The columns at fault.
        public var fields: [String]
    }

    /// The operation.
    public var operation: OperationID
    /// The group: the place of its first operation.
    public var group: Int64
    /// Its place in the outbox.
    public var seq: Int64
    /// The table.
    public var table: String
    /// The row's key.
    public var row: String
    /// `create`, `update`, `delete` or `intent`.
    public var action: String
    /// The columns touched.
    public var change: Change
    /// Where it stands.
    public var state: State
    /// How often the server has judged it.
    public var attempts: Int
    /// When it was recorded.
    public var createdAt: Timestamp
    /// When it may go again.
    public var nextAttemptAt: Timestamp?
    /// When the server last judged it.
    public var lastAttemptAt: Timestamp?
    /// The operation it waits for.
    public var heldBy: OperationID?
    /// Why it was refused.
    public var failure: Failure?
    /// What came of its attempts, oldest first; the newest 20.
    public var history: [Attempt]
    /// What someone decided about it, carried out once the server's word is here; it is not sent meanwhile.
    public var decision: Decision?

    /// The entry as programs read it.
    public var json: JSONObject {
        let error: JSON =
            failure.map {
                [
                    "code": .string($0.code), "message": .string($0.message),
                    "fields": .array($0.fields.map(JSON.string)),
                ]
            } ?? .null
        return [
            "operation": .string(operation.text), "group": .integer(group), "seq": .integer(seq),
            "table": .string(table), "row": .string(row), "action": .string(action),
            "change": .object(change.json),
            "state": .string(state.rawValue), "attempts": .integer(Int64(attempts)),
            "created_at": .integer(createdAt.milliseconds), "next_attempt_at": OutboxItem.time(nextAttemptAt),
            "last_attempt_at": OutboxItem.time(lastAttemptAt),
            "held_by": heldBy.map { .string($0.text) } ?? .null,
            "error": error,
        ]
    }

    private static func time(_ time: Timestamp?) -> JSON { time.map { .integer($0.milliseconds) } ?? .null }
}

extension OutboxItem {
    init(_ entry: OutboxEntry, isOnWire: Bool, schema: Schema) {
        operation = entry.id
        group = entry.group
        seq = entry.seq
        table = entry.table
        row = entry.row
        action = entry.action
        change = schema.table(entry.table).flatMap { try? entry.operation($0).change } ?? Change()
        state =
            switch entry.state {
            case .pending, .waiting: isOnWire ? .inFlight : .pending
            case .held: .held
            case .failed: .failed
            }
        attempts = entry.attempts
        createdAt = entry.createdAt
        nextAttemptAt = entry.nextAttemptAt.map { Timestamp(milliseconds: $0) }
        lastAttemptAt = entry.lastAttemptAt.map { Timestamp(milliseconds: $0) }
        heldBy = entry.heldBy
        history = Attempt.list(entry.history)
        decision = entry.decision.flatMap(Decision.init)
        failure = entry.error.flatMap(Failure.init(json:))
    }
}

extension OutboxItem.Failure {
    /// Reads what the outbox keeps.
    init?(json: String) {
        guard let object = try? JSON(text: json).object else { return nil }
        code = object["code"]?.string ?? ""
        message = object["message"]?.string ?? ""
        fields = object["fields"]?.array?.compactMap(\.string) ?? []
    }
}

/// What became of an operation.
public struct Outcome: Equatable, Sendable {
    /// `applied`, `conflict` or `discarded`; `rejected` for a dead letter.
    public var status: String
    /// The row's version after it.
    public var version: Int64?
    /// When it was settled here.
    public var settledAt: Timestamp
    /// Why it was rejected.
    public var failure: OutboxItem.Failure?
    /// What came of the attempts before, oldest first; the newest 20.
    public var history: [Attempt] = []

    /// The outcome as programs read it.
    public var json: JSONObject {
        [
            "status": .string(status), "version": version.map(JSON.integer) ?? .null,
            "settled_at": .integer(settledAt.milliseconds),
            "history": .array(history.map { .object($0.json) }),
        ]
    }
}
