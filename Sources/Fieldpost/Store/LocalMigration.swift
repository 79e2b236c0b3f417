internal import FieldpostCore
internal import FieldpostSQLite

/// Brings a file to the app's schema: Fieldpost's tables, the app's tables, indexes and triggers.
struct LocalMigration {
    let connection: Connection
    let schema: Schema

    init(_ connection: Connection, _ schema: Schema) {
        self.connection = connection
        self.schema = schema
    }

    /// Fails for a file from a newer app, before anything is written.
    func refuseNewer() throws {
        guard try exists("fieldpost_meta") else { return }
        let format = try meta("format")?.integer ?? 0
        let version = try meta("schema_version")?.integer ?? 0
        if format > LocalTables.format || version > Int64(schema.version) {
            throw FieldpostError(
                .newerFormat,
                "The file was written by a newer version (schema \(version), format \(format)); update the app. "
                    + "Nothing was changed.")
        }
    }

    func run(at now: Timestamp, random: inout some RandomNumberGenerator) throws {
        // Rebuilding a table in a migration needs foreign keys off, which only works outside a transaction.
        try connection.run("PRAGMA foreign_keys = OFF")
        defer { try? connection.run("PRAGMA foreign_keys = ON") }
        if try isCurrent() { return }
        let identity = UUIDText.version7(at: now, using: &random)
        try connection.transaction(.immediate) {
            if try !exists("fieldpost_meta") {
                try connection.execute(LocalTables.script)
                try setMeta("format", .integer(LocalTables.format))
                try setMeta("device", .text(identity))
            }
            try connection.run("UPDATE fieldpost_session SET applying = 1")
            try migrateTables()
            try connection.run("UPDATE fieldpost_session SET applying = 0, grp = NULL, at = NULL, trusted = 0")
            try rebuildTriggers()
            try setMeta("schema", .text(schema.json.text()))
            try setMeta("schema_version", .integer(Int64(schema.version)))
        }
    }

    /// Whether the file is as this schema wants it, so that opening writes nothing.
    private func isCurrent() throws -> Bool {
        guard try exists("fieldpost_meta"), try meta("schema") == .text(schema.json.text()) else { return false }
        var found: [String: String] = [:]
        try connection.forEach("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'fieldpost_*'") {
            found[$0.text(0)] = $0.text(1)
        }
        return try schema.tables.allSatisfy { table in
            try exists(table.name) && wanted(table).allSatisfy { found[$0.name] == $0.sql }
        }
    }

    private func exists(_ table: String) throws(StoreError) -> Bool {
        try connection.scalar("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", .text(table)) != nil
    }

    private func meta(_ key: String) throws(StoreError) -> Value? {
        try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = ?", .text(key))
    }

    private func setMeta(_ key: String, _ value: Value) throws(StoreError) {
        try connection.run("INSERT OR REPLACE INTO fieldpost_meta (key, value) VALUES (?, ?)", .text(key), value)
    }

    // MARK: Tables

    private func migrateTables() throws {
        let stored = try meta("schema_version")?.integer ?? Int64(schema.version)
        for step in schema.migrations.sorted(by: { $0.from < $1.from }) where Int64(step.from) >= stored {
            for statement in step.sql { try connection.execute(statement) }
        }
        for table in schema.tables {
            let ddl = TableDDL(table, side: .device)
            if try exists(table.name) {
                try addMissingColumns(table, ddl)
            } else {
                try connection.execute(ddl.createTable(schema: schema))
            }
            for index in ddl.createIndexes() { try connection.execute(index) }
        }
    }

    private func addMissingColumns(_ table: Table, _ ddl: TableDDL) throws {
        let found = Set(try connection.query("SELECT name FROM pragma_table_info(?)", .text(table.name)).compactMap { $0[0].text })
        for column in table.columns where !found.contains(column.name) {
            guard column.isOptional || column.defaultValue != nil else {
                throw SchemaError(problems: [
                    .init(
                        table: table.name, column: column.name,
                        message: "the file has no such column, and old rows would have no value for it",
                        remedy: "give it a default, make it optional, or add it in a migration's sql")
                ])
            }
            try connection.execute(
                "ALTER TABLE \(quoted(table.name)) ADD COLUMN \(ddl.columnSQL(column, schema: schema))")
        }
    }

    // MARK: Triggers

    private func wanted(_ table: Table) throws -> [CaptureSQL.Trigger] {
        CaptureSQL(table: table, schemaVersion: schema.version, uniqueKeys: try uniqueKeys(table)).triggers()
    }

    /// The columns of each unique index that is neither the key's nor partial nor over an expression.
    private func uniqueKeys(_ table: Table) throws -> [[String]] {
        var keys: [[String]] = []
        let lists = try connection.query(
            "SELECT name FROM pragma_index_list(?) WHERE \"unique\" = 1 AND origin <> 'pk' AND partial = 0 ORDER BY name",
            .text(table.name))
        for list in lists {
            let columns = try connection.query("SELECT name FROM pragma_index_info(?) ORDER BY seqno", list[0])
            let names = columns.compactMap { $0[0].text }
            if names.count == columns.count { keys.append(names) }
        }
        return keys
    }

    private func rebuildTriggers() throws {
        let isNewFile = try meta("schema") == nil
        for table in schema.tables {
            let wanted = try wanted(table)
            var found: [String: String] = [:]
            try connection.forEach(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND name GLOB 'fieldpost_*'",
                [.text(table.name)]
            ) { found[$0.text(0)] = $0.text(1) }
            let missed = wanted.contains { found[$0.name] == nil }
            for name in found.keys.sorted() where !wanted.contains(where: { $0.name == name && $0.sql == found[name] }) {
                try connection.execute("DROP TRIGGER \(quoted(name))")
            }
            for trigger in wanted where found[trigger.name] != trigger.sql { try connection.execute(trigger.sql) }
            if missed { try adopt(table, isNewFile: isNewFile) }
        }
    }

    /// Records what was written while the triggers were missing, as far as it can be told: rows nobody recorded, and
    /// rows that are gone.
    private func adopt(_ table: Table, isNewFile: Bool) throws {
        let capture = CaptureSQL(table: table, schemaVersion: schema.version, uniqueKeys: [])
        let key = quoted(table.key)
        let literal = sqlString(table.name)
        try connection.execute(
            capture.create(
                row: "t", from: ", \(quoted(table.name)) AS t",
                where: "NOT EXISTS (SELECT 1 FROM fieldpost_rows AS k WHERE k.tbl = \(literal) AND k.row = t.\(key) AND k.deleted = 0) "
                    + "AND NOT EXISTS (SELECT 1 FROM fieldpost_outbox AS o WHERE o.row = t.\(key) AND o.tbl = \(literal))"))
        if isNewFile { return }
        try connection.execute(
            capture.delete(
                "k", keyed: "k.row", from: ", fieldpost_rows AS k",
                where: "k.tbl = \(literal) AND k.deleted = 0 "
                    + "AND NOT EXISTS (SELECT 1 FROM \(quoted(table.name)) AS t WHERE t.\(key) = k.row) "
                    + "AND NOT EXISTS (SELECT 1 FROM fieldpost_outbox AS o WHERE o.row = k.row AND o.tbl = \(literal))"))
    }
}
