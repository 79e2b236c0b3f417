internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// What the crews do: orders, payments that refer to them, notes edited and deleted by everybody.
enum Workload {
    /// One transaction of an app.
    struct Change {
        var statements: [(sql: String, arguments: [Value])] = []
        /// What it adds to counters, by row.
        var counted: [String: Int64] = [:]
        var story = ""
    }

    static let schema = Schema(version: 1) {
        Table("orders", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("plate", .text).optional()
            Column("total_idr", .integer)
            Column("status", .text).defaults(to: "open")
        }
        .check("total_not_negative", "total_idr >= 0")
        Table("payments", scopeFrom: "order_id") {
            Column("id", .uuid).primaryKey()
            Column("order_id", .uuid).references("orders")
            Column("amount_idr", .integer)
        }
        .conflict(.appendOnly)
        Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("body", .text).optional()
            Column("score", .real).optional()
            Column("tags", .set).defaults(to: [])
            Column("likes", .integer).defaults(to: 0)
        }
        .rule("tags", .set).rule("likes", .counter)
    }

    /// Draws one transaction that makes sense on what the device shows.
    static func change(on database: LocalDatabase, now: Timestamp, random: inout SeededRandom) throws
        -> Change
    {
        var change = Change()
        for _ in 0...random.below(3) {
            switch random.below(10) {
            case 0..<3: order(&change, now: now, random: &random)
            case 3..<4: try payment(&change, database, now: now, random: &random)
            case 4..<5: try orderUpdate(&change, database, random: &random)
            default: note(&change, random: &random)
            }
        }
        return change
    }

    private static func order(_ change: inout Change, now: Timestamp, random: inout SeededRandom) {
        let id = UUIDText.version7(at: now, using: &random)
        change.statements.append(
            (
                "INSERT INTO orders (id, branch_id, plate, total_idr) VALUES (?, ?, ?, ?)",
                [
                    .text(id), .text("B\(random.below(2))"), .text("plate \(random.below(1_000))"),
                    .integer(Int64(random.below(90_000))),
                ]
            )
        )
        if random.chance(50) {
            let payment = UUIDText.version7(at: now, using: &random)
            change.statements.append(
                (
                    "INSERT INTO payments (id, order_id, amount_idr) VALUES (?, ?, ?)",
                    [.text(payment), .text(id), .integer(Int64(random.below(90_000)))]
                )
            )
        }
        change.story += " order"
    }

    private static func anOrder(_ database: LocalDatabase, random: inout SeededRandom) throws -> Value? {
        let count = Int(try database.connection.scalar("SELECT count(*) FROM orders")?.integer ?? 0)
        return try database.connection.scalar(
            "SELECT id FROM orders ORDER BY id LIMIT 1 OFFSET ?",
            .integer(Int64(random.below(count)))
        )
    }

    private static func payment(
        _ change: inout Change,
        _ database: LocalDatabase,
        now: Timestamp,
        random: inout SeededRandom
    ) throws {
        guard let order = try anOrder(database, random: &random) else { return }
        let id = UUIDText.version7(at: now, using: &random)
        change.statements.append(
            (
                "INSERT INTO payments (id, order_id, amount_idr) VALUES (?, ?, ?)",
                [.text(id), order, .integer(Int64(random.below(90_000)))]
            )
        )
        change.story += " payment"
    }

    private static func orderUpdate(
        _ change: inout Change,
        _ database: LocalDatabase,
        random: inout SeededRandom
    ) throws {
        guard let order = try anOrder(database, random: &random) else { return }
        change.statements.append(
            (
                "UPDATE orders SET status = ? WHERE id = ?", [.text("status \(random.below(1_000))"), order]
            )
        )
        change.story += " order-update"
    }

    private static func note(_ change: inout Change, random: inout SeededRandom) {
        let row = "note-\(random.below(8))"
        let words = "é\u{301}\"\\ \(random.next())"
        switch random.below(6) {
        case 0:
            change.statements.append(
                ("INSERT OR IGNORE INTO notes (id, title) VALUES (?, ?)", [.text(row), .text(words)])
            )
        case 1:
            change.statements.append(("UPDATE notes SET title = ? WHERE id = ?", [.text(words), .text(row)]))
        case 2:
            change.statements.append(
                (
                    "UPDATE notes SET body = ?, score = ? WHERE id = ?",
                    [.text(words), .real(Double(Int64(bitPattern: random.next())) / 7e9), .text(row)]
                )
            )
        case 3:
            let tag = "[\"t\(random.below(4))\",\(random.below(3))]"
            change.statements.append(("UPDATE notes SET tags = ? WHERE id = ?", [.text(tag), .text(row)]))
        case 4:
            // The counter that nobody deletes tells whether an operation was applied twice or not at all.
            let amount = Int64(random.below(9) + 1)
            change.statements.append(
                (
                    "INSERT OR IGNORE INTO notes (id, title) VALUES ('tally', 'tally')", []
                )
            )
            change.statements.append(
                ("UPDATE notes SET likes = likes + ? WHERE id = 'tally'", [.integer(amount)])
            )
            change.counted["tally", default: 0] += amount
        default:
            change.statements.append(("DELETE FROM notes WHERE id = ?", [.text(row)]))
        }
        change.story += " note"
    }
}
