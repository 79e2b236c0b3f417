internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// A record type laid over one table: its columns in decoding order, checked, with the SQL that uses them.
final class RecordLayout: Sendable {
    /// One property and its column.
    struct Field: Sendable {
        let property: String
        let column: Column
    }

    let typeName: String
    let table: Table
    let fields: [Field]
    /// The key column's place among ``fields``.
    let keyIndex: Int
    /// What ``RowEncoder`` needs.
    let slots: [(property: String, type: ColumnType?)]
    /// What ``RowDecoder`` needs, for ``selectSQL`` and what begins like it.
    let plan: RowPlan
    /// `SELECT` of all columns, up to the table's name.
    let selectSQL: String
    private let inserts = StatementTexts()
    private let updates = StatementTexts()

    /// Compares a type with the table it names.
    ///
    /// - Throws: ``FieldpostError`` `unknownTable`, `unknownColumn` or `type`, naming the property.
    init<Record: SyncedRecord>(_ type: Record.Type, schema: Schema) throws {
        let typeName = "\(Record.self)"
        let shape = RecordShape.of(type)
        guard let table = schema.table(Record.tableName) else {
            throw RecordLayout.noTable(Record.tableName, typeName, schema)
        }
        self.typeName = typeName
        self.table = table
        // A type that could not be probed is matched by name, row by row.
        fields =
            shape.fields.isEmpty
            ? table.columns.map { Field(property: $0.name, column: $0) }
            : try shape.fields.map { try RecordLayout.match($0, typeName, table) }
        guard let keyIndex = fields.firstIndex(where: { $0.column.name == table.key }) else {
            throw FieldpostError(
                .unknownColumn,
                "\(typeName) has no property for \(table.key), the key of \(table.name); add one.",
                names: [table.key]
            )
        }
        self.keyIndex = keyIndex
        slots = fields.map { ($0.property, $0.column.type) }
        plan = RowPlan(
            typeName: typeName,
            properties: fields.map(\.property),
            names: fields.map(\.column.name)
        )
        selectSQL =
            "SELECT " + fields.map { quoted($0.column.name) }.joined(separator: ", ")
            + " FROM \(quoted(table.name))"
    }

    private static func noTable(_ name: String, _ typeName: String, _ schema: Schema) -> FieldpostError {
        let hint =
            Naming.nearest(name, schema.tables.map(\.name)).map { "did you mean \($0)" } ?? "set tableName"
        return FieldpostError(
            .unknownTable,
            "\(typeName): the schema has no table \(name); \(hint)?",
            names: [name]
        )
    }

    private static func match(_ field: ProbeDecoder.Field, _ typeName: String, _ table: Table) throws -> Field
    {
        let snake = Naming.snakeCase(field.property)
        guard let column = table.column(field.property) ?? table.column(snake) else {
            let hint = Naming.nearest(snake, table.columns.map(\.name)).map { "; did you mean \($0)?" } ?? "."
            throw FieldpostError(
                .unknownColumn,
                "\(typeName).\(field.property): \(table.name) has no column \(snake)\(hint)",
                names: [field.property]
            )
        }
        guard field.kind.fits(column.type) else {
            throw FieldpostError(
                .type,
                "\(typeName).\(field.property): the column \(table.name).\(column.name) is \(column.type.rawValue), which "
                    + "\(field.type) does not hold.",
                names: [field.property]
            )
        }
        if column.isOptional && !field.isOptional {
            throw FieldpostError(
                .type,
                "\(typeName).\(field.property): the column \(table.name).\(column.name) may be NULL; make the property "
                    + "optional.",
                names: [field.property]
            )
        }
        return Field(property: field.property, column: column)
    }

    /// The column that holds `property`.
    func column(of property: String) throws -> Column {
        if let field = fields.first(where: { $0.property == property }) { return field.column }
        throw FieldpostError(.unknownColumn, "\(typeName).\(property) has no column.", names: [property])
    }

    /// The values of a record's columns.
    func values(of record: some SyncedRecord) throws -> [Value] {
        try RowEncoder.values(of: record, typeName: typeName, slots: slots)
    }

    /// A key as the table stores it.
    func key(_ id: some Encodable) throws -> Value {
        do {
            return try FieldCoding.value(id, for: fields[keyIndex].column.type)
        } catch let error as ColumnTypeError {
            throw FieldpostError(
                .type,
                "\(typeName).\(fields[keyIndex].property): \(error.message).",
                names: [table.key]
            )
        }
    }

    /// `INSERT` of the columns at `indexes`.
    func insertSQL(_ indexes: [Int]) -> String {
        inserts.text(indexes) {
            let names = indexes.map { quoted(fields[$0].column.name) }.joined(separator: ", ")
            let marks = indexes.map { _ in "?" }.joined(separator: ", ")
            return "INSERT INTO \(quoted(table.name)) (\(names)) VALUES (\(marks))"
        }
    }

    /// `UPDATE` of the columns at `indexes`, whose values come before the key.
    func updateSQL(_ indexes: [Int]) -> String {
        updates.text(indexes) {
            let list = indexes.map { "\(quoted(fields[$0].column.name)) = ?" }.joined(separator: ", ")
            return "UPDATE \(quoted(table.name)) SET \(list) WHERE \(quoted(table.key)) = ?"
        }
    }

    /// `WHERE` the key is the value bound.
    var whereKey: String { " WHERE \(quoted(table.key)) = ?" }
}

/// SQL by the columns that it names, made once.
private final class StatementTexts: Sendable {
    private let known = Locked<[[Int]: String]>([:])

    func text(_ indexes: [Int], _ make: () -> String) -> String {
        known.withLock { known in
            if let text = known[indexes] { return text }
            // Some dozens of combinations are in use; a program that makes all of them must not fill the memory.
            if known.count > 200 { known = [:] }
            let text = make()
            known[indexes] = text
            return text
        }
    }
}

/// The layouts of a store's record types, each checked once.
final class RecordRegistry: Sendable {
    private let schema: Schema
    private let layouts = Locked<[ObjectIdentifier: RecordLayout]>([:])

    init(schema: Schema) { self.schema = schema }

    /// The layout of `type`.
    ///
    /// - Throws: ``FieldpostError`` when the type and its table do not fit.
    func layout<Record: SyncedRecord>(_ type: Record.Type) throws -> RecordLayout {
        if let known = layouts.withLock({ $0[ObjectIdentifier(type)] }) { return known }
        let layout = try RecordLayout(type, schema: schema)
        layouts.withLock { $0[ObjectIdentifier(type)] = layout }
        return layout
    }
}
