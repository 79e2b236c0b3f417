/// One row as the server has it, or its end.
public struct PulledChange: Equatable, Sendable {
    /// The table.
    public var table: String
    /// The row's key.
    public var row: String
    /// The version of this state; a device ignores what is not newer than what it knows.
    public var version: Int64
    /// The whole row, or `nil` for a row that is gone.
    public var set: JSONObject?
    /// Why a row is gone: `nil` when deleted, `scope` when it left what this credential may see.
    public var reason: String?

    /// A change of the given parts.
    public init(table: String, row: String, version: Int64, set: JSONObject?, reason: String? = nil) {
        self.table = table
        self.row = row
        self.version = version
        self.set = set
        self.reason = reason
    }

    package func write(to out: inout [UInt8]) { json.write(to: &out) }

    var json: JSONObject {
        var object: JSONObject = ["table": .string(table), "row": .string(row), "version": .integer(version)]
        if let set { object.append("set", .object(set)) } else { object.append("deleted", true) }
        if let reason { object.append("reason", .string(reason)) }
        return object
    }
}

/// One page of the feed.
public struct PullPage: Equatable, Sendable {
    /// The rows that changed, each once, in the order of their versions.
    public var changes: [PulledChange]
    /// Changes that could not be read, with the reason; the rest of the page counts.
    public var unreadable: [WireError]
    /// Where the next page starts; opaque.
    public var cursor: String
    /// Whether another page follows at once; `false` makes this a checkpoint.
    public var more: Bool
    /// Results of this device's operations that were committed since the cursor.
    public var settled: [OperationResult]
    /// The server's clock.
    public var serverTime: Timestamp
    /// How long the server asks to be left in peace, in seconds: a header, not part of the body.
    public var calmSeconds: Int?
    /// The account whose credential the server saw: a header, not part of the body.
    public var account: String?

    /// A page of the given parts.
    public init(
        changes: [PulledChange],
        cursor: String,
        more: Bool,
        settled: [OperationResult] = [],
        serverTime: Timestamp
    ) {
        self.changes = changes
        unreadable = []
        self.cursor = cursor
        self.more = more
        self.settled = settled
        self.serverTime = serverTime
    }

    /// The JSON body.
    public func bytes() -> [UInt8] {
        var out = Array(#"{"changes":["#.utf8)
        for (index, change) in changes.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            change.write(to: &out)
        }
        out.append(contentsOf: #"],"cursor":"#.utf8)
        JSON.write(cursor, to: &out)
        out.append(contentsOf: (more ? #","more":true"# : #","more":false"#).utf8)
        if !settled.isEmpty {
            out.append(contentsOf: #","settled":"#.utf8)
            JSON.array(settled.map { .object($0.json) }).write(to: &out)
        }
        out.append(contentsOf: #","server_time":"#.utf8)
        JSON.write(serverTime.milliseconds, to: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Reads a JSON body; a change that cannot be read goes to ``unreadable``.
    public init(bytes: [UInt8]) throws(WireError) {
        let root = try WireReader.root(bytes, maxDepth: WireLimits.answerDepth)
        changes = []
        unreadable = []
        for (index, json) in try root.array("changes").enumerated() {
            do throws(WireError) {
                changes.append(try PulledChange(reader: WireReader(json, "changes[\(index)]")))
            } catch {
                unreadable.append(error)
            }
        }
        cursor = try root.string("cursor")
        guard let more = root.object["more"]?.bool else {
            throw WireError(place: "", message: "“more” is missing")
        }
        self.more = more
        settled = try (root.object["settled"]?.array ?? []).map { (json) throws(WireError) in
            try OperationResult(json: json)
        }
        serverTime = Timestamp(milliseconds: try root.integer("server_time"))
    }
}

extension PulledChange {
    init(reader: WireReader) throws(WireError) {
        table = try reader.string("table")
        row = try reader.string("row")
        version = try reader.integer("version")
        reason = reader.object["reason"]?.string
        set = reader.object["set"]?.object
        if set == nil, reader.object["deleted"]?.bool != true {
            throw WireError(place: reader.place, message: "a change has neither a row nor a deletion")
        }
    }
}
