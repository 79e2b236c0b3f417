internal import FieldpostCore
internal import Foundation

/// Reads any `Decodable` from Core's JSON; the inverse of ``JSONValueEncoder``.
struct JSONValueDecoder: Decoder {
    let json: JSON
    var codingPath: [any CodingKey] = []
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The value that `json` stands for.
    static func decode<T: Decodable>(_ type: T.Type, from json: JSON) throws -> T {
        try JSONValueDecoder(json: json).decode(type)
    }

    func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let object) = json else { throw mismatch("an object") }
        return KeyedDecodingContainer(Keyed(object: object, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = json else { throw mismatch("an array") }
        return Unkeyed(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(decoder: self) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let value: T = try scalar(type) { return value }
        return try T(from: self)
    }

    private func scalar<T>(_ type: T.Type) throws -> T? {
        if type == String.self { return known(try required(json.string, "a string"), as: type) }
        if type == Bool.self { return known(try required(json.bool, "true or false"), as: type) }
        if type == Double.self { return known(try required(real, "a number"), as: type) }
        if type == Float.self { return known(Float(try required(real, "a number")), as: type) }
        if type == UUID.self {
            return known(try required(json.string.flatMap { StoredTypes.uuid($0) }, "a UUID"), as: type)
        }
        if type == Date.self {
            return known(StoredTypes.date(try required(json.integer, "a date")), as: type)
        }
        if type == Data.self {
            return known(Data(try required(json.string.flatMap(Base64.decode), "base64")), as: type)
        }
        if type == Decimal.self {
            return known(
                try required(json.string.flatMap(StoredTypes.decimal), "a decimal as text"),
                as: type
            )
        }
        if type == URL.self {
            return known(try required(json.string.flatMap(URL.init(string:)), "a URL"), as: type)
        }
        if let integer = type as? any BinaryInteger.Type { return try exact(integer) as? T }
        return nil
    }

    private var real: Double? {
        switch json {
        case .real(let value): value
        case .integer(let value): Double(value)
        default: nil
        }
    }

    private func exact<Number: BinaryInteger>(_ type: Number.Type) throws -> Number {
        try required(json.integer.flatMap(Number.init(exactly:)), "an integer that \(type) holds")
    }

    private func required<T>(_ value: T?, _ what: String) throws -> T {
        guard let value else { throw mismatch(what) }
        return value
    }

    private func mismatch(_ what: String) -> DecodingError {
        .typeMismatch(Any.self, .init(codingPath: codingPath, debugDescription: "expected \(what)"))
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let object: JSONObject
        let codingPath: [any CodingKey]
        var allKeys: [Key] { object.names.compactMap(Key.init(stringValue:)) }

        func contains(_ key: Key) -> Bool { object[key.stringValue] != nil }
        func decodeNil(forKey key: Key) throws -> Bool { try child(key).json == .null }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try child(key).decode(type) }
        func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws
            -> KeyedDecodingContainer<Nested>
        {
            try child(key).container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try child(key).unkeyedContainer()
        }
        func superDecoder() throws -> any Decoder { JSONValueDecoder(json: object["super"] ?? .null) }
        func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }

        private func child(_ key: Key) throws -> JSONValueDecoder {
            guard let json = object[key.stringValue] else {
                throw DecodingError.keyNotFound(
                    key,
                    .init(codingPath: codingPath, debugDescription: "the JSON has no \(key.stringValue)")
                )
            }
            return JSONValueDecoder(json: json, codingPath: codingPath + [key])
        }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let elements: [JSON]
        let codingPath: [any CodingKey]
        var currentIndex = 0
        var count: Int? { elements.count }
        var isAtEnd: Bool { currentIndex >= elements.count }

        mutating func decodeNil() throws -> Bool {
            guard try peek().json == .null else { return false }
            currentIndex += 1
            return true
        }
        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            let value = try peek().decode(type)
            currentIndex += 1
            return value
        }
        mutating func nestedContainer<Nested>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<
            Nested
        > {
            try next().container(keyedBy: type)
        }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try next().unkeyedContainer()
        }
        mutating func superDecoder() throws -> any Decoder { try next() }

        private func peek() throws -> JSONValueDecoder {
            guard !isAtEnd else {
                throw DecodingError.valueNotFound(
                    Any.self,
                    .init(
                        codingPath: codingPath,
                        debugDescription: "the array has \(elements.count) elements"
                    )
                )
            }
            return JSONValueDecoder(json: elements[currentIndex], codingPath: codingPath)
        }
        private mutating func next() throws -> JSONValueDecoder {
            defer { currentIndex += 1 }
            return try peek()
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let decoder: JSONValueDecoder
        var codingPath: [any CodingKey] { decoder.codingPath }

        func decodeNil() -> Bool { decoder.json == .null }
        func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type) }
    }
}
