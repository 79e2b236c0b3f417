internal import FieldpostCore
internal import FieldpostSQLite

/// Whether the tables in a file are what the schema says, once its migrations have run.
///
/// A table that does not fit would refuse every later write, so opening refuses first and says what to write. Tables that
/// the app made without STRICT are its own affair: SQLite holds them to no type.
struct TableFit {
    let connection: Connection
    let schema: Schema

    func check() throws {
        let problems = try schema.tables.flatMap { try faults($0) }
        if !problems.isEmpty { throw SchemaError(problems: problems) }
    }

    private func faults(_ table: Table) throws -> [SchemaError.Problem] {
        let strict = try connection.scalar("SELECT strict FROM pragma_table_list(?)", .text(table.name))
        guard strict == 1 else { return [] }
        let rows = try connection.query(
            "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?)",
            .text(table.name)
        )
        return rows.compactMap { row in
            let name = row[0].text ?? ""
            let isKey = row[4] != 0
            guard let column = table.column(name) else {
                let isInTheWay = isKey || row[2] == 1 && row[3].isNull
                return isInTheWay
                    ? problem(table, name, "is in the file and required, but not in the schema", "drop it")
                    : nil
            }
            if isKey != (name == table.key) {
                return problem(table, name, "is the key in only one of file and schema", "rebuild the table")
            }
            if row[1].text != column.type.sqliteType {
                let found = row[1].text ?? ""
                return problem(
                    table,
                    name,
                    "is \(found) in the file, but \(column.type.rawValue)",
                    "convert it"
                )
            }
            if !isKey, (row[2] == 1) == column.isOptional {
                let words =
                    column.isOptional
                    ? "required in the file, but optional" : "optional in the file, but required"
                return problem(table, name, "is \(words) in the schema", "rebuild the table")
            }
            return nil
        }
    }

    private func problem(_ table: Table, _ column: String, _ message: String, _ remedy: String)
        -> SchemaError.Problem
    {
        SchemaError.Problem(
            table: table.name,
            column: column,
            message: message,
            remedy: "\(remedy) in the sql of a migration to a new version"
        )
    }
}
