internal import FieldpostCore
internal import FieldpostSQLite

/// Records what was written to a table while it had no triggers, as far as it can be told from the file.
///
/// Rows that nobody recorded become creates, and rows that are gone become deletes. A changed value of a row
/// without unsettled operations leaves no trace; the server's digest finds it. A row that cannot travel
/// becomes a dead letter, so that it is seen.
struct Adoption {
    let connection: Connection
    let schema: Schema
    /// The tables to look through.
    let tables: [String: CaptureSQL]

    /// Chains of rows that refer to rows of their own table are followed this far; what is deeper, or a
    /// circle, comes last in any order.
    private static let passes = 100

    func run() throws {
        for table in parentsFirst() { if let capture = tables[table.name] { try recordCreates(capture) } }
        for table in parentsFirst().reversed() where table.conflict != .appendOnly {
            if let capture = tables[table.name] { try recordDeletes(capture) }
        }
    }

    /// The schema's tables, those referred to before those that refer to them.
    private func parentsFirst() -> [Table] {
        var sorted: [Table] = []
        var seen: Set<String> = []
        func visit(_ table: Table) {
            guard seen.insert(table.name).inserted else { return }
            for column in table.columns {
                if let parent = column.reference.flatMap({ schema.table($0.table) }) { visit(parent) }
            }
            sorted.append(table)
        }
        schema.tables.forEach(visit)
        return sorted
    }

    private func recordCreates(_ capture: CaptureSQL) throws {
        let checks = CaptureChecks(table: capture.table, unchecked: capture.facts.uncheckedColumns)
        let rows = "\(capture.name) AS t WHERE \(isUnrecorded(capture))"
        let parents = capture.table.columns.filter { $0.reference?.table == capture.table.name }
        let isNext = parents.map { column in
            "(\(newest("t.\(quoted(column.name))", capture)) IS NOT NULL OR t.\(quoted(column.name)) IS NULL "
                + "OR \(isLive("t.\(quoted(column.name))", capture)))"
        }
        let create = capture.create(row: "t", from: "\(rows) AND \(checks.fault(of: "t")) IS NULL")
        for _ in 0..<(isNext.isEmpty ? 0 : Self.passes) {
            try connection.execute("\(create) AND \(isNext.joined(separator: " AND "))")
            if connection.changes == 0 { break }
        }
        try connection.execute(create)
        try connection.execute(
            """
            INSERT INTO fieldpost_outbox (id, tbl, row, action, change, schema, created_at, state, error)
              SELECT \(capture.newIDOfEachRow), \(capture.literal), t.\(capture.key), 'create', '{"set":{}}', \(capture.schemaVersion),
                \(capture.now), 3, json_object('code', 'type', 'message', \(checks.fault(of: "t")), 'fields', json_array())
              FROM \(rows)
            """
        )
    }

    private func recordDeletes(_ capture: CaptureSQL) throws {
        func isGone(_ row: String) -> String {
            "NOT EXISTS (SELECT 1 FROM \(capture.name) AS t WHERE t.\(capture.key) = \(row))"
        }
        try connection.execute(
            capture.delete(
                "k",
                keyed: "k.row",
                from:
                    "fieldpost_rows AS k WHERE k.tbl = \(capture.literal) AND k.deleted = 0 AND \(isGone("k.row")) "
                    + "AND \(newest("k.row", capture)) IS NULL AND NOT \(isParked("k.row", capture))"
            )
        )
        try connection.execute(
            capture.delete(
                "k",
                keyed: "k.row",
                from: "(SELECT DISTINCT row FROM fieldpost_outbox WHERE tbl = \(capture.literal)) AS k "
                    + "WHERE \(newest("k.row", capture)) IN ('create', 'update') AND \(isGone("k.row")) "
                    + "AND NOT \(isParked("k.row", capture))"
            )
        )
    }

    // MARK: Conditions

    private func isUnrecorded(_ capture: CaptureSQL) -> String {
        let key = "t.\(capture.key)"
        return
            "(\(newest(key, capture)) = 'delete' OR \(newest(key, capture)) IS NULL AND NOT \(isLive(key, capture)))"
    }

    /// What the newest unsettled operation on a row does.
    private func newest(_ row: String, _ capture: CaptureSQL) -> String {
        "(SELECT o.action FROM fieldpost_outbox AS o WHERE o.row = \(row) AND o.tbl = \(capture.literal) "
            + "ORDER BY o.seq DESC LIMIT 1)"
    }

    private func isLive(_ row: String, _ capture: CaptureSQL) -> String {
        "EXISTS (SELECT 1 FROM fieldpost_rows AS v WHERE v.tbl = \(capture.literal) AND v.row = \(row) AND v.deleted = 0)"
    }

    /// A row that the server sent and that could not be shown yet is not gone.
    private func isParked(_ row: String, _ capture: CaptureSQL) -> String {
        "EXISTS (SELECT 1 FROM fieldpost_parked AS h WHERE h.tbl = \(capture.literal) AND h.row = \(row))"
    }
}
