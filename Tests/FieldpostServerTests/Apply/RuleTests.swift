import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

/// How concurrent edits are settled, rule by rule.
///
/// Two devices edit what both saw at version 1.
@Suite struct RuleTests {
    private func edit(_ shop: Shop, _ set: JSONObject, base: Int64 = 1) throws -> OperationResult {
        try shop.push(shop.operation("notes", 1, .update, set, base: .version(base)))[0]
    }

    @Test func `lastWriteWins: edits of different fields both stay`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))

        #expect(try edit(shop, ["title": "mine"]).verdict == "applied")
        #expect(try edit(shop, ["pinned": true]).verdict == "applied")

        let row = try shop.row("notes", 1)
        #expect(row?["title"] == "mine")
        #expect(row?["pinned"] == true)
    }

    @Test func `lastWriteWins: of two edits of one field the later to arrive stays`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        _ = try edit(shop, ["title": "first"])

        #expect(try edit(shop, ["title": "second"]).verdict == "applied")
        #expect(try shop.row("notes", 1)?["title"] == "second")
    }

    @Test func `keepLosingVersion: the text that lost is kept with who and what`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["body": "base"]))
        let theirs = try edit(shop, ["body": "theirs"])

        let mine = try edit(shop, ["body": "mine"])

        #expect(try shop.row("notes", 1)?["body"] == "mine")
        let kept = try shop.connection.query(
            "SELECT tbl, row, column_name, losing, losing_operation, winning_operation FROM fieldpost_conflicts"
        )
        #expect(
            kept == [
                [
                    "notes", .text(Shop.id(1)), "body", #""theirs""#, .text(theirs.id.text),
                    .text(mine.id.text),
                ]
            ]
        )
    }

    @Test func `keepLosingVersion: an edit on top of the latest loses nothing`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["body": "base"]))
        _ = try edit(shop, ["title": "other field"])
        _ = try edit(shop, ["body": "mine"])

        #expect(try shop.count("fieldpost_conflicts") == 0)
    }

    @Test func `set: removals and additions of both sides hold`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["tags": ["a", "b"]]))
        var first = shop.operation("notes", 1, .update, base: .version(1))
        first.change.remove = ["tags": ["a"]]
        first.change.add = ["tags": ["c"]]
        var second = shop.operation("notes", 1, .update, base: .version(1))
        second.change.add = ["tags": ["d", "b"]]

        try shop.push(first, second)

        #expect(try shop.row("notes", 1)?["tags"] == ["b", "c", "d"])
    }

    @Test func `counter: both differences count`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["likes": 10]))
        for delta in [5, -2] as [JSON] {
            var operation = shop.operation("notes", 1, .update, base: .version(1))
            operation.change.inc = ["likes": delta]
            #expect(try shop.push(operation).map(\.verdict) == ["applied"])
        }

        #expect(try shop.row("notes", 1)?["likes"] == 13)
    }

    @Test(arguments: [(JSON.integer(.max), JSON.integer(1)), (.integer(.min), .integer(-1))])
    func `counter: a sum beyond 64 bits is rejected`(start: JSON, delta: JSON) throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["likes": start]))
        var operation = shop.operation("notes", 1, .update, base: .version(1))
        operation.change.inc = ["likes": delta]

        let result = try shop.push(operation)[0]

        #expect(result.verdict == "rejected overflow")
        #expect(result.fields == ["likes"])
        #expect(try shop.row("notes", 1)?["likes"] == start)
    }

    @Test func `compareAndSet on a table: an edit of a row that changed is a conflict with the row`() throws {
        let shop = try Shop()
        try shop.push(shop.order(1))
        let first = shop.operation("orders", 1, .update, ["status": "paid"], base: .version(1))
        let second = shop.operation("orders", 1, .update, ["total_idr": 5], base: .version(1))

        let results = try shop.push(first, second)

        #expect(results.map(\.verdict) == ["applied", "conflict"])
        #expect(results[1].row?["status"] == "paid")
        #expect(results[1].version == results[0].version)
        #expect(try shop.row("orders", 1)?["total_idr"] == 100)
    }

    @Test func `compareAndSet on a table: a delete of a row that changed is a conflict`() throws {
        let shop = try Shop()
        try shop.push(
            shop.order(1),
            shop.operation("orders", 1, .update, ["status": "paid"], base: .version(1))
        )

        #expect(
            try shop.push(shop.operation("orders", 1, .delete, base: .version(1))).map(\.verdict) == [
                "conflict"
            ]
        )
        #expect(
            try shop.push(shop.operation("orders", 1, .delete, base: .version(2))).map(\.verdict) == [
                "applied"
            ]
        )
    }

    @Test func `compareAndSet on a column: only a change of that column counts`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["price": 1]))
        _ = try edit(shop, ["title": "other field"])

        #expect(try edit(shop, ["price": 2]).verdict == "applied")
        #expect(try edit(shop, ["price": 3]).verdict == "conflict")
        #expect(try shop.row("notes", 1)?["price"] == 2)
    }

    @Test func `appendOnly: rows are created and never changed`() throws {
        let shop = try Shop()
        let payment = shop.operation(
            "payments",
            2,
            .create,
            ["branch_id": "B1", "order_id": .string(Shop.id(1)), "amount_idr": 5]
        )
        try shop.push(shop.order(1), payment)

        let results = try shop.push(
            shop.operation("payments", 2, .update, ["amount_idr": 6], base: .version(2)),
            shop.operation("payments", 2, .delete, base: .version(2))
        )

        #expect(results.map(\.verdict) == ["rejected append_only", "rejected append_only"])
        #expect(try shop.row("payments", 2)?["amount_idr"] == 5)
    }

    @Test(
        arguments: [
            ("set", "likes", 5), ("set", "tags", ["a"]), ("inc", "price", 1), ("add", "title", ["a"]),
            ("remove", "title", ["a"]),
        ] as [(String, String, JSON)]
    )
    func `a column takes only what its rule records`(part: String, column: String, value: JSON) throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        var operation = shop.operation("notes", 1, .update, base: .version(1))
        operation.change = Change(
            json: JSONObject(distinct: [(part, .object(JSONObject(distinct: [(column, value)])))])
        )

        let result = try shop.push(operation)[0]

        #expect(result.verdict == "rejected rule")
        #expect(result.fields == [column])
    }
}
