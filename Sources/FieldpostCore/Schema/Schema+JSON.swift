extension Schema {
    /// The schema as the JSON of a schema file; reading it back gives an equal schema.
    public var json: JSON {
        var root: JSONObject = ["version": .integer(Int64(version))]
        root.append("tables", .object(JSONObject(distinct: tables.map { ($0.name, $0.json) })))
        if !migrations.isEmpty { root.append("migrations", .array(migrations.map(\.json))) }
        return .object(root)
    }
}

extension Table {
    fileprivate var json: JSON {
        var object = JSONObject()
        func add<T: RawRepresentable & Equatable>(_ name: String, _ value: T, unless fallback: T)
        where T.RawValue == String {
            if value != fallback { object.append(name, .string(value.rawValue)) }
        }
        func add(_ name: String, _ members: [JSONObject.Member]) {
            if !members.isEmpty { object.append(name, .object(JSONObject(distinct: members))) }
        }
        add("columns", columns.map { ($0.name, .string($0.type.rawValue + ($0.isOptional ? "?" : ""))) })
        if key != "id" { object.append("key", .string(key)) }
        switch scope {
        case .column(let name): object.append("scope", .string(name))
        case .reference(let name): object.append("scope", ["from": .string(name)])
        case nil: break
        }
        add("references", columns.compactMap { column in column.reference.map { (column.name, $0.json) } })
        add("conflict", conflict, unless: .lastWriteWins)
        add("rules", rules.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value.rawValue)) })
        add("outbox", outbox, unless: .operations)
        add("onRemoteDelete", onRemoteDelete, unless: .deleteWins)
        if coalesce { object.append("coalesce", true) }
        if writable != Table.allRoles { object.append("writable", .array(writable.map(JSON.string))) }
        add("checks", checks.map { ($0.name, .string($0.expression)) })
        if !unique.isEmpty { object.append("unique", JSON.lists(unique)) }
        if !indexes.isEmpty { object.append("indexes", JSON.lists(indexes)) }
        add("defaults", columns.compactMap { column in column.defaultValue.map { (column.name, $0) } })
        return .object(object)
    }
}

extension JSON {
    fileprivate static func lists(_ lists: [[String]]) -> JSON {
        .array(lists.map { .array($0.map(JSON.string)) })
    }
}

extension Reference {
    fileprivate var json: JSON {
        onDelete == .restrict
            ? .string(table) : ["table": .string(table), "onDelete": .string(onDelete.rawValue)]
    }
}

extension Migration {
    fileprivate var json: JSON {
        var object: JSONObject = ["from": .integer(Int64(from)), "to": .integer(Int64(to))]
        if !sql.isEmpty { object.append("sql", .array(sql.map(JSON.string))) }
        if !postgresql.isEmpty { object.append("postgresql", .array(postgresql.map(JSON.string))) }
        if !operations.isEmpty {
            let members = operations.sorted { $0.key < $1.key }.map { ($0.key, $0.value.json) }
            object.append("operations", .object(JSONObject(distinct: members)))
        }
        return .object(object)
    }
}

extension Upcast {
    fileprivate var json: JSON {
        let renames = rename.sorted { $0.key < $1.key }.map { ($0.key, JSON.string($0.value)) }
        let values = defaults.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return [
            "rename": .object(JSONObject(distinct: renames)),
            "default": .object(JSONObject(distinct: values)),
        ]
    }
}
