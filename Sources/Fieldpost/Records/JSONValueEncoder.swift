internal import FieldpostCore
internal import Foundation

/// Turns any `Encodable` into Core's JSON, integers exact to 64 bits.
///
/// Not Foundation's encoder: that one keeps no order of members and takes ten times as long.
final class JSONValueEncoder: Encoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var content = Content.null

    private enum Content {
        case null
        case json(JSON)
        case array([JSONValueEncoder])
        case object([(name: String, value: JSONValueEncoder)])
    }

    /// The JSON of `value`.
    static func json(_ value: some Encodable) throws -> JSON {
        let encoder = JSONValueEncoder()
        try encoder.encode(value)
        return encoder.json
    }

    var json: JSON {
        switch content {
        case .null: .null
        case .json(let json): json
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members): .object(JSONObject(distinct: members.map { ($0.name, $0.value.json) }))
        }
    }

    func encode(_ value: some Encodable) throws {
        if let json = try JSONValueEncoder.scalar(value) {
            content = .json(json)
        } else {
            try value.encode(to: self)
        }
    }

    private static func scalar(_ value: some Encodable) throws -> JSON? {
        switch value {
        case let value as String: return .string(value)
        case let value as Bool: return .bool(value)
        case let value as Double: return .real(try finite(value))
        case let value as Float: return .real(try finite(Double(value)))
        case let value as any BinaryInteger:
            guard let exact = Int64(exactly: value) else {
                throw ColumnTypeError(message: "expected a 64-bit integer")
            }
            return .integer(exact)
        case let value as UUID: return .string(StoredTypes.text(value))
        case let value as Date:
            guard let exact = StoredTypes.milliseconds(value) else {
                throw ColumnTypeError(message: "expected a date")
            }
            return .integer(exact)
        case let value as Data: return .string(Base64.encode(Array(value)))
        case let value as Decimal: return .string(StoredTypes.text(value))
        case let value as URL: return .string(value.absoluteString)
        default: return nil
        }
    }

    private static func finite(_ value: Double) throws -> Double {
        guard value.isFinite else { throw ColumnTypeError(message: "expected a finite number") }
        return value
    }

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .object = content {} else { content = .object([]) }
        return KeyedEncodingContainer(Keyed<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .array = content {} else { content = .array([]) }
        return Unkeyed(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

    fileprivate func member(_ name: String) -> JSONValueEncoder {
        let child = JSONValueEncoder()
        guard case .object(var members) = content else { return child }
        members.removeAll { $0.name == name }
        members.append((name, child))
        content = .object(members)
        return child
    }

    fileprivate func element() -> JSONValueEncoder {
        let child = JSONValueEncoder()
        guard case .array(var elements) = content else { return child }
        content = .null
        elements.append(child)
        content = .array(elements)
        return child
    }

    fileprivate var count: Int { if case .array(let elements) = content { elements.count } else { 0 } }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: JSONValueEncoder
        var codingPath: [any CodingKey] { [] }

        func encodeNil(forKey key: Key) { _ = encoder.member(key.stringValue) }
        func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
            try encoder.member(key.stringValue).encode(value)
        }
        func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<
            Nested
        > {
            encoder.member(key.stringValue).container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            encoder.member(key.stringValue).unkeyedContainer()
        }
        func superEncoder() -> any Encoder { encoder.member("super") }
        func superEncoder(forKey key: Key) -> any Encoder { encoder.member(key.stringValue) }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let encoder: JSONValueEncoder
        var codingPath: [any CodingKey] { [] }
        var count: Int { encoder.count }

        func encodeNil() { _ = encoder.element() }
        func encode<T: Encodable>(_ value: T) throws { try encoder.element().encode(value) }
        func nestedContainer<Nested>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            encoder.element().container(keyedBy: type)
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.element().unkeyedContainer() }
        func superEncoder() -> any Encoder { encoder.element() }
    }

    private struct Single: SingleValueEncodingContainer {
        let encoder: JSONValueEncoder
        var codingPath: [any CodingKey] { [] }

        func encodeNil() { encoder.content = .null }
        func encode<T: Encodable>(_ value: T) throws { try encoder.encode(value) }
    }
}
