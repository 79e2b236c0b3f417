internal import FieldpostCore
internal import FieldpostSQLite

// What a property can be compared with. Each exists for key paths, as in `\.status == .open`, and for the columns that
// the closure of `where` is given, as in `$0.status == .open`.

/// The property equals the value; `nil` equals `nil`.
public func == <Record: SyncedRecord, Part: Encodable & Equatable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).equal(value, true) }

/// The property differs from the value; `nil` differs from everything but `nil`.
public func != <Record: SyncedRecord, Part: Encodable & Equatable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).equal(value, false) }

/// The property is less than the value.
public func < <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare("<", value) }

/// The property is at most the value.
public func <= <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare("<=", value) }

/// The property is greater than the value.
public func > <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare(">", value) }

/// The property is at least the value.
public func >= <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare(">=", value) }

/// The property is there and less than the value.
public func < <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part?> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare("<", value) }

/// The property is there and at most the value.
public func <= <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part?> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare("<=", value) }

/// The property is there and greater than the value.
public func > <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part?> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare(">", value) }

/// The property is there and at least the value.
public func >= <Record: SyncedRecord, Part: Encodable & Comparable & Sendable>(
    path: any KeyPath<Record, Part?> & Sendable,
    value: Part
) -> RecordFilter<Record> { RecordColumn(path: path).compare(">=", value) }

extension RecordColumn where Part: Equatable & Sendable {
    /// The column equals the value; `nil` equals `nil`.
    public static func == (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.equal(value, true)
    }

    /// The column differs from the value; `nil` differs from everything but `nil`.
    public static func != (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.equal(value, false)
    }

    /// The column equals one of the values.
    public func `in`(_ values: some Collection<Part> & Sendable) -> RecordFilter<Record> {
        RecordFilter { layout, out in
            let column = try column(layout)
            out.append("\(quoted(column.name)) IN (")
            for (index, value) in values.enumerated() {
                if index > 0 { out.append(", ") }
                out.append(try Self.stored(value, column, layout))
            }
            out.append(")")
        }
    }
}

extension RecordColumn where Part: Comparable & Sendable {
    /// The column is less than the value.
    public static func < (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.compare("<", value)
    }
    /// The column is at most the value.
    public static func <= (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.compare("<=", value)
    }
    /// The column is greater than the value.
    public static func > (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.compare(">", value)
    }
    /// The column is at least the value.
    public static func >= (column: RecordColumn, value: Part) -> RecordFilter<Record> {
        column.compare(">=", value)
    }
    /// The column lies in the range, both ends included.
    public func `in`(_ range: ClosedRange<Part>) -> RecordFilter<Record> {
        compare(">=", range.lowerBound) && compare("<=", range.upperBound)
    }
}

extension RecordColumn {
    /// The column is there and less than the value.
    public static func < <Whole: Comparable & Encodable & Sendable>(
        column: RecordColumn,
        value: Whole
    ) -> RecordFilter<Record> where Part == Whole? { column.compare("<", value) }

    /// The column is there and at most the value.
    public static func <= <Whole: Comparable & Encodable & Sendable>(
        column: RecordColumn,
        value: Whole
    ) -> RecordFilter<Record> where Part == Whole? { column.compare("<=", value) }

    /// The column is there and greater than the value.
    public static func > <Whole: Comparable & Encodable & Sendable>(
        column: RecordColumn,
        value: Whole
    ) -> RecordFilter<Record> where Part == Whole? { column.compare(">", value) }

    /// The column is there and at least the value.
    public static func >= <Whole: Comparable & Encodable & Sendable>(
        column: RecordColumn,
        value: Whole
    ) -> RecordFilter<Record> where Part == Whole? { column.compare(">=", value) }
}

/// A text, or an optional one.
public protocol TextColumnValue: Encodable, Sendable {}
extension String: TextColumnValue {}
extension String?: TextColumnValue {}

extension RecordColumn where Part: TextColumnValue {
    /// The text contains the other, byte for byte.
    public func contains(_ part: String) -> RecordFilter<Record> {
        call { SQL("instr(\($0), ?) > 0", [.text(part)]) }
    }

    /// The text begins with the other, byte for byte.
    public func hasPrefix(_ prefix: String) -> RecordFilter<Record> {
        call { SQL("substr(\($0), 1, length(?)) = ?", [.text(prefix), .text(prefix)]) }
    }

    /// The text matches SQL's pattern: `%` stands for any text, `_` for one character, letters of ASCII match in either
    /// case.
    public func like(_ pattern: String) -> RecordFilter<Record> {
        call { SQL("\($0) LIKE ?", [.text(pattern)]) }
    }
}

extension RecordColumn where Part: Collection, Part.Element: Encodable & Sendable {
    /// The array or set contains the element, a text or an integer.
    public func contains(_ element: Part.Element) -> RecordFilter<Record> {
        call { "EXISTS (SELECT 1 FROM json_each(\(SQL($0))) WHERE value = \(element))" }
    }
}
