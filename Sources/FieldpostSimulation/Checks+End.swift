internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite

/// What must be true once every device has come to rest.
extension Checks {
    func everything() throws {
        for device in world.devices {
            try nothingLost(on: device)
            if try waiting(on: device) > 0 {
                throw Violation(message: "P3: \(device.name) still has work that could go")
            }
            try everyRowIsReplay(on: device)
            try asideIsExplained(on: device)
            try conflictsAreKept(on: device)
            try order(of: device)
            try groupsWhole(of: device)
            try givenUpStaysAway(on: device)
            try convergence(of: device)
        }
        try exactlyOnce()
    }

    /// How many operations could still go.
    func waiting(on device: SimulatedDevice) throws -> Int64 {
        try device.database.connection.scalar(
            "SELECT count(*) FROM fieldpost_outbox WHERE state < 2 OR decision IS NOT NULL"
        )?
        .integer
            ?? 0
    }

    private func appliedByServer() throws -> [String: Int64] {
        var places: [String: Int64] = [:]
        try world.server.connection.forEach(
            "SELECT id, rowid FROM fieldpost_operations WHERE status = 'applied'"
        ) { places[$0.text(0)] = $0.integer(1) }
        return places
    }

    // MARK: P2

    /// The tally holds exactly what people were told was added, less what was set aside.
    private func exactlyOnce() throws {
        var expected = world.devices.reduce(0) { $0 + ($1.counted["tally"] ?? 0) }
        for device in world.devices { expected -= try setAside(device) }
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
            UNION ALL SELECT change FROM fieldpost_outcomes
            WHERE row = 'tally' AND tbl = 'notes' AND status <> 'applied'
            """
        )
        return rows.reduce(0) { sum, row in
            let change = row[0].text.flatMap { try? JSON(text: $0).object }
            let added = change?["inc"]?.object?["likes"]?.integer ?? 0
            return sum + added + (change?["set"]?.object?["likes"]?.integer ?? 0)
        }
    }

    // MARK: P3

    /// The server applied a device's operations on a row in the order they were made.
    private func order(of device: SimulatedDevice) throws {
        let applied = try appliedByServer()
        var last: [String: Int64] = [:]
        let rows = try device.database.connection.query(
            "SELECT seq, id, tbl, row FROM fieldpost_outcomes WHERE status = 'applied' ORDER BY seq"
        )
        for row in rows {
            let place = "\(row[2].text ?? "")/\(row[3].text ?? "")"
            guard let position = applied[row[1].text ?? ""] else {
                throw Violation(message: "P2: \(row[1]) counts as applied, and the server has not applied it")
            }
            if let before = last[place], before >= position {
                throw Violation(
                    message: "P3: operation \(row[0]) on \(place) was applied before an earlier one"
                )
            }
            last[place] = position
        }
    }

    /// What was refused had a reason of its own, what is held names something it depends on, and nothing else is left.
    private func asideIsExplained(on device: SimulatedDevice) throws {
        let connection = device.database.connection
        let rows = try connection.query(
            "SELECT id, ifnull(grp, seq), state, held_by, error -> '$.code', row, tbl FROM fieldpost_outbox ORDER BY seq"
        )
        for row in rows {
            let group = try connection.query(
                "SELECT group_concat(ifnull(change, ''), ' '), group_concat(ifnull(after, ''), ' ') FROM fieldpost_outbox "
                    + "WHERE ifnull(grp, seq) = ?",
                row[1]
            )[0]
            let (id, words) = (row[0].text ?? "", group[0].text ?? "")
            if row[2] == 2 {
                try isHeld(device, id, group: row[1], by: row[3].text ?? "", after: group[1].text ?? "")
            } else {
                let code = row[4].text.flatMap { try? JSON(text: $0).string } ?? ""
                let isExplained: Bool =
                    switch code {
                    case "credit_limit": try isOverLimit(connection, row[1])
                    case "status_allowed", "title_allowed": words.contains(Workload.forbidden)
                    case "too_large": words.contains(Workload.huge) || words.utf8.count > 5_000
                    case "server_error": words.contains(Workload.poison)
                    case "reference": try refersToDeleted(connection, row[1])
                    case "group", "retry", "voided": true
                    default: false
                    }
                world.note("dead letter \(code)", "\(id) of \(device.name) is a dead letter: \(code)")
                if !isExplained {
                    throw Violation(
                        message: "P3: \(id) on \(device.name) is a dead letter, “\(code)”, for no reason"
                    )
                }
            }
        }
    }

    private func isOverLimit(_ connection: Connection, _ group: Value) throws -> Bool {
        try connection.scalar(
            "SELECT max(change ->> '$.set.total_idr') FROM fieldpost_outbox WHERE ifnull(grp, seq) = ?",
            group
        )?.integer ?? 0 > Workload.creditLimit
    }

    /// Whether the group deletes an order, or refers to one that somebody deleted.
    private func refersToDeleted(_ connection: Connection, _ group: Value) throws -> Bool {
        let rows = try connection.query(
            "SELECT tbl, action, change ->> '$.set.order_id' FROM fieldpost_outbox WHERE ifnull(grp, seq) = ?",
            group
        )
        return try rows.contains { row in
            if row[0] == "orders", row[1] == "delete" { return true }
            return try world.server.connection.scalar(
                "SELECT deleted FROM fieldpost_feed WHERE tbl = 'orders' AND row = ?",
                row[2]
            ) == 1
        }
    }

    private func isHeld(
        _ device: SimulatedDevice,
        _ id: String,
        group: Value,
        by holder: String,
        after: String
    ) throws {
        let isAside = try device.database.connection.scalar(
            "SELECT state >= 2 FROM fieldpost_outbox WHERE id = ?",
            .text(holder)
        )
        if isAside != 1 {
            throw Violation(
                message: "P3: \(id) on \(device.name) is held by \(holder), which is not set aside"
            )
        }
        let sharesRow = try device.database.connection.scalar(
            """
            SELECT 1 FROM fieldpost_outbox AS a, fieldpost_outbox AS b
            WHERE a.id = ? AND ifnull(b.grp, b.seq) = ? AND a.row = b.row AND a.tbl = b.tbl
            """,
            .text(holder),
            group
        )
        if !after.contains(holder), sharesRow == nil {
            throw Violation(
                message: "P3: \(id) on \(device.name) is held by \(holder), which it does not depend on"
            )
        }
    }

    // MARK: P4

    /// The server has all operations of a local transaction or none.
    ///
    /// What lost a conflict is out of it: its mates go on without it if a person says so. So is what was made and deleted
    /// before it was sent, where the table lets such a pair vanish.
    func groupsWhole(of device: SimulatedDevice) throws {
        let applied = try appliedByServer()
        let rows = try device.database.connection.query(
            """
            SELECT ifnull(grp, seq), id, '' FROM fieldpost_outbox
            UNION ALL SELECT ifnull(grp, seq), id, status FROM fieldpost_outcomes
            WHERE NOT (status = 'discarded' AND tbl IN ('items', 'drafts'))
            """
        )
        var groups: [Int64: (applied: Int, missing: Int)] = [:]
        for row in rows {
            let group = row[0].integer ?? 0
            if row[2] == "conflict", device.sentAgain.contains(group) { continue }
            if applied[row[1].text ?? ""] != nil {
                groups[group, default: (0, 0)].applied += 1
            } else {
                groups[group, default: (0, 0)].missing += 1
            }
        }
        for (group, count) in groups where count.applied > 0 && count.missing > 0 {
            throw Violation(
                message:
                    "P4: of group \(group) of \(device.name), the server has \(count.applied) operations and "
                    + "lacks \(count.missing)"
            )
        }
    }

    // MARK: P7

    /// Every edit that lost is kept for people to see.
    private func conflictsAreKept(on device: SimulatedDevice) throws {
        let lost = try device.database.connection.query(
            """
            SELECT id FROM fieldpost_outcomes WHERE status = 'conflict'
            AND id NOT IN (SELECT operation FROM fieldpost_conflicts)
            """
        )
        if let id = lost.first?[0] {
            throw Violation(message: "P7: \(id) lost on \(device.name), and nobody can see it")
        }
    }

    /// What was given up, or refused and sent again under another id, is never applied.
    private func givenUpStaysAway(on device: SimulatedDevice) throws {
        let applied = try appliedByServer()
        let discarded = try ids(
            device.database.connection,
            "SELECT id FROM fieldpost_outcomes WHERE status = 'discarded'"
        )
        for id in device.formerIDs.union(discarded).sorted() where applied[id] != nil {
            throw Violation(message: "P2: \(id) was given up on \(device.name), and the server has it")
        }
    }

    // MARK: Convergence

    /// The device shows what the server has; for rows with unsettled work, that is what lies under it.
    private func convergence(of device: SimulatedDevice) throws {
        let bases = try Checks.bases(device)
        for table in Workload.schema.tables {
            let columns = table.columns.map { quoted($0.name) }.joined(separator: ", ")
            let sql = "SELECT \(columns) FROM \(table.name) ORDER BY 1"
            let unsettled = Set(
                try ids(
                    device.database.connection,
                    "SELECT row FROM fieldpost_outbox WHERE tbl = \(sqlString(table.name))"
                )
            )
            var shown: [String: [Value]] = [:]
            for row in try device.database.connection.query(sql) where !unsettled.contains(row[0].text ?? "")
            {
                shown[row[0].text ?? ""] = Array(row)
            }
            for key in unsettled {
                guard let base = bases["\(table.name)/\(key)"] else { continue }
                shown[key] = try table.columns.map { try $0.type.value(from: base[$0.name] ?? .null) }
            }
            var truth: [String: [Value]] = [:]
            for row in try world.server.connection.query(sql) { truth[row[0].text ?? ""] = Array(row) }
            for key in Set(shown.keys).union(truth.keys).sorted() where shown[key] != truth[key] {
                throw Violation(
                    message:
                        "\(table.name)/\(key) differs\(unsettled.contains(key) ? " under unsettled work" : ""): "
                        + "the server has \(truth[key].map { "\($0)" } ?? "none"), \(device.name) "
                        + "\(shown[key].map { "\($0)" } ?? "none")"
                )
            }
        }
    }
}
