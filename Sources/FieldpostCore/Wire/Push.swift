/// Operations of one local transaction, applied or rejected as one.
public struct OperationGroup: Equatable, Sendable {
    /// The operations in order; never empty.
    public var operations: [Operation]

    /// A group of `operations`.
    public init(operations: [Operation]) { self.operations = operations }
}

/// The body of a push.
public struct PushRequest: Equatable, Sendable {
    /// The groups in order.
    public var groups: [OperationGroup]

    /// A push of `groups`.
    public init(groups: [OperationGroup]) { self.groups = groups }

    /// The JSON body.
    public func bytes() -> [UInt8] {
        var out = Array(#"{"groups":["#.utf8)
        for (index, group) in groups.enumerated() {
            out.append(contentsOf: (index > 0 ? #",{"ops":["# : #"{"ops":["#).utf8)
            for (index, operation) in group.operations.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                operation.write(to: &out)
            }
            out.append(contentsOf: "]}".utf8)
        }
        out.append(contentsOf: "]}".utf8)
        return out
    }

    /// Reads a JSON body.
    ///
    /// - Throws: ``WireError`` that names the place, for anything that is not a push of at least one group whose
    ///   operations all have an id, a row and an action.
    public init(bytes: [UInt8], maxDepth: Int = WireLimits.jsonDepth) throws(WireError) {
        let root = try WireReader.root(bytes, maxDepth: maxDepth)
        var groups: [OperationGroup] = []
        for (index, group) in try root.array("groups").enumerated() {
            let place = "groups[\(index)]"
            let operations = try WireReader(group, place).array("ops")
            if operations.isEmpty { throw WireError(place: place, message: "a group needs an operation") }
            groups.append(
                OperationGroup(
                    operations: try operations.enumerated().map { (index, json) throws(WireError) in
                        try Operation(wire: WireReader(json, "\(place).ops[\(index)]"))
                    }
                )
            )
        }
        self.groups = groups
    }
}

/// What became of one operation.
public struct OperationResult: Equatable, Sendable {
    /// The server's verdict.
    public enum Status: String, Sendable, CaseIterable {
        /// Done.
        case applied
        /// The row had changed since; the server's row comes with it.
        case conflict
        /// Never will be accepted.
        case rejected
        /// Not now; this operation only.
        case retry
        /// Something it depends on is not applied.
        case blocked
    }

    /// The operation.
    public var id: OperationID
    /// The verdict.
    public var status: Status
    /// The row's version after it.
    public var version: Int64?
    /// The whole row after it, left out where the device already shows it.
    public var row: JSONObject?
    /// Whether the row is deleted, in a conflict.
    public var deleted = false
    /// A stable reason.
    public var code: String?
    /// The reason in words.
    public var message: String?
    /// The columns at fault.
    public var fields: [String] = []
    /// How long to wait before a retry, in milliseconds.
    public var afterMilliseconds: Int64?
    /// The operation that stands in the way.
    public var by: OperationID?

    /// A result without details.
    public init(id: OperationID, status: Status) {
        self.id = id
        self.status = status
    }

    /// The result as JSON.
    public var json: JSONObject {
        var object: JSONObject = ["id": .string(id.text), "status": .string(status.rawValue)]
        if let version { object.append("version", .integer(version)) }
        if let row {
            object.append("row", .object(row))
        } else if status == .conflict {
            object.append("row", .null)
        }
        if deleted { object.append("deleted", true) }
        if let code { object.append("code", .string(code)) }
        if let message { object.append("message", .string(message)) }
        if !fields.isEmpty { object.append("fields", .array(fields.map(JSON.string))) }
        if let afterMilliseconds { object.append("after_ms", .integer(afterMilliseconds)) }
        if let by { object.append("by", .string(by.text)) }
        return object
    }

    /// Reads what ``json`` writes.
    public init(json: JSON) throws(WireError) { try self.init(reader: WireReader(json, "result")) }

    init(reader: WireReader) throws(WireError) {
        id = try reader.operationID("id")
        guard let status = Status(rawValue: try reader.string("status")) else {
            throw WireError(place: reader.place, message: "the status is unknown")
        }
        self.status = status
        version = reader.object["version"]?.integer
        row = reader.object["row"]?.object
        deleted = reader.object["deleted"]?.bool ?? false
        code = reader.object["code"]?.string
        message = reader.object["message"]?.string
        fields = reader.object["fields"]?.array?.compactMap(\.string) ?? []
        afterMilliseconds = reader.object["after_ms"]?.integer
        by = reader.object["by"]?.string.flatMap { OperationID($0) }
    }
}

/// The answer to a push: a result for each operation.
public struct PushResponse: Equatable, Sendable {
    /// One result for each operation sent, matched by id.
    public var results: [OperationResult]
    /// The server's clock.
    public var serverTime: Timestamp
    /// How long the server asks to be left in peace, in seconds: a header, not part of the body.
    public var calmSeconds: Int?
    /// The account whose credential the server saw: a header, not part of the body.
    public var account: String?

    /// An answer of `results`.
    public init(results: [OperationResult], serverTime: Timestamp) {
        self.results = results
        self.serverTime = serverTime
    }

    /// The JSON body.
    public func bytes() -> [UInt8] {
        JSON.object([
            "results": .array(results.map { .object($0.json) }),
            "server_time": .integer(serverTime.milliseconds),
        ]).bytes()
    }

    /// Reads a JSON body.
    public init(bytes: [UInt8]) throws(WireError) {
        let root = try WireReader.root(bytes, maxDepth: WireLimits.answerDepth)
        results = try root.array("results").map { (json) throws(WireError) in try OperationResult(json: json)
        }
        serverTime = Timestamp(milliseconds: try root.integer("server_time"))
    }
}

extension Operation {
    init(wire reader: WireReader) throws(WireError) {
        id = try reader.operationID("id")
        row = try reader.string("row")
        if let name = reader.object["intent"] {
            guard let name = name.string else {
                throw WireError(place: reader.place, message: "the intent has no name")
            }
            action = .intent(name)
            table = reader.object["table"]?.string ?? ""
        } else {
            table = try reader.string("table")
            switch try reader.string("action") {
            case "create": action = .create
            case "update": action = .update
            case "delete": action = .delete
            default:
                throw WireError(place: reader.place, message: "the action is none of create, update, delete")
            }
        }
        for part in Change.parts {
            if let json = reader.object[part.name], json.object == nil {
                throw WireError(place: reader.place, message: "“\(part.name)” is not an object")
            }
        }
        change = Change(json: reader.object)
        base = try Operation.base(reader)
        after = try reader.operationIDs("after")
        seq =
            try reader.object["seq"].map { (json) throws(WireError) in try reader.integer(json, "seq") } ?? 0
        schema = Int(reader.object["schema"]?.integer ?? 0)
        at = Timestamp(milliseconds: reader.object["at"]?.integer ?? 0)
    }

    private static func base(_ reader: WireReader) throws(WireError) -> Base {
        switch reader.object["base"] {
        case nil, .null: return .none
        case .integer(let version): return .version(version)
        case .object(let object):
            if let id = object["after"]?.string.flatMap({ OperationID($0) }) { return .after(id) }
        default: break
        }
        throw WireError(
            place: reader.place,
            message: "the base is neither a version nor {\"after\": an operation}"
        )
    }
}
