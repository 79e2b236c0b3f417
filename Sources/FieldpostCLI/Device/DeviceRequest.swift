internal import Fieldpost
internal import FieldpostCore

/// One command of the device's protocol, read from its line.
enum DeviceRequest: Equatable, Sendable {
    /// One operation of a `write`.
    struct Write: Equatable, Sendable {
        enum Action: String, CaseIterable, Sendable { case create, update, delete }
        var action: Action
        var table: String
        var row: String?
        var set: JSONObject
    }

    case write([Write])
    case exec(sql: String, arguments: [Value])
    case query(sql: String, arguments: [Value])
    case sync
    case status(table: String?, row: String?)
    case outbox, failed, conflicts
    case retry(String)
    case discard(String, dependants: Bool)
    case edit(String, set: JSONObject)
    case undo(String)
    case settle(Int64, keep: Winner)
    case settled(String)
    case clock(offset: Int64)
    case network(up: Bool)

    /// Every command by name, with the members it takes beside `do`.
    private static let members: [String: [String]] = [
        "write": ["ops"], "exec": ["sql", "args"], "query": ["sql", "args"],
        "intent": ["name", "table", "row", "payload"],
        "attach": ["table", "row", "column", "path"], "sync": [], "status": ["table", "row"], "outbox": [],
        "failed": [],
        "conflicts": [], "retry": ["operation"], "discard": ["operation", "dependants"],
        "undo": ["operation"],
        "edit": ["operation", "set"], "settle": ["conflict", "keep", "value"], "settled": ["operation"],
        "clock": ["offset_ms"], "network": ["up"],
    ]

    /// Reads a line.
    ///
    /// - Throws: ``Failure`` with the code `usage`, `type` or `unsupported`.
    init(line: [UInt8]) throws(Failure) {
        let json: JSON
        do { json = try JSON(bytes: line) } catch {
            throw DeviceRequest.usage(
                "The line is not JSON at byte \(error.offset): \(error.message); send one object a line."
            )
        }
        guard let object = json.object, let name = object["do"]?.string else {
            throw DeviceRequest.usage("The line is no command; send {\"do\":…} with the command's name.")
        }
        guard let known = DeviceRequest.members[name] else {
            let near = nearest(to: name, in: DeviceRequest.members.keys.sorted()) ?? ""
            throw DeviceRequest.usage("There is no command \(name); did you mean \(near)?")
        }
        for member in object.names where member != "do" && !known.contains(member) {
            let hint = nearest(to: member, in: known).map { "did you mean \($0)?" } ?? "leave it out."
            throw DeviceRequest.usage("\(name) takes no “\(member)”; \(hint)")
        }
        self = try DeviceRequest.read(name, Members(command: name, object: object))
    }

    private static func read(_ name: String, _ members: Members) throws(Failure) -> DeviceRequest {
        switch name {
        case "write": return .write(try writes(members))
        case "exec":
            return .exec(
                sql: try members.string("sql"),
                arguments: try SQLValues.values(members.object["args"])
            )
        case "query":
            return .query(
                sql: try members.string("sql"),
                arguments: try SQLValues.values(members.object["args"])
            )
        case "sync": return .sync
        case "status": return try status(members)
        case "outbox": return .outbox
        case "failed": return .failed
        case "conflicts": return .conflicts
        case "retry": return .retry(try members.string("operation"))
        case "discard":
            return .discard(
                try members.string("operation"),
                dependants: try members.bool("dependants", default: false)
            )
        case "undo": return .undo(try members.string("operation"))
        case "edit":
            guard let set = members.object["set"]?.object else {
                throw DeviceRequest.usage("edit needs “set” as an object of columns.")
            }
            return .edit(try members.string("operation"), set: set)
        case "settle": return .settle(try members.integer("conflict"), keep: try winner(members))
        case "settled": return .settled(try members.string("operation"))
        case "clock": return .clock(offset: try members.integer("offset_ms"))
        case "network": return .network(up: try members.bool("up"))
        default: throw .unsupported(name)
        }
    }

    private static func winner(_ members: Members) throws(Failure) -> Winner {
        switch try members.string("keep") {
        case "mine": return .mine
        case "theirs": return .theirs
        case "value":
            guard let values = members.object["value"]?.object else {
                throw usage("settle with keep “value” needs “value” as an object of columns.")
            }
            return .value(values)
        default: throw usage("settle keeps “mine”, “theirs” or “value”.")
        }
    }

    private static func status(_ members: Members) throws(Failure) -> DeviceRequest {
        let table = try members.optionalString("table")
        let row = try members.optionalString("row")
        if (table == nil) != (row == nil) { throw usage("status takes both table and row, or neither.") }
        return .status(table: table, row: row)
    }

    private static func writes(_ members: Members) throws(Failure) -> [Write] {
        guard let list = members.object["ops"]?.array else {
            throw usage("write needs “ops”: a list of operations.")
        }
        var writes: [Write] = []
        for (index, json) in list.enumerated() {
            guard let object = json.object else {
                throw usage("ops[\(index)] is no object; write it as {\"table\":…}.")
            }
            writes.append(try write(Members(command: "ops[\(index)]", object: object)))
        }
        return writes
    }

    private static func write(_ members: Members) throws(Failure) -> Write {
        let known = ["table", "action", "row", "set"]
        for name in members.object.names where !known.contains(name) {
            throw usage(
                "\(members.command) has no “\(name)”; did you mean \(nearest(to: name, in: known) ?? "")?"
            )
        }
        let table = try members.string("table")
        let word = try members.string("action")
        guard let action = Write.Action(rawValue: word) else {
            throw usage("\(members.command): the action is create, update or delete.")
        }
        let row = try members.optionalString("row")
        if row == nil, action != .create { throw usage("\(members.command): \(word) needs “row”.") }
        let given = members.object["set"].flatMap { $0 == .null ? nil : $0 }
        if given != nil, given?.object == nil {
            throw usage("\(members.command): “set” is an object of columns.")
        }
        if given == nil, action == .update { throw usage("\(members.command): update needs “set”.") }
        if action == .delete, given?.object?.isEmpty == false {
            throw usage("\(members.command): delete takes no “set”.")
        }
        return Write(action: action, table: table, row: row, set: given?.object ?? [:])
    }

    static func usage(_ message: String) -> Failure { Failure("usage", message, exit: .usage) }
}

/// The members of one command.
private struct Members {
    let command: String
    let object: JSONObject

    func string(_ name: String) throws(Failure) -> String {
        guard let value = object[name]?.string else {
            throw DeviceRequest.usage("\(command) needs “\(name)” as a string.")
        }
        return value
    }

    func optionalString(_ name: String) throws(Failure) -> String? {
        guard let value = object[name], value != .null else { return nil }
        guard let text = value.string else {
            throw DeviceRequest.usage("\(command) takes “\(name)” as a string.")
        }
        return text
    }

    func integer(_ name: String) throws(Failure) -> Int64 {
        guard let value = object[name]?.integer else {
            throw DeviceRequest.usage("\(command) needs “\(name)” as an integer.")
        }
        return value
    }

    func bool(_ name: String, default fallback: Bool? = nil) throws(Failure) -> Bool {
        guard let value = object[name] ?? fallback.map(JSON.bool), let bool = value.bool else {
            throw DeviceRequest.usage("\(command) needs “\(name)” as true or false.")
        }
        return bool
    }
}
