internal import FieldpostCore
internal import FieldpostCrypto

/// An operation in the one spelling of its meaning: lower-case ids, sorted sets, exact numbers.
///
/// Its fingerprint tells whether two operations of one id are the same, however a client wrote them.
struct NormalisedOperation {
    let operation: Operation
    let fingerprint: [UInt8]

    init(_ operation: Operation, table: Table?) {
        var operation = operation
        if let table {
            if table.column(table.key)?.type == .uuid {
                operation.row = UUIDText.lowered(operation.row) ?? operation.row
            }
            operation.change.set = NormalisedOperation.spelled(operation.change.set, table)
            operation.change.add = NormalisedOperation.sorted(operation.change.add)
            operation.change.remove = NormalisedOperation.sorted(operation.change.remove)
        }
        self.operation = operation
        fingerprint = SHA256.hash(operation.canonicalBytes)
    }

    /// What does not fit its column stays as it came: it is refused later, and the same each time.
    private static func spelled(_ set: JSONObject, _ table: Table) -> JSONObject {
        JSONObject(
            distinct: set.members.map { member in
                guard let type = table.column(member.name)?.type, type != .json,
                    let value = try? type.value(from: member.value), let json = try? type.json(from: value)
                else { return member }
                return (member.name, json)
            }
        )
    }

    private static func sorted(_ parts: JSONObject) -> JSONObject {
        JSONObject(
            distinct: parts.members.map { member in
                (member.name, (try? SetValue(member.value)).map { .array($0.elements) } ?? member.value)
            }
        )
    }
}
