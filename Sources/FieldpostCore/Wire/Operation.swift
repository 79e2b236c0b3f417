/// One recorded change of one row, as it travels to the server.
///
/// What is in it is fixed when it is first sent: a retry sends the same bytes under the same ``id``.
public struct Operation: Equatable, Sendable {
    /// What the operation does.
    public enum Action: Equatable, Sendable {
        /// Makes a row.
        case create
        /// Changes columns of a row.
        case update
        /// Removes a row.
        case delete
        /// Asks the server's handler of this name to act.
        case intent(String)

        /// The word stored in the outbox.
        public var word: String {
            switch self {
            case .create: "create"
            case .update: "update"
            case .delete: "delete"
            case .intent: "intent"
            }
        }
    }

    /// The state of the row that an edit was made on.
    public enum Base: Equatable, Sendable {
        /// The row was not known to the server.
        case none
        /// The row as of this version.
        case version(Int64)
        /// The row after this operation, unsettled when the edit was made.
        case after(OperationID)
    }

    /// Identity and idempotency key.
    public var id: OperationID
    /// The table.
    public var table: String
    /// The row's key.
    public var row: String
    /// What it does.
    public var action: Action
    /// The columns it touches.
    public var change: Change
    /// What it was made on.
    public var base: Base
    /// The unsettled operations it depends on, those of other rows included.
    public var after: [OperationID]
    /// The place on its device: 1, 2, 3 … with gaps.
    public var seq: Int64
    /// The schema version it was recorded under.
    public var schema: Int
    /// When it was recorded, by the device's clock; for people, never for order.
    public var at: Timestamp

    /// An operation of the given parts.
    public init(
        id: OperationID,
        table: String,
        row: String,
        action: Action,
        change: Change = Change(),
        base: Base = .none,
        after: [OperationID] = [],
        seq: Int64,
        schema: Int,
        at: Timestamp
    ) {
        self.id = id
        self.table = table
        self.row = row
        self.action = action
        self.change = change
        self.base = base
        self.after = after
        self.seq = seq
        self.schema = schema
        self.at = at
    }
}

/// The columns an operation touches, by how each is settled, in wire form.
public struct Change: Equatable, Sendable {
    /// New values.
    public var set: JSONObject = [:]
    /// Differences to add to counters.
    public var inc: JSONObject = [:]
    /// Elements to add to sets.
    public var add: JSONObject = [:]
    /// Elements to take from sets.
    public var remove: JSONObject = [:]
    /// What an intent's handler is given.
    public var payload: JSON?

    /// A change of nothing.
    public init() {}

    /// A change of values.
    public init(set: JSONObject) { self.set = set }

    /// The names of all columns touched.
    public var columns: [String] {
        var seen: [String] = []
        for object in [set, inc, add, remove] {
            for name in object.names where !seen.contains(name) { seen.append(name) }
        }
        return seen
    }

    package static let parts: [(name: String, path: any WritableKeyPath<Change, JSONObject> & Sendable)] = [
        ("set", \.set), ("inc", \.inc), ("add", \.add), ("remove", \.remove),
    ]

    /// The change as JSON: the parts that are not empty.
    public var json: JSONObject {
        var object = JSONObject()
        for part in Change.parts where !self[keyPath: part.path].isEmpty {
            object.append(part.name, .object(self[keyPath: part.path]))
        }
        if let payload { object.append("payload", payload) }
        return object
    }

    /// Reads what ``json`` writes; other members are ignored.
    package init(json: JSONObject) {
        for part in Change.parts { self[keyPath: part.path] = json[part.name]?.object ?? [:] }
        payload = json["payload"]
    }
}

extension Operation {
    /// The operation as the server reads it.
    package func write(to out: inout [UInt8]) { wire.write(to: &out) }

    package var wire: JSONObject {
        var object: JSONObject = ["id": .string(id.text)]
        if case .intent(let name) = action { object.append("intent", .string(name)) }
        if !table.isEmpty { object.append("table", .string(table)) }
        object.append("row", .string(row))
        if case .intent = action {} else { object.append("action", .string(action.word)) }
        for member in change.json.members { object.append(member.name, member.value) }
        switch base {
        case .none: break
        case .version(let version): object.append("base", .integer(version))
        case .after(let id): object.append("base", ["after": .string(id.text)])
        }
        if !after.isEmpty { object.append("after", .array(after.map { .string($0.text) })) }
        object.append("seq", .integer(seq))
        object.append("schema", .integer(Int64(schema)))
        object.append("at", .integer(at.milliseconds))
        return object
    }

    /// The bytes whose digest tells whether two operations of one id are the same: everything that the operation
    /// means, and nothing of when, where or as which number it was recorded.
    package var canonicalBytes: [UInt8] {
        var object = wire
        for name in ["id", "seq", "at"] { object[name] = nil }
        return JSON.object(object).bytes(canonical: true)
    }
}
