internal import FieldpostCore
internal import Foundation

/// What a property's Swift type is to a column.
enum SwiftKind: Equatable {
    case integer, real, text, boolean, uuid, date, bytes, decimal, url, array, object
    /// A type that would not be made up.
    case unknown

    /// Whether a column of `type` holds it.
    func fits(_ type: ColumnType) -> Bool {
        switch (self, type) {
        case (.unknown, _): true
        case (.integer, .integer), (.integer, .date), (.date, .date), (.boolean, .boolean), (.real, .real):
            true
        case (.text, .text), (.text, .uuid), (.text, .file), (.text, .json): true
        case (.uuid, .uuid), (.uuid, .text), (.decimal, .text), (.url, .text): true
        case (.bytes, .blob), (.array, .set), (.array, .json), (.object, .json): true
        default: false
        }
    }

    init(_ type: Any.Type) {
        switch type {
        case is String.Type: self = .text
        case is Bool.Type: self = .boolean
        case is Double.Type, is Float.Type: self = .real
        case is UUID.Type: self = .uuid
        case is Date.Type: self = .date
        case is Data.Type, is [UInt8].Type: self = .bytes
        case is Decimal.Type: self = .decimal
        case is URL.Type: self = .url
        case is any FixedWidthInteger.Type: self = .integer
        default: self = .unknown
        }
    }
}

/// Makes up an instance of a record type, and so learns which keys and types it decodes.
///
/// Every property gets one of two values of its type. Two instances that differ in one key tell which key paths read
/// that key, whatever the type's coding keys and initializer look like.
final class ProbeDecoder: Decoder {
    /// One property as the type decodes it.
    struct Field {
        var property: String
        var type: Any.Type
        var kind: SwiftKind
        var isOptional: Bool
    }

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    /// The key that gets the other value.
    private let varied: String?
    fileprivate(set) var fields: [Field] = []
    fileprivate var askedForNil: Set<String> = []

    init(varied: String? = nil) { self.varied = varied }

    func container<Key>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(ProbeContainer<Key>(probe: self))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw ProbeFailure() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw ProbeFailure() }

    fileprivate func decode<T: Decodable>(_ type: T.Type, _ property: String, isOptional: Bool) throws -> T {
        let index = fields.count
        fields.append(Field(property: property, type: type, kind: .unknown, isOptional: isOptional))
        let variant = ProbeVariant(isOther: property == varied)
        let value = try variant.make(type)
        fields[index].kind = variant.kind
        if variant.foundNil || askedForNil.contains(property) { fields[index].isOptional = true }
        return value
    }
}

/// The type refuses made-up values.
struct ProbeFailure: Error {}

private struct ProbeContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let probe: ProbeDecoder
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { [] }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) throws -> Bool {
        // Only who takes nil asks; `decodeIfPresent` of the standard library's own types does.
        probe.askedForNil.insert(key.stringValue)
        return false
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try probe.decode(type, key.stringValue, isOptional: false)
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try? probe.decode(type, key.stringValue, isOptional: true)
    }
    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<
        Nested
    > {
        throw ProbeFailure()
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw ProbeFailure()
    }
    func superDecoder() throws -> any Decoder { probe }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw ProbeFailure() }
}

/// Makes up one value, of two that differ.
private final class ProbeVariant: Decoder, SingleValueDecodingContainer {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    let isOther: Bool
    /// What the outermost value turned out to be.
    var kind = SwiftKind.unknown
    /// Whether it asked if it is nil, as an optional does.
    var foundNil = false

    init(isOther: Bool) { self.isOther = isOther }

    func make<T: Decodable>(_ type: T.Type) throws -> T {
        if let value = constant(type) {
            note(SwiftKind(type))
            return value
        }
        if let raw = (type as? any RawRepresentable.Type), let value: T = made(raw, type) { return value }
        return try T(from: self)
    }

    private func note(_ found: SwiftKind) { if kind == .unknown { kind = found } }

    private func constant<T>(_ type: T.Type) -> T? {
        let number = isOther ? 2 : 1
        switch type {
        case is String.Type: return (isOther ? "b" : "a") as? T
        case is Bool.Type: return isOther as? T
        case is Double.Type: return Double(number) as? T
        case is Float.Type: return Float(number) as? T
        case is UUID.Type:
            return UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number))) as? T
        case is Date.Type: return Date(timeIntervalSince1970: Double(number)) as? T
        case is Data.Type: return Data([UInt8(number)]) as? T
        case is [UInt8].Type: return [UInt8(number)] as? T
        case is Decimal.Type: return Decimal(number) as? T
        case is URL.Type: return URL(string: "a:/\(number)") as? T
        case let integer as any FixedWidthInteger.Type: return integer.init(truncatingIfNeeded: number) as? T
        default: return nil
        }
    }

    /// An enum's case: of those it lists, or, since it may list none, of the first two.
    private func made<T, Raw: RawRepresentable>(_ raw: Raw.Type, _ type: T.Type) -> T? {
        let value: Raw?
        if let listed = raw as? any CaseIterable.Type {
            value = ProbeVariant.element(of: listed, isOther ? 1 : 0) as? Raw
        } else if MemoryLayout<Raw>.size == 1 {
            // Safe because: a value of one byte holds no reference, and the layout of enums without payload numbers
            // their cases from 0 (docs/ABI/TypeLayout.rst in the Swift project); an enum of one case has no byte.
            value = withUnsafeBytes(of: UInt8(isOther ? 1 : 0)) { $0.loadUnaligned(as: Raw.self) }
        } else {
            value = (constant(Raw.RawValue.self)).flatMap(Raw.init(rawValue:))
        }
        if value != nil { note(SwiftKind(Raw.RawValue.self)) }
        return value as? T
    }

    private static func element<Listed: CaseIterable>(of type: Listed.Type, _ index: Int) -> Listed? {
        let all = Array(type.allCases)
        return all.indices.contains(index) ? all[index] : all.first
    }

    // MARK: What a type's own init(from:) asks for

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
    func decodeNil() -> Bool {
        foundNil = true
        return false
    }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try make(type) }

    func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        note(.object)
        return KeyedDecodingContainer(NestedProbe<Key>(isOther: isOther))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        note(.array)
        return NestedProbeArray(isOther: isOther)
    }
}

private struct NestedProbe<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let isOther: Bool
    var codingPath: [any CodingKey] { [] }
    // A dictionary decodes all keys there are, so the other value is one with a member.
    var allKeys: [Key] { isOther ? [Key(stringValue: "a")].compactMap { $0 } : [] }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) throws -> Bool { false }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try ProbeVariant(isOther: isOther).make(type)
    }
    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<
        Nested
    > {
        KeyedDecodingContainer(NestedProbe<Nested>(isOther: isOther))
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        NestedProbeArray(isOther: isOther)
    }
    func superDecoder() throws -> any Decoder { throw ProbeFailure() }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw ProbeFailure() }
}

private struct NestedProbeArray: UnkeyedDecodingContainer {
    let isOther: Bool
    var codingPath: [any CodingKey] { [] }
    var currentIndex = 0
    var count: Int? { isOther ? 1 : 0 }
    var isAtEnd: Bool { currentIndex >= (isOther ? 1 : 0) }

    mutating func decodeNil() throws -> Bool { false }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        currentIndex += 1
        return try ProbeVariant(isOther: isOther).make(type)
    }
    mutating func nestedContainer<Nested>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested>
    {
        currentIndex += 1
        return KeyedDecodingContainer(NestedProbe<Nested>(isOther: isOther))
    }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return NestedProbeArray(isOther: isOther)
    }
    mutating func superDecoder() throws -> any Decoder { throw ProbeFailure() }
}
