internal import FieldpostCore
internal import Foundation

/// What is known of a record type by itself: its properties, and which key path reads which.
///
/// Learnt once for each type, from made-up instances; see ``ProbeDecoder`` and `docs/decisions/key-paths.md`.
final class RecordShape<Record: SyncedRecord>: Sendable {
    let fields: [ProbeDecoder.Field]
    private let base: Record?
    private let names: Locked<[AnyKeyPath: String]>

    private init() {
        let probe = ProbeDecoder()
        base = try? Record(from: probe)
        // A type that refuses made-up values may have decoded only some of its properties.
        fields = base == nil ? [] : RecordShape.distinct(probe.fields)
        names = Locked([:])
    }

    private static func distinct(_ fields: [ProbeDecoder.Field]) -> [ProbeDecoder.Field] {
        var seen: Set<String> = []
        return fields.filter { seen.insert($0.property).inserted }
    }

    /// The shape of a type; the same object each time.
    static func of(_ type: Record.Type) -> RecordShape {
        RecordShapes.shared.withLock { shapes in
            if let shape = shapes[ObjectIdentifier(type)] as? RecordShape { return shape }
            let shape = RecordShape()
            shapes[ObjectIdentifier(type)] = shape
            return shape
        }
    }

    /// The coding key of the property that `path` reads.
    ///
    /// - Throws: ``FieldpostError/Code/unknownColumn`` for a computed property that is no stored one under another name.
    func property<Part: Encodable>(_ path: KeyPath<Record, Part>) throws -> String {
        if let known = names.withLock({ $0[path] }) { return known }
        let found = try find(path)
        names.withLock { $0[path] = found }
        return found
    }

    private func find<Part: Encodable>(_ path: KeyPath<Record, Part>) throws -> String {
        let words = "\(Record.self): the key path of type \(Part.self)"
        guard let base else {
            throw FieldpostError(
                .unsupported,
                "\(Record.self) refuses made-up values in init(from:), so its key paths are not known; filter it by SQL."
            )
        }
        let before = try stored(base, path)
        for field in fields {
            let probe = ProbeDecoder(varied: field.property)
            guard let other = try? Record(from: probe), try stored(other, path) != before else { continue }
            // A computed property moves with what it is computed from; only the property itself equals the column.
            if try column(field.property, of: base) == before,
                try column(field.property, of: other) == stored(other, path)
            {
                return field.property
            }
        }
        throw FieldpostError(.unknownColumn, "\(words) reads no column; use a stored property.")
    }

    private func stored<Part: Encodable>(_ record: Record, _ path: KeyPath<Record, Part>) throws -> Value {
        try FieldCoding.value(record[keyPath: path], for: nil)
    }

    private func column(_ property: String, of record: Record) throws -> Value? {
        let slots = fields.map { (property: $0.property, type: ColumnType?.none) }
        let values = try RowEncoder.values(of: record, typeName: "\(Record.self)", slots: slots)
        return fields.firstIndex { $0.property == property }.map { values[$0] }
    }
}

/// The shapes of all record types in use.
private enum RecordShapes {
    static let shared = Locked<[ObjectIdentifier: any Sendable]>([:])
}
