internal import FieldpostCore
internal import FieldpostSQLite

/// What a value must be beside what its column's type says: a value that could not travel is refused at once.
///
/// Refused are NUL, text that is not UTF-8, infinities, and JSON that our strict reader would refuse on the
/// way. What is cheap to see is asked in the table's own triggers; what is not, in ``SharedTriggers``.
struct CaptureChecks {
    let table: Table
    /// Columns of a table that the app made, whose types SQLite does not enforce.
    var unchecked: Set<String> = []

    /// One way in which a value cannot travel: an SQL condition, and what to tell the app.
    private struct Fault {
        let condition: String
        let message: String
    }

    /// Whether a value of `NEW` needs a look; `nil` where none ever does.
    ///
    /// - Parameter old: a row whose equal values need no second look.
    func condition(since old: String? = nil) -> String? {
        var conditions = table.columns.flatMap { column in
            shallow(column, since: old).map { changed(column, since: old) + $0.condition }
        }
        let texts = table.columns.filter { $0.type == .text }.map { column in
            changed(column, since: old) + UTF8Check.hasNonASCII("NEW.\(quoted(column.name))")
        }
        if !texts.isEmpty {
            conditions.append(
                "(SELECT trusted FROM fieldpost_session) = 0 AND (\(texts.joined(separator: " OR ")))"
            )
        }
        conditions += table.columns.filter(Self.isStructured).map { column in
            changed(column, since: old) + "NEW.\(quoted(column.name)) IS NOT NULL"
        }
        return conditions.isEmpty ? nil : "(\(conditions.joined(separator: " OR ")))"
    }

    /// Statements that abort the write, naming the column, unless every value of `NEW` can travel.
    func statements(since old: String? = nil) -> [String] {
        let cases = table.columns.flatMap { column in
            shallow(column, since: old).map {
                "WHEN \(changed(column, since: old))\($0.condition) \(abort($0.message))"
            }
        }
        return (cases.isEmpty ? [] : ["SELECT CASE \(cases.joined(separator: " ")) END"])
            + deepStatements(since: old)
    }

    private func shallow(_ column: Column, since old: String?) -> [Fault] {
        let isCounted = old != nil && table.rule(for: column.name) == .counter
        return faults(column, row: "NEW")
            + (isCounted ? [wideStep(column, old: "OLD.\(quoted(column.name))")] : [])
    }

    /// A statement that aborts a replacement by which a counter makes too wide a step; `nil` without
    /// counters.
    ///
    /// - Parameter old: the value before, by the column's name; `source` is the rest of its `SELECT`.
    func wideSteps(old: (String) -> String, from source: String) -> String? {
        let cases = table.columns.filter { table.rule(for: $0.name) == .counter }.map { column in
            let fault = wideStep(column, old: old(column.name))
            return "WHEN \(fault.condition) \(abort(fault.message))"
        }
        return cases.isEmpty ? nil : "SELECT CASE \(cases.joined(separator: " ")) END FROM \(source)"
    }

    /// Statements that have the doubtful values looked at closely, and abort for one that stayed.
    private func deepStatements(since old: String?) -> [String] {
        let doubtful = table.columns.filter { $0.type == .text || Self.isStructured($0) }
        if doubtful.isEmpty { return [] }
        let kinds = [ColumnType.text, .json, .set].filter { type in doubtful.contains { $0.type == type } }
        let inserts = kinds.map { type in
            let rows = doubtful.filter { $0.type == type }.map { column in
                "SELECT \(sqlString(column.name)), NEW.\(quoted(column.name)) "
                    + "WHERE \(changed(column, since: old))\(doubt(column, row: "NEW"))"
            }
            return
                "INSERT INTO fieldpost_doubtful_\(type.rawValue) (place, value) \(rows.joined(separator: " UNION ALL "))"
        }
        let messages = doubtful.map { "WHEN \(sqlString($0.name)) \(abort(message($0)))" }
        // JSON and sets have their text looked at as well.
        let left = (kinds.contains(.text) ? kinds : [.text] + kinds).map {
            "SELECT place FROM fieldpost_doubtful_\($0.rawValue)"
        }
        return inserts + [
            "SELECT CASE place \(messages.joined(separator: " ")) END FROM (\(left.joined(separator: " UNION ALL ")))"
        ]
    }

    private static func isStructured(_ column: Column) -> Bool { column.type == .json || column.type == .set }

    private func changed(_ column: Column, since old: String?) -> String {
        old.map { "\($0).\(quoted(column.name)) IS NOT NEW.\(quoted(column.name)) AND " } ?? ""
    }

    private func abort(_ message: String) -> String {
        "THEN RAISE(ABORT, \(sqlString("fieldpost type: \(message)")))"
    }

    /// An expression that says what is wrong with a row that is there already, or `NULL`.
    func fault(of row: String) -> String {
        let cases = table.columns.flatMap { column in
            let value = "\(row).\(quoted(column.name))"
            let isDeep = column.type == .text || Self.isStructured(column)
            let condition = "\(doubt(column, row: row)) AND \(DeepChecks.fault(column.type, value))"
            return faults(column, row: row)
                + (isDeep ? [Fault(condition: condition, message: message(column))] : [])
        }
        .map { "WHEN \($0.condition) THEN \(sqlString($0.message))" }
        return cases.isEmpty ? "NULL" : "CASE \(cases.joined(separator: " ")) END"
    }

    private func faults(_ column: Column, row: String) -> [Fault] {
        let value = "\(row).\(quoted(column.name))"
        var faults: [(String, String)] = unchecked.contains(column.name) ? typeFaults(column, value) : []
        switch column.type {
        case .real: faults.append(("\(value) IN (9e999, -9e999)", "is infinite; store a finite number"))
        case .uuid, .file, .text, .json, .set:
            faults.append(("instr(\(value), char(0))", "holds NUL; remove it"))
        case .integer, .date, .boolean, .blob: break
        }
        return faults.map { Fault(condition: $0.0, message: "\(table.name).\(column.name) \($0.1)") }
    }

    /// A counter's step is the difference, which must fit as well.
    private func wideStep(_ column: Column, old: String) -> Fault {
        Fault(
            condition: "typeof(NEW.\(quoted(column.name)) - \(old)) = 'real'",
            message: "\(table.name).\(column.name) changes by more than 64 bits hold; change it in two steps"
        )
    }

    /// Whether a value of a type that may hide something needs a closer look, which costs more than the rest
    /// of capture.
    private func doubt(_ column: Column, row: String) -> String {
        let value = "\(row).\(quoted(column.name))"
        if Self.isStructured(column) { return "\(value) IS NOT NULL" }
        return "(SELECT trusted FROM fieldpost_session) = 0 AND \(UTF8Check.hasNonASCII(value))"
    }

    private func message(_ column: Column) -> String {
        let reason =
            switch column.type {
            case .set: "holds something other than strings of valid UTF-8 and 64-bit integers"
            case .json:
                "is JSON that cannot travel: a name given twice, a number beyond a double, broken UTF-8, "
                    + "or more than \(DeepChecks.jsonDepth) levels"
            default: "is not valid UTF-8; encode it"
            }
        return "\(table.name).\(column.name) \(reason)"
    }

    // MARK: Tables of the app's own making

    private func typeFaults(_ column: Column, _ value: String) -> [(String, String)] {
        let classes: String =
            switch column.type {
            case .integer, .date, .boolean: "'integer'"
            case .real: "'real', 'integer'"
            case .blob: "'blob'"
            case .uuid, .text, .json, .set, .file: "'text'"
            }
        let isNull = column.isOptional ? ", 'null'" : ""
        var faults = [("typeof(\(value)) NOT IN (\(classes)\(isNull))", "is not \(column.type.rawValue)")]
        if let condition = TableDDL.typeCheck(column, value) {
            faults.append(("\(value) IS NOT NULL AND NOT (\(condition))", "is not \(column.type.rawValue)"))
        }
        return faults
    }
}
