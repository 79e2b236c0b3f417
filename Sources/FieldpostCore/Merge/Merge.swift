/// The one function that says what a row is after operations: used by the server when it applies them, and by the
/// device after a pull, an answer, a rejection or a discard.
///
/// Pure and total: whatever comes in, a row or none comes out, and the same input gives the same output.
public enum Merge {
    /// What the device shows: the row as the server last knew it with the unsettled operations on top.
    ///
    /// - Parameters:
    ///   - base: the server's row in wire form, or `nil` where the server has none.
    ///   - operations: the row's unsettled operations, oldest first.
    /// - Returns: the row, or `nil` where there is none.
    public static func replay(base: JSONObject?, operations: [Operation], table: Table) -> JSONObject? {
        operations.reduce(base) { row, operation in apply(operation, to: row, table: table) }
    }

    /// The row after one operation.
    ///
    /// An update of a row that is not there leaves it absent: an update never creates.
    public static func apply(_ operation: Operation, to row: JSONObject?, table: Table) -> JSONObject? {
        switch operation.action {
        case .delete: return nil
        case .intent: return row
        case .create: return changed(table.emptyRow(key: operation.row), by: operation.change)
        case .update: return row.map { changed($0, by: operation.change) }
        }
    }

    /// The row after one change.
    package static func changed(_ row: JSONObject, by change: Change) -> JSONObject {
        var row = row
        for member in change.set.members { row[member.name] = member.value }
        for member in change.inc.members {
            row[member.name] = .integer(sum(row[member.name], member.value))
        }
        for name in change.add.names + change.remove.names {
            var elements = (try? SetValue(row[name] ?? [])) ?? SetValue()
            elements.remove(change.remove[name]?.array ?? [])
            try? elements.add(change.add[name]?.array ?? [])
            row[name] = .array(elements.elements)
        }
        return row
    }

    /// The sum, held at the limits of 64 bits: the server refuses an operation that would pass them.
    private static func sum(_ left: JSON?, _ right: JSON) -> Int64 {
        let left = left?.integer ?? 0
        let (sum, overflow) = left.addingReportingOverflow(right.integer ?? 0)
        return overflow ? (left < 0 ? .min : .max) : sum
    }
}

extension Table {
    /// A row of defaults: what a create starts from.
    package func emptyRow(key: String) -> JSONObject {
        JSONObject(
            distinct: columns.map { column in
                (column.name, column.name == self.key ? .string(key) : column.defaultValue ?? .null)
            }
        )
    }
}
