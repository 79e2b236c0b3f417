internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite

/// The promises, looked for in the files by plain SQL.
struct Checks {
    let world: World

    init(_ world: World) { self.world = world }

    /// P1: every operation whose write returned is still somewhere.
    func nothingLost(on device: SimulatedDevice) throws {
        try world.readSettled()
        device.forget(settled: world.settled)
        if device.unsettled.isEmpty { return }
        let connection = device.database.connection
        let known = Set(
            try ids(connection, "SELECT id FROM fieldpost_outbox UNION ALL SELECT id FROM fieldpost_outcomes")
        )
        for id in device.unsettled where !known.contains(id) {
            throw Violation(message: "P1: operation \(id) of \(device.name) was confirmed and is nowhere")
        }
    }

    func ids(_ connection: Connection, _ sql: String) throws -> [String] {
        try connection.query(sql).compactMap { $0[0].text }
    }

    // MARK: P5

    /// The newest unsent value of each column that was set.
    static func unsent(_ device: SimulatedDevice) throws -> [String: JSON] {
        var values: [String: JSON] = [:]
        let rows = try device.database.connection.query(
            "SELECT tbl, row, change, action FROM fieldpost_outbox WHERE action <> 'intent' ORDER BY seq"
        )
        for row in rows {
            let prefix = "\(row[0].text ?? "")/\(row[1].text ?? "")/"
            if row[3] == "delete" { values = values.filter { !$0.key.hasPrefix(prefix) } }
            let set = row[2].text.flatMap { try? JSON(text: $0).object }?["set"]?.object
            for member in set?.members ?? [] { values[prefix + member.name] = member.value }
        }
        return values
    }

    /// P5: what was unsent before a page is shown after it, unless the operation itself is gone.
    func unsentEditsSurvive(_ before: [String: JSON], on device: SimulatedDevice) throws {
        let after = try Checks.unsent(device)
        for (place, value) in before where after[place] == value {
            let parts = place.split(separator: "/").map(String.init)
            guard let table = Workload.schema.table(parts[0]), let column = table.column(parts[2]) else {
                continue
            }
            // A set's own value is the merge's to make.
            if table.rule(for: column.name) == .set || table.rule(for: column.name) == .counter { continue }
            let shown = try device.database.connection.query(
                "SELECT \(quoted(column.name)) FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?",
                .text(parts[1])
            )
            // An update of a row that the server deleted shows nothing until the server has judged it.
            guard let row = shown.first else { continue }
            let expected = try column.type.value(from: value)
            if row[0] != expected {
                throw Violation(
                    message:
                        "P5: a pull overwrote \(parts[0]).\(parts[2]) on \(device.name) before it was sent"
                )
            }
        }
    }

    // MARK: Base and replay

    /// The outbox as it stands, to see whether something changed it.
    static func outbox(_ device: SimulatedDevice) throws -> [[Value]] {
        try device.database.connection.query(
            "SELECT seq, id, ifnull(grp, seq), state, attempts, change, held_by FROM fieldpost_outbox ORDER BY seq"
        )
    }

    /// What the server last said of the rows that have unsettled operations, by `table/row`.
    static func bases(_ device: SimulatedDevice) throws -> [String: JSONObject] {
        var bases: [String: JSONObject] = [:]
        let rows = try device.database.connection.query(
            "SELECT tbl, row, base FROM fieldpost_rows WHERE base IS NOT NULL AND deleted = 0"
        )
        for row in rows {
            bases["\(row[0].text ?? "")/\(row[1].text ?? "")"] = try JSON(text: row[2].text ?? "").object
        }
        return bases
    }

    /// Every row with unsettled operations is the server's row with these on top.
    func everyRowIsReplay(on device: SimulatedDevice) throws {
        let bases = try Checks.bases(device)
        for row in try device.database.connection.query("SELECT DISTINCT tbl, row FROM fieldpost_outbox") {
            let (table, key) = (row[0].text ?? "", row[1].text ?? "")
            try isReplay(device, table, key, on: bases["\(table)/\(key)"])
        }
    }

    /// The row is `base` with its unsettled operations on top.
    func isReplay(_ device: SimulatedDevice, _ name: String, _ key: String, on base: JSONObject?) throws {
        guard let table = Workload.schema.table(name) else { return }
        let connection = device.database.connection
        let repair = Repair(device.database)
        let operations = try connection.query(
            "SELECT id FROM fieldpost_outbox WHERE tbl = ? AND row = ? ORDER BY seq",
            .text(name),
            .text(key)
        ).map { try repair.entry(OperationID(stored: $0[0].text ?? "")).operation(table) }
        let wanted = Merge.replay(base: base, operations: operations, table: table)
        let shown = try connection.query(
            "SELECT \(table.columns.map { quoted($0.name) }.joined(separator: ", ")) FROM \(quoted(name)) "
                + "WHERE \(quoted(table.key)) = ?",
            .text(key)
        ).first
        let expected = try wanted.map { wanted in
            try table.columns.map { try Checks.canonical($0.type.value(from: wanted[$0.name] ?? .null), $0) }
        }
        let found = try shown.map { try zip($0, table.columns).map { try Checks.canonical($0, $1) } }
        if found != expected {
            throw Violation(
                message:
                    "P5: \(name)/\(key) on \(device.name) is \(found.map { "\($0)" } ?? "gone"), and base and "
                    + "replay make \(expected.map { "\($0)" } ?? "none")"
            )
        }
    }

    /// One text for each value, however it is spelled.
    private static func canonical(_ value: Value, _ column: Column) throws -> Value {
        try column.type.value(from: try column.type.json(from: value))
    }
}
