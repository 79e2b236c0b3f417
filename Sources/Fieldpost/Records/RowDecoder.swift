internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// Which column of a statement holds each property, in the order in which the type decodes them.
struct RowPlan {
    /// The type, for errors.
    let typeName: String
    /// Property and column, in decoding order as far as it is known.
    let slots: [(property: String, column: Int32)]
    /// Columns by property and by their own name.
    private let columns: [String: Int32]

    /// A plan for a statement whose columns are called `names`.
    init(typeName: String, properties: [String], names: [String]) {
        self.typeName = typeName
        var columns: [String: Int32] = [:]
        for (index, name) in names.enumerated() where columns[name] == nil { columns[name] = Int32(index) }
        for property in properties {
            if columns[property] == nil, let column = columns[Naming.snakeCase(property)] {
                columns[property] = column
            }
        }
        self.columns = columns
        slots = properties.compactMap { property in columns[property].map { (property, $0) } }
    }

    func column(_ property: String) -> Int32? { columns[property] ?? columns[Naming.snakeCase(property)] }
}

/// Reads a record from the current row of a statement, by position.
///
/// One decoder reads every row of a query: a type decodes its properties in the same order each time, so the next
/// property is nearly always the next slot of the plan, and a comparison of two short strings finds the column.
final class RowDecoder: Decoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    fileprivate let statement: Statement
    fileprivate let plan: RowPlan
    fileprivate let field: FieldDecoder
    private var cursor = 0
    /// The container of the last row, and the type of its keys.
    private var kept: (key: Any.Type, holder: AnyObject)?

    init(_ statement: Statement, plan: RowPlan) {
        self.statement = statement
        self.plan = plan
        field = FieldDecoder(statement, typeName: plan.typeName)
    }

    /// The record in the current row.
    func decode<Record: Decodable>(_ type: Record.Type) throws -> Record {
        cursor = 0
        do {
            return try Record(from: self)
        } catch let error as DecodingError {
            throw FieldpostError(decoding: error, typeName: plan.typeName)
        }
    }

    func container<Key>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        if let kept, kept.key == type {
            // Safe because: a holder is kept together with the type of the keys it was made for.
            return unsafeDowncast(kept.holder, to: ContainerHolder<Key>.self).container
        }
        let container = KeyedDecodingContainer(RowContainer<Key>(decoder: self))
        kept = (type, ContainerHolder(container))
        return container
    }

    /// Ends the circle of decoder and container.
    func finish() { kept = nil }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw notARow }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw notARow }

    private var notARow: FieldpostError {
        FieldpostError(.type, "\(plan.typeName) is not decoded by its keys, so it cannot be a row.")
    }

    @inline(__always) fileprivate func find(_ property: String) -> Int32? {
        if cursor < plan.slots.count, plan.slots[cursor].property == property {
            defer { cursor += 1 }
            return plan.slots[cursor].column
        }
        return findElsewhere(property)
    }

    /// Whether the property is `NULL` or has no column; the next property stays the next.
    fileprivate func isNull(_ property: String) -> Bool {
        let saved = cursor
        defer { cursor = saved }
        return find(property).map { statement.isNull($0) } ?? true
    }

    private func findElsewhere(_ property: String) -> Int32? {
        if let index = plan.slots.firstIndex(where: { $0.property == property }) {
            cursor = index + 1
            return plan.slots[index].column
        }
        return plan.column(property)
    }

    @inline(__always) fileprivate func column(_ key: some CodingKey) throws -> Int32 {
        let property = key.stringValue
        if let column = find(property) { return column }
        throw FieldpostError(
            .unknownColumn,
            "\(plan.typeName).\(property): the query returns no column \(Naming.snakeCase(property)); select it, or make "
                + "the property optional.",
            names: [property]
        )
    }
}

/// Keeps a container from one row to the next: making one costs as much as reading two columns.
private final class ContainerHolder<Key: CodingKey> {
    let container: KeyedDecodingContainer<Key>

    init(_ container: KeyedDecodingContainer<Key>) { self.container = container }
}

private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: RowDecoder
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { decoder.plan.slots.compactMap { Key(stringValue: $0.property) } }

    func contains(_ key: Key) -> Bool { decoder.plan.column(key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { decoder.isNull(key.stringValue) }

    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        Int(try decoder.field.integer(try decoder.column(key), key))
    }

    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try decoder.field.integer(try decoder.column(key), key)
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try decoder.field.boolean(try decoder.column(key), key)
    }

    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try decoder.field.real(try decoder.column(key), key)
    }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try decoder.field.text(try decoder.column(key), key)
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try decoder.field.decode(type, try decoder.column(key), key)
    }

    // The defaults for the standard library's own types look a key up three times.
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        guard let column = present(key) else { return nil }
        return Int(try decoder.field.integer(column, key))
    }

    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        guard let column = present(key) else { return nil }
        return try decoder.field.integer(column, key)
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        guard let column = present(key) else { return nil }
        return try decoder.field.boolean(column, key)
    }

    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        guard let column = present(key) else { return nil }
        return try decoder.field.real(column, key)
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        guard let column = present(key) else { return nil }
        return try decoder.field.text(column, key)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let column = present(key) else { return nil }
        return try decoder.field.decode(type, column, key)
    }

    private func present(_ key: Key) -> Int32? {
        guard let column = decoder.find(key.stringValue), !decoder.statement.isNull(column) else {
            return nil
        }
        return column
    }

    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<
        Nested
    > {
        try decoder.field.json(try decoder.column(key), key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.field.json(try decoder.column(key), key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { decoder }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try decoder.field.json(try decoder.column(key), key)
    }
}

extension FieldpostError {
    /// What a stored value says that its Swift type cannot be.
    init(decoding error: DecodingError, typeName: String) {
        let context: DecodingError.Context
        var name: String?
        switch error {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .dataCorrupted(let found):
            context = found
        case .keyNotFound(let key, let found):
            context = found
            name = key.stringValue
        @unknown default:
            self.init(.type, "\(typeName): a stored value is not what the type expects.")
            return
        }
        let path = (context.codingPath.map(\.stringValue) + [name].compactMap { $0 }).joined(separator: ".")
        self.init(
            .type,
            "\(typeName)\(path.isEmpty ? "" : ".\(path)"): \(context.debugDescription).",
            names: [context.codingPath.first?.stringValue].compactMap { $0 }
        )
    }
}
