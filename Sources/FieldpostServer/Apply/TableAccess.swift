package import FieldpostCore
package import FieldpostSQLite

/// One table of the schema with the SQL that reads and writes its rows, prepared once.
package struct TableAccess: Sendable {
    package let table: Table
    /// The tables whose rows refer to this one.
    let referrers: [Referrer]
    private let selectSQL: String
    private let insertSQL: String
    private let deleteSQL: String
    private let restampSQL: String

    /// A column of some table that refers to this one.
    struct Referrer: Sendable {
        let table: String
        let key: String
        let column: String
        let onDelete: Reference.DeleteAction
    }

    package init(_ table: Table, schema: Schema) {
        self.table = table
        let columns = table.columns.map { quoted($0.name) }.joined(separator: ", ")
        let marks = table.columns.map { _ in "?" }.joined(separator: ", ")
        let (name, key) = (quoted(table.name), quoted(table.key))
        selectSQL = "SELECT \(columns) FROM \(name) WHERE \(key) = ?"
        insertSQL = "INSERT INTO \(name) (\(columns)) VALUES (\(marks))"
        deleteSQL = "DELETE FROM \(name) WHERE \(key) = ?"
        restampSQL = "UPDATE \(name) SET \(key) = \(key) WHERE \(key) = ?"
        referrers = schema.tables.flatMap { other in
            other.columns.compactMap { column in
                guard let reference = column.reference, reference.table == table.name else { return nil }
                return Referrer(
                    table: other.name,
                    key: other.key,
                    column: column.name,
                    onDelete: reference.onDelete
                )
            }
        }
    }

    /// The row's stored values in column order, or `nil` where there is no row.
    package func values(_ connection: Connection, _ row: String) throws(StoreError) -> [Value]? {
        let statement = try connection.statement(selectSQL)
        try statement.bind(1, row)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        return statement.values()
    }

    func insert(_ connection: Connection, _ values: [Value]) throws(StoreError) {
        try connection.run(insertSQL, values)
    }

    func delete(_ connection: Connection, _ row: String) throws(StoreError) {
        try connection.run(deleteSQL, .text(row))
    }

    func update(_ connection: Connection, _ row: String, _ changed: [(index: Int, value: Value)])
        throws(StoreError)
    {
        let list = changed.map { "\(quoted(table.columns[$0.index].name)) = ?" }.joined(separator: ", ")
        let sql = "UPDATE \(quoted(table.name)) SET \(list) WHERE \(quoted(table.key)) = ?"
        try connection.run(sql, changed.map(\.value) + [.text(row)])
    }

    /// Fires the feed's triggers without changing the row.
    func restamp(_ connection: Connection, _ row: String) throws(StoreError) {
        try connection.run(restampSQL, .text(row))
    }

    /// The row in wire form.
    ///
    /// A value that another program stored against its column's type comes as what it is.
    package func wire(_ values: [Value]) -> JSONObject {
        JSONObject(
            distinct: zip(table.columns, values).map { column, value in
                (column.name, (try? column.type.json(from: value)) ?? value.plainJSON)
            }
        )
    }
}

extension Value {
    fileprivate var plainJSON: JSON {
        switch self {
        case .null: .null
        case .integer(let value): .integer(value)
        case .real(let value): value.isFinite ? .real(value) : .null
        case .text(let value): .string(value)
        case .blob(let bytes): .string(Base64.encode(bytes))
        }
    }
}

/// What the server knows of one row.
struct RowState {
    /// The stored values, or `nil` where there is no row.
    var values: [Value]?
    /// The version of the row, or of its end.
    var version: Int64?
    /// The row's scope; `""` for a global one, `nil` while it has none.
    var scope: String?
    /// When each tracked column last changed.
    var columnVersions: JSONObject = [:]
    /// The scopes in which the row's end is known to have been a deletion, with the version.
    var deletedIn: [(scope: String, version: Int64)] = []
}

extension TableAccess {
    /// Reads a row and its feed entries.
    func state(_ connection: Connection, _ row: String) throws(StoreError) -> RowState {
        let state = try entries(connection, row)
        // Without an entry no device knows of the row: somebody wrote it while the triggers were away.
        guard state.values != nil, state.scope == nil else { return state }
        try restamp(connection, row)
        return try entries(connection, row)
    }

    private func entries(_ connection: Connection, _ row: String) throws(StoreError) -> RowState {
        var state = RowState(values: try values(connection, row))
        let statement = try connection.statement(
            "SELECT version, scope, deleted, reason, columns FROM fieldpost_feed WHERE tbl = ? AND row = ?"
        )
        try statement.bind(1, table.name)
        try statement.bind(2, row)
        while try statement.step() {
            let version = statement.integer(0)
            if statement.integer(2) == 0 {
                state.version = version
                state.scope = statement.text(1)
                if !statement.isNull(4) {
                    state.columnVersions = (try? JSON(text: statement.text(4)))?.object ?? [:]
                }
            } else if statement.isNull(3) {
                state.deletedIn.append((statement.text(1), version))
            }
        }
        return state
    }
}
