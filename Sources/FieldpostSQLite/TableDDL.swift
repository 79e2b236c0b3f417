package import FieldpostCore

/// The SQL of a schema's tables, the same on devices and on SQLite servers but for what ``Side`` says.
package struct TableDDL {
    /// Where the tables live.
    package enum Side: Sendable {
        /// A device cannot know whether a value is unique, and may hold a child before its parent.
        case device
        /// The server enforces everything.
        case server
    }

    package let table: Table
    package let side: Side

    package init(_ table: Table, side: Side) {
        self.table = table
        self.side = side
    }

    /// `CREATE TABLE`, STRICT, with every constraint the side enforces.
    package func createTable(name: String? = nil, schema: Schema) -> String {
        var parts = table.columns.map { column in columnSQL(column, schema: schema) }
        for check in table.checks {
            parts.append("CONSTRAINT \(quoted(check.name)) CHECK (\(check.expression))")
        }
        if side == .server {
            for columns in table.unique {
                parts.append("UNIQUE (\(columns.map(quoted).joined(separator: ", ")))")
            }
        }
        return "CREATE TABLE \(quoted(name ?? table.name)) (\n  \(parts.joined(separator: ",\n  "))\n) STRICT"
    }

    /// The definition of one column, as `CREATE TABLE` and `ALTER TABLE … ADD COLUMN` take it.
    package func columnSQL(_ column: Column, schema: Schema) -> String {
        let name = quoted(column.name)
        var sql = "\(name) \(column.type.sqliteType)"
        if column.name == table.key { sql += " PRIMARY KEY" }
        if !column.isOptional { sql += " NOT NULL" }
        if let value = column.defaultValue, let stored = try? column.type.value(from: value) {
            sql += " DEFAULT \(stored.literal)"
        }
        if var condition = Self.typeCheck(column, name) {
            // json_valid(NULL) is 0 in SQLite 3.40, so NULL is let through by name.
            if column.isOptional { condition = "\(name) IS NULL OR \(condition)" }
            sql += " CONSTRAINT \(quoted(checkName(column))) CHECK (\(condition))"
        }
        if let reference = column.reference {
            let key = schema.table(reference.table)?.key ?? "id"
            sql += " REFERENCES \(quoted(reference.table)) (\(quoted(key)))"
            switch reference.onDelete {
            case .restrict: break
            case .cascade: sql += " ON DELETE CASCADE"
            case .setNull: sql += " ON DELETE SET NULL"
            }
            sql += " DEFERRABLE INITIALLY DEFERRED"
        }
        return sql
    }

    /// The name of a column's own check, which an error message shows.
    package func checkName(_ column: Column) -> String {
        (side == .device ? "\(table.name)." : "") + "\(column.name)_is_\(column.type.rawValue)"
    }

    /// What SQLite itself does not check of a type, as a condition on the SQL expression `name`; `NULL`
    /// passes.
    package static func typeCheck(_ column: Column, _ name: String) -> String? {
        switch column.type {
        case .boolean: return "\(name) IN (0, 1)"
        case .uuid:
            let hex = "[0-9a-f]"
            let groups = [8, 4, 4, 4, 12].map { String(repeating: hex, count: $0) }.joined(separator: "-")
            return "\(name) GLOB '\(groups)'"
        case .file: return "length(\(name)) = 64 AND NOT \(name) GLOB '*[^0-9a-f]*'"
        case .json:
            // In an optional column the JSON null would be taken for NULL, so only NULL says "none".
            return "json_valid(\(name))" + (column.isOptional ? " AND json_type(\(name)) <> 'null'" : "")
        case .set: return "json_valid(\(name)) AND json_type(\(name)) = 'array'"
        case .text, .integer, .real, .date, .blob: return nil
        }
    }

    /// `CREATE INDEX` for the declared indexes and for the references, which deletes look up.
    package func createIndexes() -> [String] {
        var lists = table.indexes
        for column in table.columns
        where column.reference != nil && !lists.contains(where: { $0.first == column.name }) {
            lists.append([column.name])
        }
        if side == .server, case .column(let name) = table.scope, !lists.contains(where: { $0.first == name })
        {
            lists.append([name])
        }
        return lists.map { columns in
            // Points keep (a, b_c) apart from (a_b, c), and both from Fieldpost's own indexes.
            let name = "fieldpost_\(([table.name] + columns).joined(separator: "."))"
            return "CREATE INDEX IF NOT EXISTS \(quoted(name)) ON \(quoted(table.name)) "
                + "(\(columns.map(quoted).joined(separator: ", ")))"
        }
    }
}

/// `name` as an SQL identifier.
package func quoted(_ name: String) -> String { "\"\(name.replacingQuote("\""))\"" }

/// `text` as an SQL string literal.
package func sqlString(_ text: String) -> String { "'\(text.replacingQuote("'"))'" }

extension String {
    fileprivate func replacingQuote(_ quote: Character) -> String {
        contains(quote) ? String(flatMap { $0 == quote ? [quote, quote] : [$0] }) : self
    }
}

extension Value {
    /// The value as an SQL literal.
    package var literal: String {
        switch self {
        case .null: "NULL"
        case .integer(let value): value == .min ? "(-9223372036854775807 - 1)" : "\(value)"
        case .real(let value): value.description
        case .text(let value): sqlString(value)
        case .blob(let bytes):
            "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
        }
    }
}
