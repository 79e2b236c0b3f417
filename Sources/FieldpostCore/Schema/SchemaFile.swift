extension Schema {
    /// Reads a schema file: JSON with the same meaning as the Swift form.
    ///
    /// A name the file format does not know is a fault that names the nearest known one.
    /// - Throws: ``SchemaError`` with every fault found; the schema is validated.
    public init(json bytes: [UInt8]) throws(SchemaError) {
        let json: JSON
        do { json = try JSON(bytes: bytes) } catch {
            throw SchemaError(problems: [
                .init(
                    table: nil,
                    column: nil,
                    message: "the file is not JSON: \(error.message) at byte \(error.offset)",
                    remedy: "correct the text there"
                )
            ])
        }
        var reader = SchemaReader()
        let schema = reader.schema(json)
        try reader.problems.check()
        try schema.validate()
        self = schema
    }
}

/// Turns the JSON of a schema file into a ``Schema``, collecting faults as it goes.
private struct SchemaReader {
    var problems = SchemaProblems()
    private var table: String?
    private var column: String?

    private mutating func fault(_ message: String, _ remedy: String) {
        problems.add(table, column, message, remedy: remedy)
    }

    private mutating func members(_ json: JSON, _ what: String, _ known: [String]) -> JSONObject {
        guard let object = json.object else {
            fault("\(what) is not an object", "write it as { … }")
            return JSONObject()
        }
        for name in object.names where !known.contains(name) {
            fault("\(what) has no “\(name)”", suggestion(name, known))
        }
        return object
    }

    private mutating func choice<T: RawRepresentable & CaseIterable>(
        _ json: JSON?,
        _ what: String,
        default fallback: T
    ) -> T where T.RawValue == String {
        guard let json else { return fallback }
        if let text = json.string, let value = T(rawValue: text) { return value }
        let known = T.allCases.map(\.rawValue)
        fault("the \(what) “\(json.string ?? "…")” is unknown", suggestion(json.string ?? "", known))
        return fallback
    }

    private mutating func strings(_ json: JSON?, _ what: String) -> [String] {
        guard let json else { return [] }
        guard let array = json.array, array.allSatisfy({ $0.string != nil }) else {
            fault("\(what) is not a list of names", "write it as [\"…\"]")
            return []
        }
        return array.compactMap(\.string)
    }

    private mutating func lists(_ json: JSON?, _ what: String) -> [[String]] {
        guard let json else { return [] }
        guard let array = json.array else {
            fault("\(what) is not a list of lists", "write it as [[\"…\"]]")
            return []
        }
        return array.map { strings($0, what) }
    }

    mutating func schema(_ json: JSON) -> Schema {
        let root = members(json, "the schema", ["version", "tables", "migrations"])
        let version = root["version"]?.integer.flatMap { Int(exactly: $0) }
        if version == nil { fault("there is no version", "add \"version\": 1") }
        var tables: [Table] = []
        if let object = root["tables"]?.object {
            for member in object.members { tables.append(read(member.name, member.value)) }
        } else {
            fault("there are no tables", "add \"tables\": { … }")
        }
        table = nil
        let migrations = (root["migrations"]?.array ?? []).map { migration($0) }
        return Schema(version: version ?? 1, tables: tables, migrations: migrations)
    }

    private mutating func read(_ name: String, _ json: JSON) -> Table {
        table = name
        let object = members(
            json,
            "a table",
            [
                "columns", "key", "scope", "references", "conflict", "rules", "outbox", "onRemoteDelete",
                "coalesce",
                "writable", "checks", "unique", "indexes", "defaults",
            ]
        )
        var result = Table(name, columns: columns(object))
        result.key = object["key"]?.string ?? "id"
        result.scope = scope(object["scope"])
        result.conflict = choice(object["conflict"], "conflict policy", default: .lastWriteWins)
        result.outbox = choice(object["outbox"], "outbox kind", default: .operations)
        result.onRemoteDelete = choice(object["onRemoteDelete"], "onRemoteDelete", default: .deleteWins)
        if let value = object["coalesce"] {
            if let flag = value.bool {
                result.coalesce = flag
            } else {
                fault("coalesce is no boolean", "write true or false")
            }
        }
        if let roles = object["writable"] { result.writable = strings(roles, "writable") }
        for member in members(of: object["rules"], "rules") {
            column = member.name
            result.rules[member.name] = choice(member.value, "rule", default: .lastWriteWins)
        }
        column = nil
        for member in members(of: object["checks"], "checks") {
            guard let expression = member.value.string else {
                fault("the check \(member.name) is no text", "write the SQL condition as a string")
                continue
            }
            result.checks.append(Check(name: member.name, expression: expression))
        }
        result.unique = lists(object["unique"], "unique")
        result.indexes = lists(object["indexes"], "indexes")
        return result
    }

    private mutating func members(of json: JSON?, _ what: String) -> [JSONObject.Member] {
        guard let json else { return [] }
        guard let object = json.object else {
            fault("\(what) is not an object", "write it as { \"name\": … }")
            return []
        }
        return object.members
    }

    private mutating func scope(_ json: JSON?) -> Scope? {
        guard let json, json != .null else { return nil }
        if let name = json.string { return .column(name) }
        let object = members(json, "the scope", ["from"])
        guard let name = object["from"]?.string else {
            fault("the scope names no column", "write a column, or { \"from\": a reference }")
            return nil
        }
        return .reference(name)
    }

    private mutating func columns(_ object: JSONObject) -> [Column] {
        var result: [Column] = []
        let listed = members(of: object["columns"], "columns")
        if listed.isEmpty { fault("there are no columns", "add \"columns\": { \"id\": \"uuid\", … }") }
        for member in listed {
            column = member.name
            result.append(readColumn(member.name, member.value))
        }
        for (kind, apply) in [("defaults", setDefault), ("references", setReference)] {
            for member in members(of: object[kind], kind) {
                column = member.name
                guard let index = result.firstIndex(where: { $0.name == member.name }) else {
                    fault(
                        "is named in \(kind), but is no column",
                        suggestion(member.name, result.map(\.name))
                    )
                    continue
                }
                apply(&self, &result[index], member.value)
            }
        }
        column = nil
        return result
    }

    private mutating func readColumn(_ name: String, _ json: JSON) -> Column {
        let text = json.string ?? ""
        let bare = text.hasSuffix("?") ? String(text.dropLast()) : text
        let known = ColumnType.allCases.map(\.rawValue)
        if ColumnType(rawValue: bare) == nil {
            fault("the type “\(text)” is unknown", suggestion(bare, known))
        }
        var result = Column(name, ColumnType(rawValue: bare) ?? .text)
        result.isOptional = text.hasSuffix("?")
        return result
    }

    private func setDefault(_ reader: inout SchemaReader, _ column: inout Column, _ json: JSON) {
        column.defaultValue = json
    }

    private func setReference(_ reader: inout SchemaReader, _ column: inout Column, _ json: JSON) {
        if let name = json.string {
            column.reference = Reference(table: name, onDelete: .restrict)
            return
        }
        let object = reader.members(json, "a reference", ["table", "onDelete"])
        guard let name = object["table"]?.string else {
            reader.fault("the reference names no table", "write a table, or { \"table\": … }")
            return
        }
        let action = reader.choice(object["onDelete"], "onDelete", default: Reference.DeleteAction.restrict)
        column.reference = Reference(table: name, onDelete: action)
    }

    private mutating func migration(_ json: JSON) -> Migration {
        let object = members(json, "a migration", ["from", "to", "sql", "postgresql", "operations"])
        var result = Migration(
            from: Int(object["from"]?.integer ?? 0),
            to: Int(object["to"]?.integer ?? 0),
            sql: strings(object["sql"], "sql"),
            postgresql: strings(object["postgresql"], "postgresql")
        )
        for member in members(of: object["operations"], "operations") {
            let upcast = members(member.value, "an upcast", ["rename", "default"])
            var step = Upcast()
            for rename in members(of: upcast["rename"], "rename") {
                step.rename[rename.name] = rename.value.string
            }
            for value in members(of: upcast["default"], "default") { step.defaults[value.name] = value.value }
            result.operations[member.name] = step
        }
        return result
    }
}
