internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// A condition on the rows of one record type, checked by the compiler.
///
/// Made by comparing key paths, and combined with `&&`, `||` and `!`:
///
///     Order.where(\.status == .open && \.totalIDR > 50_000)
///     Order.where { $0.plate.hasPrefix("B ") || $0.status.in([.open, .paid]) }
///
/// Texts compare by their UTF-8 bytes, as in SQLite. `nil` equals `nil` and nothing else.
public struct RecordFilter<Record: SyncedRecord>: Sendable {
    /// Appends the condition, whose values take the form that their columns store.
    let render: @Sendable (RecordLayout, inout SQL) throws -> Void

    /// A condition in SQL, where key paths and types do not reach: `RecordFilter("total_idr % \(step) = 0")`.
    public init(_ sql: SQL) {
        render = { _, out in
            try sql.check()
            out.append("(")
            out.append(sql)
            out.append(")")
        }
    }

    init(_ render: @escaping @Sendable (RecordLayout, inout SQL) throws -> Void) { self.render = render }

    /// Both conditions.
    public static func && (left: RecordFilter, right: RecordFilter) -> RecordFilter {
        left.joined("AND", right)
    }

    /// One of the conditions, or both.
    public static func || (left: RecordFilter, right: RecordFilter) -> RecordFilter {
        left.joined("OR", right)
    }

    /// The opposite.
    public static prefix func ! (filter: RecordFilter) -> RecordFilter {
        RecordFilter { layout, out in
            // A comparison with NULL is neither true nor false in SQL; here it is false, and its opposite true.
            out.append("(")
            try filter.render(layout, &out)
            out.append(") IS NOT TRUE")
        }
    }

    private func joined(_ word: String, _ other: RecordFilter) -> RecordFilter {
        RecordFilter { layout, out in
            out.append("(")
            try render(layout, &out)
            out.append(" \(word) ")
            try other.render(layout, &out)
            out.append(")")
        }
    }
}

/// The columns of a record type, by the names of its properties.
@dynamicMemberLookup public struct RecordColumns<Record: SyncedRecord>: Sendable {
    /// The column of a property.
    public subscript<Part: Encodable & Sendable>(dynamicMember path: any KeyPath<Record, Part> & Sendable)
        -> RecordColumn<Record, Part>
    {
        RecordColumn(path: path)
    }
}

/// One column, typed by its property.
public struct RecordColumn<Record: SyncedRecord, Part: Encodable & Sendable>: Sendable {
    let path: any KeyPath<Record, Part> & Sendable

    /// The column in the layout.
    func column(_ layout: RecordLayout) throws -> Column {
        try layout.column(of: try RecordShape.of(Record.self).property(path))
    }

    /// A value in the form that the column stores.
    static func stored(_ value: some Encodable, _ column: Column, _ layout: RecordLayout) throws -> Value {
        do {
            return try FieldCoding.value(value, for: column.type)
        } catch let error as ColumnTypeError {
            throw FieldpostError(
                .type,
                "\(layout.typeName): \(layout.table.name).\(column.name): \(error.message).",
                names: [column.name]
            )
        }
    }

    func equal(_ value: Part?, _ isEqual: Bool) -> RecordFilter<Record> {
        RecordFilter { layout, out in
            let column = try column(layout)
            let value = try value.map { try Self.stored($0, column, layout) } ?? .null
            out.append(quoted(column.name))
            if value.isNull { return out.append(isEqual ? " IS NULL" : " IS NOT NULL") }
            out.append(isEqual ? " = " : column.isOptional ? " IS NOT " : " <> ")
            out.append(value)
        }
    }

    func compare<Whole: Encodable & Sendable>(_ sign: String, _ value: Whole) -> RecordFilter<Record> {
        RecordFilter { layout, out in
            if value is Decimal {
                throw FieldpostError(
                    .unsupported,
                    "\(layout.typeName): decimals are stored as text, which has another order; keep an integer."
                )
            }
            let column = try column(layout)
            out.append("\(quoted(column.name)) \(sign) ")
            out.append(try Self.stored(value, column, layout))
        }
    }

    func call(_ make: @escaping @Sendable (String) -> SQL) -> RecordFilter<Record> {
        RecordFilter { layout, out in
            let sql = make(quoted(try column(layout).name))
            try sql.check()
            out.append(sql)
        }
    }
}
