import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

/// What the server refuses comes back as a stable code with the columns at fault, never as a failure.
@Suite struct RejectionTests {
    @Test(
        arguments: [
            ("title", 5), ("title", "a\0b"), ("likes", "5"), ("likes", 1.5), ("pinned", 1),
            ("pinned", "true"),
            ("rating", "2"), ("rating", .number("123456789012345678901")), ("due", "2026-01-01"),
            ("raw", "***"),
            ("raw", "AA"), ("photo", "abc"), ("tags", "a"), ("tags", [["nested"]]), ("tags", [1.5]),
            ("price", true),
        ] as [(String, JSON)]
    )
    func `a value that does not fit its column is rejected`(column: String, value: JSON) throws {
        let shop = try Shop()

        let result = try shop.push(shop.note(1, JSONObject(distinct: [(column, value)])))[0]

        #expect(result.verdict == "rejected type")
        #expect(result.fields == [column])
        #expect(try shop.count("notes") == 0)
    }

    @Test(
        arguments: [
            ("likes", .integer(.max)), ("likes", .integer(.min)), ("rating", 0.1),
            ("rating", .real(.leastNonzeroMagnitude)),
            ("pinned", true),
            ("due", -1), ("raw", "AAEC/w=="), ("extra", ["a": [1, nil, "x"]]), ("tags", [3, "b"]),
            ("photo", .string(String(repeating: "0f", count: 32))), ("title", "e\u{301}\u{10FFFF}"),
            ("title", nil),
            ("extra", .number("123456789012345678901")),
        ] as [(String, JSON)]
    )
    func `a value comes back from the feed as it was sent`(column: String, value: JSON) throws {
        let shop = try Shop()
        try shop.push(shop.note(1, JSONObject(distinct: [(column, value)])))

        #expect(try shop.pull().changes.map { $0.set?[column] } == [value])
    }

    @Test func `required columns without a value are all named`() throws {
        let shop = try Shop()

        let result = try shop.push(shop.operation("orders", 1, .create))[0]

        #expect(result.verdict == "rejected not_null")
        #expect(result.fields == ["branch_id", "total_idr"])
    }

    @Test func `null for a required column is rejected in an update`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))

        let result = try shop.push(shop.operation("notes", 1, .update, ["body": nil], base: .version(1)))[0]

        #expect(result.verdict == "rejected not_null")
        #expect(result.fields == ["body"])
    }

    @Test func `a broken check answers with its own name and its columns`() throws {
        let shop = try Shop()
        let result = try shop.push(shop.order(1, total: -1))[0]

        #expect(result.verdict == "rejected total_not_negative")
        #expect(result.fields == ["total_idr"])
    }

    @Test func `a second row with unique values is rejected`() throws {
        let shop = try Shop()
        let results = try shop.push(
            shop.order(1, plate: "X"),
            shop.order(2, plate: "X"),
            shop.order(3, branch: "B2", plate: "X")
        )

        #expect(results.map(\.verdict) == ["applied", "rejected unique", "applied"])
        #expect(results[1].fields == ["branch_id", "plate"])
    }

    @Test func `a reference to a row that is not there is rejected`() throws {
        let shop = try Shop()
        let line = shop.operation("lines", 2, .create, ["order_id": .string(Shop.id(1)), "text": "t"])

        let result = try shop.push(line)[0]

        #expect(result.verdict == "rejected reference")
        #expect(result.fields == ["order_id"])
        #expect(try shop.count("lines") == 0)
    }

    @Test func `a delete of a row that others need is rejected and names them`() throws {
        let shop = try Shop()
        let payment = shop.operation(
            "payments",
            2,
            .create,
            ["branch_id": "B1", "order_id": .string(Shop.id(1)), "amount_idr": 5]
        )
        try shop.push(shop.order(1), payment)

        let result = try shop.push(shop.operation("orders", 1, .delete, base: .version(1)))[0]

        #expect(result.verdict == "rejected reference")
        #expect(result.fields == ["payments.order_id"])
        #expect(try shop.count("orders") == 1)
    }

    @Test func `a parent and its children may go in one group in any order`() throws {
        let shop = try Shop()
        let line = shop.operation("lines", 2, .create, ["order_id": .string(Shop.id(1)), "text": "t"])
        try shop.push(groups: [[shop.order(1), line]])

        let results = try shop.push(groups: [
            [shop.operation("orders", 1, .delete, base: .version(1)), shop.operation("lines", 2, .delete)]
        ])

        #expect(results.map(\.verdict) == ["applied", "applied"])
        #expect(try shop.count("lines") == 0)
    }

    @Test func `a table or column the server does not have is rejected`() throws {
        let shop = try Shop()
        let results = try shop.push(shop.operation("nothing", 1, .create), shop.note(1, ["colour": "red"]))

        #expect(results.map(\.verdict) == ["rejected unknown_table", "rejected unknown_column"])
        #expect(results[1].fields == ["colour"])
    }

    @Test func `a key that is no key is rejected`() throws {
        let shop = try Shop()
        var bad = shop.note(1)
        bad.row = "not-a-uuid"
        var empty = shop.operation("settings", 1, .create, ["value": "v"])
        empty.row = ""

        #expect(
            try shop.push(bad, empty, as: Credential(tokenID: "a", role: "admin", scopes: .all)).map(
                \.verdict
            )
                == ["rejected type", "rejected type"]
        )
    }

    @Test func `a key may be repeated among the values but not changed`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["id": .string(Shop.id(1).uppercased())]))

        let result = try shop.push(
            shop.operation("notes", 1, .update, ["id": .string(Shop.id(2))], base: .version(1))
        )[0]

        #expect(result.verdict == "rejected key")
        #expect(try shop.count("notes") == 1)
    }

    @Test func `a trigger of the operator's own refuses by its own words`() throws {
        let shop = try Shop()
        try shop.connection.execute(
            "CREATE TRIGGER closed BEFORE INSERT ON notes BEGIN SELECT RAISE(ABORT, 'closed for the year'); END"
        )

        let result = try shop.push(shop.note(1))[0]

        #expect(result.verdict == "rejected refused")
        #expect(result.message?.contains("closed for the year") == true)
    }

    @Test func `an intent nobody handles is rejected`() throws {
        let shop = try Shop()
        #expect(
            try shop.push(shop.operation("orders", 1, .intent("payment.settle"))).map(\.verdict)
                == ["rejected unknown_intent"]
        )
    }

    @Test func `an intent runs in its operation's transaction, and its rejection leaves nothing`() throws {
        let settle = IntentHandler { payload, transaction in
            try transaction.run(
                "UPDATE orders SET status = 'paid' WHERE id = ?",
                [.text(transaction.operation.row)]
            )
            if payload.object?["fail"] != nil { throw Rejection("too_late", "The day is closed.") }
        }
        let shop = try Shop(intents: ["settle": settle])
        try shop.push(shop.order(1), shop.order(2))
        var good = shop.operation("orders", 1, .intent("settle"))
        good.change.payload = [:]
        var bad = shop.operation("orders", 2, .intent("settle"))
        bad.change.payload = ["fail": true]

        let results = try shop.push(good, bad)

        #expect(results.map(\.verdict) == ["applied", "rejected too_late"])
        #expect(results[0].row?["status"] == "paid")
        #expect(try shop.row("orders", 2)?["status"] == "open")
    }

    @Test func `an operation of an older app is read under the new names`() throws {
        var schema = Shop.schema
        schema.migrations = [
            Migration(
                from: 1,
                to: 2,
                operations: ["orders": Upcast(rename: ["total": "total_idr"], defaults: ["plate": "none"])]
            )
        ]
        let shop = try Shop(schema: schema)
        let old = shop.operation("orders", 1, .create, ["branch_id": "B1", "total": 9], schema: 1)

        let results = try shop.push(old)

        #expect(results.map(\.verdict) == ["applied"])
        #expect(results[0].row?["total_idr"] == 9)
        #expect(try shop.row("orders", 1)?["plate"] == "none")
        #expect(try shop.push(old) == results)
    }

    @Test func `a store failure is thrown and changes nothing`() throws {
        let shop = try Shop()
        shop.connection.willStep = { sql throws(StoreError) in
            if sql.hasPrefix("INSERT INTO \"notes\"") { throw StoreError(.full, "The disk is full.") }
        }

        #expect(throws: StoreError.self) { try shop.push(shop.note(1)) }

        shop.connection.willStep = nil
        #expect(try shop.count("fieldpost_operations") == 0)
    }
}
