internal import FieldpostCore
internal import Foundation

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Turns a Swift value into what its column stores.
enum FieldCoding {
    /// The stored form of `value`; without a column, the form that its Swift type suggests.
    ///
    /// - Throws: `ColumnTypeError` saying what the column expects.
    static func value<T: Encodable>(_ value: T, for type: ColumnType?) throws -> Value {
        if let plain = try plain(value, type) { return plain }
        let encoder = FieldEncoder(type: type)
        try value.encode(to: encoder)
        return try encoder.result()
    }

    private static func plain<T: Encodable>(_ value: T, _ type: ColumnType?) throws -> Value? {
        if T.self == UUID.self { return .text(StoredTypes.text(known(value, as: UUID.self))) }
        if T.self == Date.self { return .integer(try date(known(value, as: Date.self))) }
        if T.self == String.self { return try text(known(value, as: String.self), type) }
        if T.self == Int.self { return .integer(Int64(known(value, as: Int.self))) }
        if T.self == Int64.self { return .integer(known(value, as: Int64.self)) }
        if T.self == Bool.self { return .integer(known(value, as: Bool.self) ? 1 : 0) }
        if T.self == Double.self { return .real(try finite(known(value, as: Double.self))) }
        if T.self == Float.self { return .real(try finite(Double(known(value, as: Float.self)))) }
        if T.self == Decimal.self { return .text(StoredTypes.text(known(value, as: Decimal.self))) }
        if T.self == URL.self { return .text(known(value, as: URL.self).absoluteString) }
        if T.self == Data.self, type == nil || type == .blob {
            return .blob(Array(known(value, as: Data.self)))
        }
        if T.self == [UInt8].self, type == nil || type == .blob {
            return .blob(known(value, as: [UInt8].self))
        }
        guard let integer = value as? any FixedWidthInteger else { return nil }
        guard let exact = Int64(exactly: integer) else {
            throw ColumnTypeError(message: "expected a signed 64-bit integer, and the number is larger")
        }
        return .integer(exact)
    }

    /// Text as a column of `type` stores it.
    static func text(_ text: String, _ type: ColumnType?) throws -> Value {
        switch type {
        case .uuid, .file: return try type?.value(from: .string(text)) ?? .null
        case .json:
            do { return .text(try JSON(text: text).text()) } catch {
                throw ColumnTypeError(message: "expected JSON text")
            }
        default:
            if holdsNUL(text) { throw ColumnTypeError(message: "expected text without NUL") }
            return .text(text)
        }
    }

    private static func holdsNUL(_ text: String) -> Bool {
        text.utf8.withContiguousStorageIfAvailable {
            memchr($0.baseAddress ?? UnsafePointer(bitPattern: 1)!, 0, $0.count) != nil
        }
            ?? text.utf8.contains(0)
    }

    /// JSON as a column of `type` stores it: a set sorted, members in the order of their names.
    static func value(json: JSON, for type: ColumnType?) throws -> Value {
        if type == .set { return try ColumnType.set.value(from: json) }
        return .text(json.text(canonical: true))
    }

    private static func date(_ date: Date) throws -> Int64 {
        guard let milliseconds = StoredTypes.milliseconds(date) else {
            throw ColumnTypeError(message: "expected a date within 64 bits of milliseconds")
        }
        return milliseconds
    }

    static func finite(_ value: Double) throws -> Double {
        guard value.isFinite else { throw ColumnTypeError(message: "expected a finite number") }
        return value == 0 ? 0 : value
    }
}

/// Takes what a type encodes of itself: one value, or something that becomes JSON.
private final class FieldEncoder: Encoder, SingleValueEncodingContainer {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let type: ColumnType?
    private var value = Value.null
    private var json: JSONValueEncoder?

    init(type: ColumnType?) { self.type = type }

    func result() throws -> Value {
        guard let json else { return value }
        return try FieldCoding.value(json: json.json, for: type)
    }

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        nested().container(keyedBy: type)
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }
    func singleValueContainer() -> any SingleValueEncodingContainer { self }
    func encodeNil() { value = .null }
    func encode<T: Encodable>(_ value: T) throws { self.value = try FieldCoding.value(value, for: type) }

    private func nested() -> JSONValueEncoder {
        let encoder = json ?? JSONValueEncoder()
        json = encoder
        return encoder
    }
}
