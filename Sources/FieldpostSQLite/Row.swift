public import FieldpostCore

/// The row that a query stands on.
///
/// Noncopyable and lent to a closure, so it cannot be read after the query moved on.
public struct Row: ~Copyable {
    let statement: Statement

    /// How many columns it has.
    public var columnCount: Int { statement.columnCount }

    /// The name of a column.
    public func columnName(_ column: Int32) -> String { statement.columnName(column) }

    /// Whether the column is `NULL`.
    public func isNull(_ column: Int32) -> Bool { statement.isNull(column) }

    /// The column as an integer, converted as SQLite does; 0 for `NULL`.
    public func integer(_ column: Int32) -> Int64 { statement.integer(column) }

    /// The column as a real, converted as SQLite does; 0 for `NULL`.
    public func real(_ column: Int32) -> Double { statement.real(column) }

    /// The column as text; empty for `NULL`.
    public func text(_ column: Int32) -> String { statement.text(column) }

    /// The column's bytes; empty for `NULL`.
    public func blob(_ column: Int32) -> [UInt8] { statement.blob(column) }

    /// Lends the bytes of a blob or text without copying.
    public func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        statement.withBytes(column, body)
    }

    /// The column in its own storage class.
    public func value(_ column: Int32) -> Value { statement.value(column) }

    /// All columns, in order.
    public func values() -> [Value] { statement.values() }
}
