/// One stored value, in SQLite's own storage classes.
///
/// Integers are exact to 64 bits. A blob is its bytes. What a value *means* (a date, a boolean, a set) is said by
/// the ``ColumnType`` of its column.
public enum Value: Hashable, Sendable {
    /// SQL `NULL`, which is not the same as an absent column.
    case null
    /// A signed 64-bit integer.
    case integer(Int64)
    /// A finite IEEE 754 double.
    case real(Double)
    /// Valid UTF-8 text without NUL.
    case text(String)
    /// Raw bytes.
    case blob([UInt8])
}

extension Value {
    /// Equal in class and bits: text is compared by its bytes, since two spellings of one accented letter are
    /// two different texts to a database.
    public static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left == right
        case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
        case (.blob(let left), .blob(let right)): left == right
        default: false
        }
    }
}

extension Value: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByFloatLiteral,
    ExpressibleByNilLiteral, ExpressibleByBooleanLiteral
{
    /// A value from a literal.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A value from a literal.
    public init(stringLiteral value: String) { self = .text(value) }
    /// A value from a literal.
    public init(floatLiteral value: Double) { self = .real(value) }
    /// A value from a literal.
    public init(nilLiteral: ()) { self = .null }
    /// A value from a literal.
    public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }
}

extension Value {
    /// The integer, or `nil` for any other storage class.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// The text, or `nil` for any other storage class.
    public var text: String? { if case .text(let value) = self { value } else { nil } }
    /// Whether this is SQL `NULL`.
    public var isNull: Bool { self == .null }
}
