internal import FieldpostCore
internal import FieldpostSQLite

/// What no constraint can say of a value, checked in the trigger: a value that could not travel is refused at once.
struct CaptureChecks {
    let table: Table

    init(_ table: Table) { self.table = table }

    /// A statement that aborts the write, naming the column, unless every value of `NEW` can travel.
    var statement: String {
        let checks = table.columns.flatMap { column in
            faults(column).map { condition, message in
                "WHEN \(condition) THEN RAISE(ABORT, "
                    + "\(sqlString("fieldpost type: \(table.name).\(column.name) \(message)")))"
            }
        }
        return checks.isEmpty ? "SELECT 1" : "SELECT CASE \(checks.joined(separator: " ")) END"
    }

    private func faults(_ column: Column) -> [(String, String)] {
        let value = "NEW.\(quoted(column.name))"
        switch column.type {
        case .real: return [("\(value) IN (9e999, -9e999)", "is infinite; store a finite number")]
        case .text:
            return [
                ("instr(\(value), char(0))", "holds NUL; remove it"), (invalidUTF8(value), "is not valid UTF-8; encode it"),
            ]
        case .json: return [(invalidUTF8(value), "is not valid UTF-8; encode it")]
        case .set:
            return [
                (
                    "EXISTS (SELECT 1 FROM json_each(\(value)) WHERE type NOT IN ('integer', 'text'))",
                    "holds something other than strings and integers"
                ), (invalidUTF8(value), "is not valid UTF-8; encode it"),
            ]
        default: return []
        }
    }

    /// Whether a text written by a program we do not know is not UTF-8, which SQLite does not check.
    ///
    /// A character that decodes and encodes to other bytes is none. SQL in a trigger has no recursion, so the places
    /// are counted by arrays of zeros, in slices of 128 to keep a long text from costing its square.
    private func invalidUTF8(_ value: String) -> String {
        func numbers(_ count: String) -> String { "json_each('[0' || replace(hex(zeroblob(\(count))), '00', ',0') || ']')" }
        return "\(value) GLOB '*[^' || char(1) || '-' || char(127) || ']*' "
            + "AND NOT (SELECT trusted FROM fieldpost_session) AND EXISTS (SELECT 1 FROM "
            + "(SELECT substr(\(value), k.key * 128 + 1, 128) AS part FROM \(numbers("length(\(value)) / 128")) AS k LIMIT -1) AS p, "
            + "\(numbers("127")) AS j WHERE j.key < length(p.part) "
            + "AND char(unicode(substr(p.part, j.key + 1, 1))) IS NOT substr(p.part, j.key + 1, 1))"
    }
}
