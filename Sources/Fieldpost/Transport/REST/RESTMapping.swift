internal import FieldpostCore

/// Turns rows into the server's records and back.
struct RESTMapping {
    let table: Table
    let resource: RESTProfile.Resource

    /// The server's name of a column.
    func remote(_ column: String) -> String { resource.columns[column] ?? column }

    /// The body of a request that carries `columns`; `nil` for none.
    func body(_ columns: JSONObject, for action: RESTProfile.Action) -> [UInt8]? {
        if action.content == .none || ["GET", "DELETE", "HEAD"].contains(action.method) { return nil }
        var fields = action.constants
        for member in columns.members where !(action.omitsNull && member.value == .null) {
            fields[remote(member.name)] = member.value
        }
        // Sorted, so that equal operations make equal bytes whatever the order of capture.
        let content = JSON.object(fields.sorted)
        return (action.wrap.map { JSON.object([$0: content]) } ?? content).bytes()
    }

    /// The row that a record holds; what it lacks is `NULL` or the column's default.
    func row(_ record: JSONObject, key: String) -> JSONObject {
        var row = JSONObject()
        for column in table.columns {
            if column.name == table.key {
                row.append(column.name, .string(key))
            } else if let value = record[remote(column.name)] {
                row.append(column.name, value)
            } else if column.isOptional || column.defaultValue != nil {
                row.append(column.name, column.defaultValue ?? .null)
            }
        }
        return row
    }

    /// The row of an answer that tells it whole; `nil` for one that leaves out something that was sent.
    func answeredRow(_ record: JSONObject, key: String, sent: JSONObject) -> JSONObject? {
        for member in sent.members where member.name != table.key && member.value != .null {
            if record[remote(member.name)] == nil { return nil }
        }
        return row(record, key: key)
    }

    /// Whether a record shows `columns`: compared as the columns' types compare, absent and `null` being one.
    func shows(_ record: JSONObject, _ columns: JSONObject) -> Bool {
        columns.members.allSatisfy { member in
            guard member.name != table.key, let column = table.column(member.name) else { return true }
            return same(record[remote(member.name)] ?? .null, member.value, column)
        }
    }

    private func same(_ left: JSON, _ right: JSON, _ column: Column) -> Bool {
        if left == right { return true }
        // JSON text keeps the order of members, which some servers do not.
        if column.type == .json { return left.bytes(canonical: true) == right.bytes(canonical: true) }
        guard let left = try? column.type.value(from: left), let right = try? column.type.value(from: right)
        else {
            return false
        }
        return left == right
    }

    /// The key of a record: a string, or an integer as its digits.
    func key(_ record: JSONObject) -> String? {
        switch record[resource.record.id] {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: nil
        }
    }

    /// The version of a record, from its field or from the header of its own answer.
    func version(_ record: JSONObject?, _ answer: HTTPAnswer? = nil) -> Int64? {
        if let field = resource.record.version, let value = record?[field] {
            if let integer = value.integer { return integer }
            if let text = value.string, let integer = RESTValues.version(text) { return integer }
        }
        guard let header = resource.record.versionHeader else { return nil }
        return RESTValues.version(answer?.headers[header.lowercased()])
    }

    func isDeleted(_ record: JSONObject) -> Bool {
        resource.record.deleted.flatMap { record[$0]?.bool } ?? false
    }

    /// The record in an answer about one.
    func record(_ body: JSON?) -> JSONObject? { RESTValues.at(resource.record.at, in: body)?.object }
}

/// Small readings of answers.
enum RESTValues {
    /// The integer of `"123"`, `W/"123"` or `123`.
    static func version(_ text: String?) -> Int64? {
        guard var text = text?[...] else { return nil }
        if text.hasPrefix("W/") { text = text.dropFirst(2) }
        if text.count >= 2, text.first == "\"", text.last == "\"" { text = text.dropFirst().dropLast() }
        return Int64(text)
    }

    /// The value at `path`, names with dots between; the whole for `nil`.
    static func at(_ path: String?, in json: JSON?) -> JSON? {
        guard let path else { return json }
        return path.split(separator: ".").reduce(json) { $0?.object?[String($1)] }
    }

    /// A string or a number as text.
    static func text(_ json: JSON?) -> String? {
        switch json {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: nil
        }
    }

    /// The body as JSON, or `nil`.
    static func json(_ answer: HTTPAnswer) -> JSON? {
        try? JSON(bytes: answer.body, maxDepth: WireLimits.answerDepth)
    }

    /// Path and query of an address, whatever server it names: behind a proxy it may name the wrong one.
    static func target(_ address: String) -> String? {
        if address.hasPrefix("/"), !address.hasPrefix("//") { return address }
        let parts = address.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].hasSuffix(":"), parts[1].isEmpty else { return nil }
        let rest = parts[2]
        guard let start = rest.firstIndex(where: { $0 == "/" || $0 == "?" }) else { return nil }
        return rest[start] == "/" ? String(rest[start...]) : "/" + rest[start...]
    }
}
