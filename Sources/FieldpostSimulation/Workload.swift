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

    /// What the phones know.
    static let schema = schema(isStrict: false)
    /// What the server serves: the same, with rules that no phone has heard of.
    static let serverSchema = schema(isStrict: true)
    /// The words by which the server refuses a value, fails on it, and finds it too large.
    static let (forbidden, poison, huge) = ("forbidden", "poison", "huge")
    /// The largest total that the server takes.
    static let creditLimit: Int64 = 85_000

    private static func schema(isStrict: Bool) -> Schema {
        var orders = Table("orders", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("plate", .text).optional()
            Column("total_idr", .integer)
            Column("status", .text).defaults(to: "open")
        }
        .check("total_not_negative", "total_idr >= 0")
        let payments = Table("payments", scopeFrom: "order_id") {
            Column("id", .uuid).primaryKey()
            Column("order_id", .uuid).references("orders")
            Column("amount_idr", .integer)
        }
        .conflict(.appendOnly)
        let items = Table("items", scopeFrom: "order_id") {
            Column("id", .uuid).primaryKey()
            Column("order_id", .uuid).references("orders", onDelete: .cascade)
            Column("amount", .integer)
        }
        .coalesced()
        var notes = Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("body", .text).optional()
            Column("score", .real).optional()
            Column("tags", .set).defaults(to: [])
            Column("likes", .integer).defaults(to: 0)
        }
        .rule("tags", .set).rule("likes", .counter)
        let drafts = Table("drafts") {
            Column("id", .text).primaryKey()
            Column("text", .text).optional()
            Column("words", .set).defaults(to: [])
            Column("length", .integer).defaults(to: 0)
        }
        .outbox(.state).rule("words", .set).rule("length", .counter)
        let bays = Table("bays") {
            Column("id", .text).primaryKey()
            Column("occupant", .text).optional()
        }
        .conflict(.compareAndSet)
        if isStrict {
            orders = orders.check("credit_limit", "total_idr <= \(creditLimit)")
                .check("status_allowed", "status <> '\(forbidden)'")
            notes = notes.check("title_allowed", "title <> '\(forbidden)'")
        }
        return Schema(version: 1, tables: [orders, payments, items, notes, bays, drafts])
    }

    /// Draws one transaction that makes sense on what the device shows.
    static func change(on database: LocalDatabase, now: Timestamp, random: inout SeededRandom) throws
        -> Change
    {
        var change = Change()
        for _ in 0...random.below(3) {
            switch random.below(15) {
            case 0..<3: order(&change, now: now, random: &random)
            case 3..<4: try payment(&change, database, now: now, random: &random)
            case 4..<5: try orderUpdate(&change, database, random: &random)
            case 5: bay(&change, random: &random)
            case 6: try item(&change, database, now: now, random: &random)
            case 7..<9: draft(&change, random: &random)
            case 9: try itemEdit(&change, database, random: &random)
            case 10: try orderDelete(&change, database, random: &random)
            default: try note(&change, database, random: &random)
            }
        }
        return change
    }

    private static func order(_ change: inout Change, now: Timestamp, random: inout SeededRandom) {
        let id = UUIDText.version7(at: now, using: &random)
        let plate =
            random.chance(1) ? String(repeating: "\(huge) ", count: 5_000) : "plate \(random.below(1_000))"
        change.statements.append(
            (
                "INSERT INTO orders (id, branch_id, plate, total_idr) VALUES (?, ?, ?, ?)",
                [
                    .text(id), .text("B\(random.below(2))"), .text(plate),
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

    private static func item(
        _ change: inout Change,
        _ database: LocalDatabase,
        now: Timestamp,
        random: inout SeededRandom
    ) throws {
        guard let order = try anOrder(database, random: &random) else { return }
        let (id, amount) = (UUIDText.version7(at: now, using: &random), Int64(random.below(90)))
        change.statements.append(
            (
                "INSERT INTO items (id, order_id, amount) VALUES (?, ?, ?)",
                [.text(id), order, .integer(amount)]
            )
        )
        // Moves another one to the same order.
        if random.chance(30) {
            change.statements.append(
                (
                    "UPDATE items SET order_id = ?, amount = amount + 1 WHERE id = (SELECT min(id) FROM items)",
                    [order]
                )
            )
        }
        change.story += " item"
    }

    private static func itemEdit(
        _ change: inout Change,
        _ database: LocalDatabase,
        random: inout SeededRandom
    ) throws {
        // A recent one, which may still be unsent.
        let sql = "SELECT id FROM items ORDER BY id DESC LIMIT 1 OFFSET ?"
        guard let item = try database.connection.scalar(sql, .integer(Int64(random.below(3)))) else { return }
        let edit =
            random.chance(70)
            ? "UPDATE items SET amount = amount + 1 WHERE id = ?" : "DELETE FROM items WHERE id = ?"
        change.statements.append((edit, [item]))
        change.story += " item-edit"
    }

    private static func draft(_ change: inout Change, random: inout SeededRandom) {
        let row = Value.text("draft-\(random.below(5))")
        let statement: (sql: String, arguments: [Value]) =
            switch random.below(8) {
            case 0: ("DELETE FROM drafts WHERE id = ?", [row])
            case 1..<3: ("INSERT OR IGNORE INTO drafts (id) VALUES (?)", [row])
            case 3: ("UPDATE drafts SET length = length + 1 WHERE id = ?", [row])
            case 4: ("UPDATE drafts SET words = ? WHERE id = ?", [.text("[\"w\(random.below(3))\"]"), row])
            default: ("UPDATE drafts SET text = ? WHERE id = ?", [.text("\(random.below(1_000))"), row])
            }
        change.statements.append(statement)
        change.story += " draft"
    }

    /// Takes the items along; what was paid for stays.
    private static func orderDelete(
        _ change: inout Change,
        _ database: LocalDatabase,
        random: inout SeededRandom
    ) throws {
        guard let order = try anOrder(database, random: &random) else { return }
        change.statements.append(
            (
                "DELETE FROM orders WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM payments WHERE order_id = ?1)",
                [order]
            )
        )
        change.story += " order-delete"
    }

    private static func orderUpdate(
        _ change: inout Change,
        _ database: LocalDatabase,
        random: inout SeededRandom
    ) throws {
        guard let order = try anOrder(database, random: &random) else { return }
        let status = random.chance(8) ? forbidden : "status \(random.below(1_000))"
        change.statements.append(("UPDATE orders SET status = ? WHERE id = ?", [.text(status), order]))
        change.story += " order-update"
    }

    private static func note(_ change: inout Change, _ database: LocalDatabase, random: inout SeededRandom)
        throws
    {
        let row = "note-\(random.below(8))"
        let words = random.chance(4) ? forbidden : "é\u{301}\"\\ \(random.next())"
        let body = random.chance(4) ? poison : words
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
                    [.text(body), .real(Double(Int64(bitPattern: random.next())) / 7e9), .text(row)]
                )
            )
        case 3:
            let tag = "[\"t\(random.below(4))\",\(random.below(3))]"
            change.statements.append(("UPDATE notes SET tags = ? WHERE id = ?", [.text(tag), .text(row)]))
        case 4:
            try tally(&change, database, random: &random)
        default:
            change.statements.append(("DELETE FROM notes WHERE id = ?", [.text(row)]))
        }
        change.story += " note"
    }

    /// The counter that nobody deletes tells whether an operation was applied twice or not at all.
    private static func tally(_ change: inout Change, _ database: LocalDatabase, random: inout SeededRandom)
        throws
    {
        // Whoever has not seen it rarely makes it: two that were made clash, and all that was added on one is lost.
        let isKnown = try database.connection.scalar("SELECT 1 FROM notes WHERE id = 'tally'") != nil
        guard isKnown || random.chance(10) else { return }
        let amount = Int64(random.below(9) + 1)
        change.statements.append(("INSERT OR IGNORE INTO notes (id, title) VALUES ('tally', 'tally')", []))
        change.statements.append(
            ("UPDATE notes SET likes = likes + ? WHERE id = 'tally'", [.integer(amount)])
        )
        change.counted["tally", default: 0] += amount
    }

    private static func bay(_ change: inout Change, random: inout SeededRandom) {
        let row = Value.text("bay-\(random.below(4))")
        switch random.below(6) {
        case 0: change.statements.append(("DELETE FROM bays WHERE id = ?", [row]))
        case 1: change.statements.append(("INSERT OR IGNORE INTO bays (id) VALUES (?)", [row]))
        default:
            let plate = Value.text("plate \(random.below(1_000))")
            change.statements.append(("UPDATE bays SET occupant = ? WHERE id = ?", [plate, row]))
        }
        change.story += " bay"
    }

    /// Values that the server takes, for a change that it may have refused.
    static func mended(_ table: String, random: inout SeededRandom) -> JSONObject {
        let number = random.below(1_000)
        return switch table {
        case "orders":
            [
                "plate": .string("mended \(number)"), "status": .string("mended \(number)"),
                "total_idr": .integer(Int64(number)),
            ]
        case "drafts": ["text": .string("mended \(number)")]
        case "items": ["amount": .integer(Int64(number))]
        case "payments": ["amount_idr": .integer(Int64(number))]
        case "notes": ["title": .string("mended \(number)"), "body": .string("mended \(number)")]
        default: ["occupant": .string("mended \(number)")]
        }
    }
}
