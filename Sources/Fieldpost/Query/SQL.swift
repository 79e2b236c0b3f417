public import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// SQL whose interpolated values are always bound, never part of the text.
///
///     let lowest = 50_000
///     let rich: SQL = "select * from orders where total_idr > \(lowest) and status in \(["open", "paid"])"
///
/// | interpolated | becomes |
/// | --- | --- |
/// | a value | one bound parameter, in the form in which its type is stored |
/// | an array | as many as it has elements, in parentheses |
/// | a record type | the quoted name of its table |
/// | a key path of a record, `\(\Order.totalIDR)` | the quoted name of its column |
/// | another `SQL` | its text and its values |
/// | `raw:` | a quoted identifier, which must be a plain name |
///
/// A value that cannot be stored (NaN, an integer beyond 64 bits) makes the call that takes the SQL throw.
public struct SQL: ExpressibleByStringInterpolation, Hashable, Sendable {
    /// The text with `?` for each value.
    public private(set) var text: String
    /// The values, one for each `?`.
    public private(set) var arguments: [Value]
    private var failure: FieldpostError?

    /// SQL of a text known to be trustworthy, with its values.
    public init(_ text: String, _ arguments: [Value] = []) {
        self.text = text
        self.arguments = arguments
    }

    /// SQL of a literal without values.
    public init(stringLiteral value: String) { self.init(value) }

    /// SQL of a literal with its interpolated values.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.sql
    }

    /// Whether text and values are equal.
    public static func == (left: SQL, right: SQL) -> Bool {
        left.text == right.text && left.arguments == right.arguments
    }

    /// Hashes text and values.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(text)
        hasher.combine(arguments)
    }

    /// Throws what went wrong when it was put together.
    func check() throws(FieldpostError) { if let failure { throw failure } }

    mutating func append(_ text: String) { self.text += text }

    mutating func append(_ value: Value) {
        text += "?"
        arguments.append(value)
    }

    mutating func append(_ other: SQL) {
        text += other.text
        arguments += other.arguments
        failure = failure ?? other.failure
    }

    fileprivate mutating func fail(_ error: any Error) {
        let reason = (error as? ColumnTypeError)?.message ?? "the value cannot be stored"
        failure =
            failure ?? (error as? FieldpostError) ?? FieldpostError(.type, "A value in the SQL: \(reason).")
    }

    /// Collects the parts of an interpolated literal.
    public struct StringInterpolation: StringInterpolationProtocol, Sendable {
        fileprivate var sql = SQL("")

        /// Begins a literal.
        public init(literalCapacity: Int, interpolationCount: Int) {
            sql.text.reserveCapacity(literalCapacity + interpolationCount)
        }

        /// Appends text of the program's own.
        public mutating func appendLiteral(_ literal: String) { sql.text += literal }

        /// Binds a value.
        public mutating func appendInterpolation(_ value: some Encodable) {
            do { sql.append(try FieldCoding.value(value, for: nil)) } catch { sql.fail(error) }
        }

        /// Binds a value that may be `NULL`.
        public mutating func appendInterpolation(_ value: (some Encodable)?) {
            guard let value else { return sql.append(.null) }
            appendInterpolation(value)
        }

        /// Binds a stored value as it is.
        public mutating func appendInterpolation(_ value: Value) { sql.append(value) }

        /// Binds each element, in parentheses, as `IN` takes them.
        public mutating func appendInterpolation(_ values: [some Encodable]) {
            sql.text += "("
            for (index, value) in values.enumerated() {
                if index > 0 { sql.text += ", " }
                appendInterpolation(value)
            }
            sql.text += ")"
        }

        /// Binds bytes as a blob.
        public mutating func appendInterpolation(_ bytes: [UInt8]) { sql.append(.blob(bytes)) }

        /// Names a record's table.
        public mutating func appendInterpolation<Record: SyncedRecord>(_ type: Record.Type) {
            sql.text += quoted(Record.tableName)
        }

        /// Names the column of a property.
        public mutating func appendInterpolation<Record: SyncedRecord, Part: Encodable>(
            _ path: KeyPath<Record, Part>
        ) {
            do {
                sql.text += quoted(Naming.snakeCase(try RecordShape.of(Record.self).property(path)))
            } catch { sql.fail(error) }
        }

        /// Puts other SQL in place.
        public mutating func appendInterpolation(_ other: SQL) { sql.append(other) }

        /// Names a table or a column that is only known at run time; anything but a plain name is an error.
        public mutating func appendInterpolation(raw name: String) {
            let isPlain =
                !name.isEmpty && !(name.first?.isNumber ?? true)
                && name.utf8.allSatisfy {
                    $0 == 0x5F || UnicodeScalar($0).properties.isAlphabetic || (0x30...0x39).contains($0)
                }
            if isPlain {
                sql.text += quoted(name)
            } else {
                sql.fail(
                    FieldpostError(
                        .usage,
                        "raw: takes the plain name of a table or column; bind everything else."
                    )
                )
            }
        }
    }
}
