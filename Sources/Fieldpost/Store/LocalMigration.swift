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
        guard try exists("fieldpost_lease") else {
            throw FieldpostError(
                .notAStore,
                "The file belongs to another program; give the file that the app opens. Nothing was changed."
            )
        }
        let format = try meta("format")?.integer ?? 0
        let version = try meta("schema_version")?.integer ?? 0
        if format > LocalTables.format || version > Int64(schema.version) {
            throw FieldpostError(
                .newerFormat,
                "The file was written by a newer version (schema \(version), format \(format)); update the app. "
                    + "Nothing was changed."
            )
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
            var missed = try triggers.tablesWithout(of: storedSchema())
            try connection.run("UPDATE fieldpost_session SET applying = 1")
            if try migrateTables() { missed = Set(schema.tables.map(\.name)) }
            try TableFit(connection: connection, schema: schema).check()
            try connection.run(
                "UPDATE fieldpost_session SET applying = 0, grp = NULL, at = NULL, trusted = 0"
            )
            try triggers.rebuild(adopting: missed)
            try setMeta("schema", .text(schema.json.text()))
            try setMeta("schema_version", .integer(Int64(schema.version)))
            try setMeta("checked", try stamp())
        }
    }

    /// Changes with every change of a table, an index or a trigger, whoever makes it, and with what capture writes.
    private func stamp() throws -> Value {
        .text("\(try connection.scalar("PRAGMA schema_version")?.integer ?? 0)/\(CaptureSQL.revision)")
    }

    /// Puts the triggers right after the app changed its tables or indexes, and records what they missed.
    func repairTriggers() throws {
        if try isCurrent() { return }
        try connection.transaction(.immediate) {
            try triggers.rebuild(adopting: try triggers.tablesWithout(of: schema))
            try setMeta("checked", try stamp())
        }
    }

    /// Whether the file is as this schema wants it, so that opening writes nothing but the stamp of a new check.
    private func isCurrent() throws -> Bool {
        guard try exists("fieldpost_meta"), try meta("schema") == .text(schema.json.text()) else {
            return false
        }
        if try meta("checked") == stamp() { return true }
        guard try schema.tables.allSatisfy({ try exists($0.name) }), try triggers.areCurrent() else {
            return false
        }
        try setMeta("checked", try stamp())
        return true
    }

    private var triggers: TriggerSet { TriggerSet(connection: connection, schema: schema) }

    /// The schema that the file was last opened with.
    private func storedSchema() throws -> Schema? {
        try meta("schema")?.text.flatMap { try? Schema(json: Array($0.utf8)) }
    }

    private func exists(_ table: String) throws(StoreError) -> Bool {
        try connection.scalar("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", .text(table))
            != nil
    }

    private func meta(_ key: String) throws(StoreError) -> Value? {
        try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = ?", .text(key))
    }

    private func setMeta(_ key: String, _ value: Value) throws(StoreError) {
        try connection.run(
            "INSERT OR REPLACE INTO fieldpost_meta (key, value) VALUES (?, ?)",
            .text(key),
            value
        )
    }

    // MARK: Tables

    /// Brings the app's tables to the schema.
    ///
    /// - Returns: whether the app's own statements ran, which may have done anything.
    private func migrateTables() throws -> Bool {
        let stored = try meta("schema_version")?.integer ?? Int64(schema.version)
        let steps = schema.migrations.filter { Int64($0.from) >= stored }.sorted { $0.from < $1.from }
        let statements = steps.flatMap(\.sql)
        // A column that a trigger names cannot be dropped.
        if !statements.isEmpty { try triggers.drop() }
        for statement in statements { try connection.execute(statement) }
        for step in steps { for (table, upcast) in step.operations { try rewriteBases(of: table, upcast) } }
        var grown: [String] = []
        for table in schema.tables {
            let ddl = TableDDL(table, side: .device)
            if try exists(table.name) {
                if try addMissingColumns(table, ddl) { grown.append(table.name) }
            } else {
                try connection.execute(ddl.createTable(schema: schema))
                // A table that was here once is not a table whose rows were deleted one by one.
                try connection.run("DELETE FROM fieldpost_rows WHERE tbl = ?", .text(table.name))
                grown.append(table.name)
            }
            for index in ddl.createIndexes() { try connection.execute(index) }
        }
        if try meta("cursor") != nil { try refetch(grown + steps.flatMap(\.operations.keys)) }
        return !statements.isEmpty
    }

    /// Lets the next pull begin from the start, to bring what older versions of the app had no place for.
    private func refetch(_ tables: [String]) throws {
        if tables.isEmpty { return }
        let waiting = try meta("refetch")?.text.flatMap { try? JSON(text: $0).array } ?? []
        try setMeta("refetch", .text(JSON.array(waiting + tables.map(JSON.string)).text()))
        try connection.run("DELETE FROM fieldpost_meta WHERE key = 'cursor'")
    }

    /// Gives the server's rows under unsettled edits the new names, so that the replay finds its columns.
    private func rewriteBases(of table: String, _ upcast: Upcast) throws {
        let rows = try connection.query(
            "SELECT row, base FROM fieldpost_rows WHERE tbl = ? AND base IS NOT NULL",
            .text(table)
        )
        for row in rows {
            guard let base = try row[1].text.flatMap({ try JSON(text: $0).object }) else { continue }
            try connection.run(
                "UPDATE fieldpost_rows SET base = ? WHERE tbl = ? AND row = ?",
                .text(upcast.row(base).text),
                .text(table),
                row[0]
            )
        }
    }

    /// - Returns: whether a column was missing.
    private func addMissingColumns(_ table: Table, _ ddl: TableDDL) throws -> Bool {
        var isGrown = false
        let found = Set(
            try connection.query("SELECT name FROM pragma_table_info(?)", .text(table.name)).compactMap {
                $0[0].text
            }
        )
        for column in table.columns where !found.contains(column.name) {
            guard column.isOptional || column.defaultValue != nil else {
                throw SchemaError(problems: [
                    .init(
                        table: table.name,
                        column: column.name,
                        message: "the file has no such column, and old rows would have no value for it",
                        remedy: "give it a default, make it optional, or add it in a migration's sql"
                    )
                ])
            }
            try connection.execute(
                "ALTER TABLE \(quoted(table.name)) ADD COLUMN \(ddl.columnSQL(column, schema: schema))"
            )
            isGrown = true
        }
        return isGrown
    }
}
