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

    private func ids(_ connection: Connection, _ sql: String) throws -> [String] {
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

    // MARK: The end

    func everything() throws {
        for device in world.devices { try nothingLost(on: device) }
        try nothingWaiting()
        try exactlyOnce()
        try order()
        try convergence()
    }

    private func nothingWaiting() throws {
        for device in world.devices {
            let left = try device.database.connection.scalar(
                "SELECT count(*) FROM fieldpost_outbox WHERE state < 2"
            )
            if left != .integer(0) {
                throw Violation(message: "P3: \(device.name) still has work that could go")
            }
        }
    }

    /// P2: the tally holds exactly what people were told was added, less what was set aside.
    private func exactlyOnce() throws {
        var expected = world.devices.reduce(0) { $0 + ($1.counted["tally"] ?? 0) }
        for device in world.devices {
            expected -= try setAside(device)
        }
        let found =
            try world.server.connection.scalar("SELECT likes FROM notes WHERE id = 'tally'")?.integer ?? 0
        if found != expected {
            throw Violation(message: "P2: the tally is \(found), and \(expected) were added")
        }
        let twice = try world.server.connection.query(
            "SELECT id FROM fieldpost_operations GROUP BY id HAVING count(*) > 1"
        )
        if !twice.isEmpty { throw Violation(message: "P2: an operation is settled twice") }
    }

    /// What lost or failed operations would have added.
    private func setAside(_ device: SimulatedDevice) throws -> Int64 {
        let rows = try device.database.connection.query(
            """
            SELECT change FROM fieldpost_outbox WHERE row = 'tally' AND tbl = 'notes'
            UNION ALL SELECT change FROM fieldpost_outcomes WHERE row = 'tally' AND tbl = 'notes' AND status <> 'applied'
            """
        )
        return rows.reduce(0) { sum, row in
            let change = row[0].text.flatMap { try? JSON(text: $0).object }
            let added = change?["inc"]?.object?["likes"]?.integer ?? 0
            return sum + added + (change?["set"]?.object?["likes"]?.integer ?? 0)
        }
    }

    /// P3: the server applied each device's operations on a row in the order they were made.
    private func order() throws {
        let rows = try world.server.connection.query(
            "SELECT device, operation, seq FROM fieldpost_operations WHERE status = 'applied' ORDER BY rowid"
        )
        var last: [String: Int64] = [:]
        for row in rows {
            guard let operation = row[1].text.flatMap({ try? JSON(text: $0).object }),
                let seq = row[2].integer
            else { continue }
            let place = "\(row[0]) \(operation["table"]?.string ?? "") \(operation["row"]?.string ?? "")"
            if let before = last[place], before >= seq {
                throw Violation(message: "P3: operation \(seq) on \(place) was applied after \(before)")
            }
            last[place] = seq
        }
    }

    /// Every device shows what the server has.
    private func convergence() throws {
        for table in Workload.schema.tables {
            let sql =
                "SELECT \(table.columns.map { quoted($0.name) }.joined(separator: ", ")) FROM \(table.name) ORDER BY 1"
            let truth = try world.server.connection.query(sql)
            for device in world.devices {
                let failed = Set(
                    try ids(
                        device.database.connection,
                        "SELECT row FROM fieldpost_outbox WHERE tbl = \(sqlString(table.name))"
                    )
                )
                let shown = try device.database.connection.query(sql)
                let left = truth.filter { !failed.contains($0[0].text ?? "") }
                let right = shown.filter { !failed.contains($0[0].text ?? "") }
                if left != right {
                    let difference = zip(left, right).first { $0 != $1 }
                    throw Violation(
                        message:
                            "\(device.name) and the server differ in \(table.name): \(left.count) and \(right.count) rows"
                            + (difference.map { "; the server has \($0.0), the device \($0.1)" } ?? "")
                    )
                }
            }
        }
    }
}
