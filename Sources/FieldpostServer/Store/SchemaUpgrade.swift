internal import FieldpostCore
internal import FieldpostSQLite

/// Brings a store's tables from one schema version to another, inside the caller's transaction.
///
/// Migrations run first. What is then still missing is added: tables, columns, indexes, and changed constraints by
/// rebuilding the table. It refuses to drop what no migration dropped.
struct SchemaUpgrade {
    let connection: Connection
    let from: Schema?
    let to: Schema

    /// Upgrades, and returns the tables whose rows or scopes may have changed.
    func run() throws -> Set<String> {
        // Triggers name columns and tables that are about to change; the caller builds the new ones.
        try dropTriggers()
        let migrations = try migrate()
        for table in to.tables { try bringUpToDate(table) }
        for table in to.tables {
            for index in TableDDL(table, side: .server).createIndexes() { try connection.execute(index) }
        }
        if let row = try connection.query("PRAGMA foreign_key_check").first {
            throw ServerError(
                .incompatibleSchema,
                "A row of \(row[0].text ?? "a table") refers to a row that is not there; correct it first."
            )
        }
        let words = migrations.reduce(into: Set<String>()) { $0.formUnion(SQLWords.of($1)) }
        return Set(to.tables.filter { words.contains($0.name) || scopeChanged($0) }.map(\.name))
    }

    /// Whether another column, or another parent, decides who sees a table's rows.
    private func scopeChanged(_ table: Table) -> Bool {
        guard let from, let old = from.table(table.name) else { return false }
        return FeedTriggers.scope(of: old, alias: "r", schema: from)
            != FeedTriggers.scope(of: table, alias: "r", schema: to)
    }

    private func dropTriggers() throws {
        let rows = try connection.query(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'fieldpost!_feed!_%' ESCAPE '!'"
        )
        for row in rows { try connection.execute("DROP TRIGGER \(quoted(row[0].text ?? ""))") }
    }

    /// Runs the steps from the stored version on and returns their statements.
    private func migrate() throws -> [String] {
        guard let from else { return [] }
        var statements: [String] = []
        for version in from.version..<to.version {
            guard let step = to.migrations.first(where: { $0.from == version }) else { continue }
            for sql in step.sql {
                do { try connection.execute(sql) } catch {
                    throw ServerError(
                        .migrationFailed,
                        "The migration from version \(step.from) to \(step.to) failed: \(error.detail ?? error.message)."
                    )
                }
            }
            statements += step.sql
        }
        return statements
    }

    private func bringUpToDate(_ table: Table) throws {
        let ddl = TableDDL(table, side: .server)
        let present = try connection.query("SELECT name FROM pragma_table_info(?)", .text(table.name))
            .compactMap(\.[0].text)
        if present.isEmpty {
            try connection.execute(ddl.createTable(schema: to))
            return
        }
        if let lost = present.first(where: { table.column($0) == nil }) {
            throw ServerError(
                .incompatibleSchema,
                "\(table.name).\(lost) is in the store but not in the schema; drop or rename it in a migration."
            )
        }
        let added = table.columns.filter { !present.contains($0.name) }
        do {
            if constraintsChanged(table) || added.contains(where: { !canBeAdded($0) }) {
                try rebuild(table, ddl, copying: present)
            } else {
                for column in added {
                    let sql = ddl.columnSQL(column, schema: to)
                    try connection.execute("ALTER TABLE \(quoted(table.name)) ADD COLUMN \(sql)")
                }
            }
        } catch {
            guard error.code == .constraint else { throw error }
            throw ServerError(
                .incompatibleSchema,
                "Rows of \(table.name) break the new schema (\(error.detail ?? "a constraint")); "
                    + "add a default, or correct them in a migration."
            )
        }
    }

    private func constraintsChanged(_ table: Table) -> Bool {
        guard let old = from?.table(table.name) else { return true }
        if old.checks != table.checks || old.unique != table.unique || old.key != table.key { return true }
        return table.columns.contains { column in
            guard let before = old.column(column.name) else { return false }
            return before.type != column.type || before.isOptional != column.isOptional
                || before.reference != column.reference || before.defaultValue != column.defaultValue
        }
    }

    /// Whether SQLite adds the column without a rebuild: it needs a value for the rows that exist, and with foreign keys
    /// a reference must start as `NULL`.
    private func canBeAdded(_ column: Column) -> Bool {
        column.reference == nil ? column.isOptional || column.defaultValue != nil : column.isOptional
    }

    private func rebuild(_ table: Table, _ ddl: TableDDL, copying columns: [String]) throws(StoreError) {
        let list = columns.map(quoted).joined(separator: ", ")
        let scratch = "fieldpost_rebuild"
        try connection.execute(ddl.createTable(name: scratch, schema: to))
        try connection.execute("INSERT INTO \(scratch) (\(list)) SELECT \(list) FROM \(quoted(table.name))")
        try connection.execute("DROP TABLE \(quoted(table.name))")
        try connection.execute("ALTER TABLE \(scratch) RENAME TO \(quoted(table.name))")
    }
}

/// The words of an SQL text: what may be a name in it.
enum SQLWords {
    static func of(_ sql: String) -> Set<String> {
        Set(
            sql.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(
                String.init
            )
        )
    }
}
