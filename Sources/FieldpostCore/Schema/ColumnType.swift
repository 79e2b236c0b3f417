/// What the values of a column mean, and how they are stored and sent.
public enum ColumnType: String, Hashable, Sendable, CaseIterable {
    /// A UUID as lower-case text.
    case uuid
    /// Text without NUL.
    case text
    /// A signed 64-bit integer; money belongs here.
    case integer
    /// A finite double.
    case real
    /// `true` or `false`; 1 or 0 in SQL.
    case boolean
    /// Milliseconds since 1970 as an integer.
    case date
    /// Bytes; base64 on the wire.
    case blob
    /// Any JSON value; its text in SQL.
    case json
    /// Distinct strings and integers, kept sorted; a JSON array in SQL.
    case set
    /// The SHA-256 of a file as 64 lower-case hexadecimal digits.
    case file

    /// The storage class in a STRICT SQLite table.
    package var sqliteType: String {
        switch self {
        case .integer, .boolean, .date: "INTEGER"
        case .real: "REAL"
        case .blob: "BLOB"
        case .uuid, .text, .json, .set, .file: "TEXT"
        }
    }
}

/// A value that its column cannot hold.
public struct ColumnTypeError: Error, Equatable, Sendable {
    /// What the column expects, for people; never the value itself.
    public let message: String

    package init(message: String) { self.message = message }
}

extension ColumnType {
    /// The stored form of a wire value; JSON `null` is SQL `NULL`.
    ///
    /// Upper-case UUIDs and file digests are lowered, a set is sorted, JSON loses its white space.
    /// - Throws: ``ColumnTypeError`` naming what the type expects.
    public func value(from json: JSON) throws(ColumnTypeError) -> Value {
        if json == .null { return .null }
        switch self {
        case .uuid: return .text(try ColumnType.uuid(json.string))
        case .text:
            guard let text = json.string, !text.utf8.contains(0) else {
                throw ColumnTypeError(message: "expected text without NUL")
            }
            return .text(text)
        case .integer, .date:
            guard let integer = json.integer else {
                let what = self == .date ? "a date as integer milliseconds since 1970" : "a 64-bit integer"
                throw ColumnTypeError(message: "expected \(what)")
            }
            return .integer(integer)
        case .real: return .real(try ColumnType.real(json))
        case .boolean:
            guard let bool = json.bool else { throw ColumnTypeError(message: "expected true or false") }
            return .integer(bool ? 1 : 0)
        case .blob:
            guard let text = json.string, let bytes = Base64.decode(text) else {
                throw ColumnTypeError(message: "expected base64")
            }
            return .blob(bytes)
        case .json: return .text(json.text())
        case .set: return .text(JSON.array(try SetValue(json).elements).text())
        case .file: return .text(try ColumnType.digest(json.string))
        }
    }

    /// The wire form of a stored value.
    ///
    /// - Throws: ``ColumnTypeError`` where another program stored something the type does not allow.
    public func json(from value: Value) throws(ColumnTypeError) -> JSON {
        switch (self, value) {
        case (_, .null): return .null
        case (.boolean, .integer(let value)) where value == 0 || value == 1: return .bool(value == 1)
        case (.integer, .integer(let value)), (.date, .integer(let value)): return .integer(value)
        case (.real, .real(let value)) where value.isFinite: return .real(value)
        case (.real, .integer(let value)): return .real(Double(value))
        case (.uuid, .text(let text)), (.text, .text(let text)), (.file, .text(let text)):
            return .string(text)
        case (.blob, .blob(let bytes)): return .string(Base64.encode(bytes))
        case (.json, .text(let text)), (.set, .text(let text)):
            do { return try JSON(text: text) } catch { throw ColumnTypeError(message: "expected JSON text") }
        default: throw ColumnTypeError(message: "expected \(rawValue)")
        }
    }

    private static func real(_ json: JSON) throws(ColumnTypeError) -> Double {
        switch json {
        case .real(let value): return value == 0 ? 0 : value
        case .integer(let value):
            if let exact = Double(exactly: value) { return exact }
        default: break
        }
        throw ColumnTypeError(message: "expected a finite number that a double holds exactly")
    }

    private static func uuid(_ text: String?) throws(ColumnTypeError) -> String {
        guard let text, let lowered = UUIDText.lowered(text) else {
            throw ColumnTypeError(message: "expected a UUID such as 0191d3a0-0000-7000-8000-000000000000")
        }
        return lowered
    }

    private static func digest(_ text: String?) throws(ColumnTypeError) -> String {
        guard let lowered = text?.lowercased(), lowered.utf8.count == 64,
            lowered.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { throw ColumnTypeError(message: "expected a SHA-256 as 64 hexadecimal digits") }
        return lowered
    }
}

extension Column {
    /// The stored form of a wire value, `NULL` only where the column allows it.
    ///
    /// - Throws: ``ColumnTypeError`` naming what the column expects.
    public func value(from json: JSON) throws(ColumnTypeError) -> Value {
        guard json == .null, !isOptional else { return try type.value(from: json) }
        if type == .json { return .text("null") }
        throw ColumnTypeError(message: "expected a value, since the column is required")
    }
}

/// The distinct elements of a `set` column: integers first, by value, then strings by UTF-8 bytes.
package struct SetValue: Equatable, Sendable {
    package private(set) var elements: [JSON]

    package init(_ json: JSON) throws(ColumnTypeError) {
        guard let array = json.array else { throw ColumnTypeError(message: "expected an array") }
        self.init()
        try add(array)
    }

    package init() { elements = [] }

    /// Adds what is not there yet.
    package mutating func add(_ added: [JSON]) throws(ColumnTypeError) {
        for element in added {
            switch element {
            case .integer, .string: elements.append(element)
            default: throw ColumnTypeError(message: "a set holds strings and 64-bit integers")
            }
        }
        elements.sort(by: SetValue.less)
        var distinct: [JSON] = []
        for element in elements where distinct.last != element { distinct.append(element) }
        elements = distinct
    }

    /// Takes away what is there.
    package mutating func remove(_ removed: [JSON]) {
        let gone = Set(removed)
        elements.removeAll(where: gone.contains)
    }

    private static func less(_ left: JSON, _ right: JSON) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right
        case (.integer, _): true
        case (.string(let left), .string(let right)): utf8Less(left, right)
        default: false
        }
    }
}
