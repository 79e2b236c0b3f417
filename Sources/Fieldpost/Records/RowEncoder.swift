internal import FieldpostCore

/// Takes the properties of a record as the values of its columns.
///
/// Like ``RowDecoder`` it expects each type to encode its properties in the same order every time.
final class RowEncoder: Encoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let typeName: String
    private let slots: [(property: String, type: ColumnType?)]
    private var cursor = 0
    /// One for each slot; `NULL` where the record encoded nothing.
    private var values: [Value]
    /// What a hand-written `encode(to:)` opened inside the row; filled only after it has returned.
    private var nested: [(property: String, encoder: JSONValueEncoder)] = []

    init(typeName: String, slots: [(property: String, type: ColumnType?)]) {
        self.typeName = typeName
        self.slots = slots
        values = Array(repeating: .null, count: slots.count)
    }

    /// The values of `record`, one for each slot.
    static func values(
        of record: some Encodable,
        typeName: String,
        slots: [(property: String, type: ColumnType?)]
    ) throws -> [Value] {
        let encoder = RowEncoder(typeName: typeName, slots: slots)
        try record.encode(to: encoder)
        for (property, nested) in encoder.nested {
            let index = try encoder.find(property)
            encoder.values[index] = try FieldCoding.value(json: nested.json, for: slots[index].type)
        }
        return encoder.values
    }

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(RowEncodingContainer<Key>(encoder: self))
    }

    // A record that is no keyed container has no properties; it was refused when its columns were looked up.
    func unkeyedContainer() -> any UnkeyedEncodingContainer { JSONValueEncoder().unkeyedContainer() }
    func singleValueContainer() -> any SingleValueEncodingContainer {
        JSONValueEncoder().singleValueContainer()
    }

    fileprivate func find(_ property: String) throws -> Int {
        if cursor < slots.count, slots[cursor].property == property {
            cursor += 1
            return cursor - 1
        }
        let found =
            slots.firstIndex { $0.property == property }
            ?? slots.firstIndex { $0.property == Naming.snakeCase(property) }
        guard let index = found else {
            throw FieldpostError(
                .unknownColumn,
                "\(typeName).\(property) is encoded but not decoded, so it has no column.",
                names: [property]
            )
        }
        cursor = index + 1
        return index
    }

    fileprivate func set(_ value: Value, _ key: some CodingKey) throws {
        values[try find(key.stringValue)] = value
    }

    fileprivate func encode<T: Encodable>(_ value: T, _ key: some CodingKey) throws {
        let index = try find(key.stringValue)
        do {
            values[index] = try FieldCoding.value(value, for: slots[index].type)
        } catch let error as ColumnTypeError {
            throw FieldpostError(
                .type,
                "\(typeName).\(key.stringValue): \(error.message).",
                names: [key.stringValue]
            )
        }
    }

    fileprivate func encodeOptional<T: Encodable>(_ value: T?, _ key: some CodingKey) throws {
        if let value { try encode(value, key) } else { try set(.null, key) }
    }

    fileprivate func nest(_ key: some CodingKey) -> JSONValueEncoder {
        let child = JSONValueEncoder()
        nested.append((key.stringValue, child))
        return child
    }
}

private struct RowEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: RowEncoder
    var codingPath: [any CodingKey] { [] }

    func encodeNil(forKey key: Key) throws { try encoder.set(.null, key) }
    func encode(_ value: Int, forKey key: Key) throws { try encoder.set(.integer(Int64(value)), key) }
    func encode(_ value: Int64, forKey key: Key) throws { try encoder.set(.integer(value), key) }
    func encode(_ value: Bool, forKey key: Key) throws { try encoder.set(.integer(value ? 1 : 0), key) }
    func encode(_ value: Double, forKey key: Key) throws { try encoder.encode(value, key) }
    func encode(_ value: String, forKey key: Key) throws { try encoder.encode(value, key) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try encoder.encode(value, key) }

    // The defaults for the standard library's own types say nothing of nil, and lose the place.
    func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encoder.encodeOptional(value, key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encoder.encodeOptional(value, key) }
    func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encoder.encodeOptional(value, key) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encoder.encodeOptional(value, key) }
    func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encoder.encodeOptional(value, key) }
    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
        try encoder.encodeOptional(value, key)
    }

    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested>
    {
        encoder.nest(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.nest(key).unkeyedContainer()
    }
    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.nest(key) }
}
