internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// Reads one column of the current row as a Swift value.
///
/// What is stored decides: a type that wants an object or an array finds JSON text, one that wants a scalar finds the
/// storage class that holds it, and everything else is an error that names the property.
final class FieldDecoder: Decoder, SingleValueDecodingContainer {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let statement: Statement
    private let typeName: String
    private var column: Int32 = 0
    private var property = ""

    init(_ statement: Statement, typeName: String) {
        self.statement = statement
        self.typeName = typeName
    }

    // MARK: The storage classes

    func integer(_ column: Int32, _ key: some CodingKey) throws -> Int64 {
        guard statement.storageClass(column) == .integer else {
            throw mismatch(column, key.stringValue, "an integer")
        }
        return statement.integer(column)
    }

    func boolean(_ column: Int32, _ key: some CodingKey) throws -> Bool {
        guard statement.storageClass(column) == .integer else {
            throw mismatch(column, key.stringValue, "0 or 1")
        }
        return statement.integer(column) != 0
    }

    func real(_ column: Int32, _ key: some CodingKey) throws -> Double {
        switch statement.storageClass(column) {
        case .real, .integer: statement.real(column)
        default: throw mismatch(column, key.stringValue, "a number")
        }
    }

    func text(_ column: Int32, _ key: some CodingKey) throws -> String {
        guard statement.storageClass(column) == .text else { throw mismatch(column, key.stringValue, "text") }
        return statement.text(column)
    }

    func json(_ column: Int32, _ key: some CodingKey) throws -> JSONValueDecoder {
        (self.column, property) = (column, key.stringValue)
        return try jsonDecoder()
    }

    func decode<T: Decodable>(_ type: T.Type, _ column: Int32, _ key: some CodingKey) throws -> T {
        (self.column, property) = (column, key.stringValue)
        return try decode(type)
    }

    /// Reads `column` as `type`, for a result that is one value.
    func decode<T: Decodable>(_ type: T.Type, column: Int32) throws -> T {
        (self.column, property) = (column, statement.columnName(column))
        return try decode(type)
    }

    // MARK: Any type

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let stored = statement.storageClass(column)
        if type == UUID.self {
            guard stored == .text, let uuid = StoredTypes.uuid(statement.borrowedBytes(column)) else {
                throw mismatch("a UUID")
            }
            return known(uuid, as: type)
        }
        if type == Date.self {
            guard stored == .integer else { throw mismatch("a date as integer milliseconds") }
            return known(StoredTypes.date(statement.integer(column)), as: type)
        }
        return try decodeOther(type, stored)
    }

    // Apart, since a function that speaks of `T?` has its metadata looked up at each call.
    @inline(never) private func decodeOther<T: Decodable>(_ type: T.Type, _ stored: StorageClass) throws -> T
    {
        if let value: T = try basic(type, stored) { return value }
        if let value: T = try foundation(type, stored) { return value }
        if type == [UInt8].self, stored == .blob { return known(statement.blob(column), as: type) }
        return try T(from: self)
    }

    private func basic<T>(_ type: T.Type, _ stored: StorageClass) throws -> T? {
        if type == String.self {
            guard stored == .text else { throw mismatch("text") }
            return known(statement.text(column), as: type)
        }
        if type == Int.self || type == Int64.self {
            guard stored == .integer else { throw mismatch("an integer") }
            return known(statement.integer(column), as: type)
        }
        if type == Double.self { return known(try number(stored), as: type) }
        if type == Float.self { return known(Float(try number(stored)), as: type) }
        if type == Bool.self {
            guard stored == .integer else { throw mismatch("0 or 1") }
            return known(statement.integer(column) != 0, as: type)
        }
        guard let integer = type as? any FixedWidthInteger.Type else { return nil }
        return try exact(integer, stored) as? T
    }

    private func exact<Number: FixedWidthInteger>(_ type: Number.Type, _ stored: StorageClass) throws
        -> Number
    {
        guard stored == .integer, let value = Number(exactly: statement.integer(column)) else {
            throw mismatch("an integer that \(type) holds")
        }
        return value
    }

    private func number(_ stored: StorageClass) throws -> Double {
        guard stored == .real || stored == .integer else { throw mismatch("a number") }
        return statement.real(column)
    }

    private func foundation<T>(_ type: T.Type, _ stored: StorageClass) throws -> T? {
        if type == Data.self {
            guard stored == .blob else { throw mismatch("a blob") }
            return known(Data(statement.borrowedBytes(column)), as: type)
        }
        if type == Decimal.self {
            guard stored != .null, let decimal = StoredTypes.decimal(statement.text(column)) else {
                throw mismatch("a decimal as text")
            }
            return known(decimal, as: type)
        }
        if type == URL.self {
            guard stored == .text, let url = URL(string: statement.text(column)) else {
                throw mismatch("a URL")
            }
            return known(url, as: type)
        }
        return nil
    }

    // MARK: What a type's own init(from:) asks for

    func decodeNil() -> Bool { statement.isNull(column) }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try jsonDecoder().container(keyedBy: type)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try jsonDecoder().unkeyedContainer() }

    private func jsonDecoder() throws -> JSONValueDecoder {
        guard statement.storageClass(column) == .text, let json = try? JSON(text: statement.text(column))
        else {
            throw mismatch("JSON text")
        }
        return JSONValueDecoder(json: json, codingPath: [PropertyKey(stringValue: property)])
    }

    private func mismatch(_ what: String) -> FieldpostError { mismatch(column, property, what) }

    private func mismatch(_ column: Int32, _ property: String, _ what: String) -> FieldpostError {
        let found = statement.storageClass(column)
        let remedy = found == .null ? "; make the property optional" : ""
        return FieldpostError(
            .type,
            "\(typeName).\(property): expected \(what), and the column \(statement.columnName(column)) holds "
                + "\(found.words)\(remedy).",
            names: [property]
        )
    }
}

/// The name of a property, where a coding path needs a key.
struct PropertyKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
