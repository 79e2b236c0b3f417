internal import FieldpostCore
internal import FieldpostSQLite

/// The triggers in a file, against those that its tables need.
struct TriggerSet {
    let connection: Connection
    let schema: Schema

    /// One trigger in the file.
    private struct Found {
        let name: String
        let table: String
        let sql: String
        let place: Int64
        var isOurs: Bool { name.hasPrefix("fieldpost_") }
    }

    private func found() throws -> [String: [Found]] {
        var all: [Found] = []
        try connection.forEach("SELECT name, tbl_name, sql, rowid FROM sqlite_schema WHERE type = 'trigger'")
        {
            all.append(Found(name: $0.text(0), table: $0.text(1), sql: $0.text(2), place: $0.integer(3)))
        }
        return Dictionary(grouping: all, by: \.table)
    }

    /// Whether nothing is to be done.
    func areCurrent() throws -> Bool {
        let found = try found()
        let texts = Set(found.values.joined().map(\.sql))
        guard SharedTriggers.all.allSatisfy({ texts.contains($0.sql) }) else { return false }
        return try schema.tables.allSatisfy { table in
            try Self.isCurrent(found[table.name] ?? [], wanted: capture(table).triggers())
        }
    }

    /// SQLite runs the newest trigger first, and ours must come before the app's: what those change is
    /// recorded after.
    private static func isCurrent(_ found: [Found], wanted: [CaptureSQL.Trigger]) -> Bool {
        let ours = found.filter(\.isOurs)
        guard Set(ours.map(\.sql)) == Set(wanted.map(\.sql)) else { return false }
        let newestOther = found.filter { !$0.isOurs }.map(\.place).max() ?? 0
        return ours.allSatisfy { $0.place > newestOther }
    }

    /// The tables of the file that lack a trigger which `schema`, the one the file was last opened with, gave
    /// them.
    func tablesWithout(of schema: Schema?) throws -> Set<String> {
        let found = try found()
        return Set(
            try self.schema.tables.compactMap { table in
                let known = schema?.table(table.name) ?? table
                let names = Set((found[table.name] ?? []).map(\.name))
                let wanted = try capture(known).triggers()
                return wanted.allSatisfy { names.contains($0.name) } ? nil : table.name
            }
        )
    }

    /// Removes all of ours.
    func drop() throws {
        for trigger in try found().values.joined() where trigger.isOurs {
            try connection.execute("DROP TRIGGER \(quoted(trigger.name))")
        }
    }

    /// Makes the triggers what the schema wants, then records what tables went without them.
    func rebuild(adopting missed: Set<String>) throws {
        let found = try found()
        let texts = Set(found.values.joined().map(\.sql))
        for trigger in SharedTriggers.all where !texts.contains(trigger.sql) {
            try connection.execute("DROP TRIGGER IF EXISTS \(quoted(trigger.name))")
            try connection.execute(trigger.sql)
        }
        var adopted: [String: CaptureSQL] = [:]
        for table in schema.tables {
            let capture = try capture(table)
            let wanted = capture.triggers()
            let here = found[table.name] ?? []
            if !Self.isCurrent(here, wanted: wanted) {
                for trigger in here where trigger.isOurs {
                    try connection.execute("DROP TRIGGER \(quoted(trigger.name))")
                }
                for trigger in wanted { try connection.execute(trigger.sql) }
            }
            if missed.contains(table.name) { adopted[table.name] = capture }
        }
        if !adopted.isEmpty {
            try connection.run("DELETE FROM fieldpost_replaced")
            try Adoption(connection: connection, schema: schema, tables: adopted).run()
        }
    }

    // MARK: Facts

    private func capture(_ table: Table) throws -> CaptureSQL {
        var facts = TableFacts()
        facts.uniqueKeys = try UniqueKey.read(table, connection)
        facts.uncheckedColumns = try uncheckedColumns(table)
        facts.isReferenced = schema.tables.contains { other in
            other.columns.contains { $0.reference?.table == table.name }
        }
        return CaptureSQL(table: table, schemaVersion: schema.version, facts: facts)
    }

    private func uncheckedColumns(_ table: Table) throws -> Set<String> {
        let sql = try connection.scalar(
            "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?",
            .text(table.name)
        )
        guard let sql = sql?.text else { return [] }
        let isStrict = try connection.scalar(
            "SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name = ?",
            .text(table.name)
        )
        if isStrict != .integer(1) { return Set(table.columns.map(\.name)) }
        let nullable = Set(
            try connection.query(
                "SELECT name FROM pragma_table_info(?) WHERE \"notnull\" = 0",
                .text(table.name)
            )
            .compactMap { $0[0].text }
        )
        let ddl = TableDDL(table, side: .device)
        let unchecked = table.columns.filter { column in
            let isTyped = TableDDL.typeCheck(column, "") == nil || sql.contains(ddl.checkName(column))
            return !isTyped || (!column.isOptional && nullable.contains(column.name))
        }
        return Set(unchecked.map(\.name))
    }
}
