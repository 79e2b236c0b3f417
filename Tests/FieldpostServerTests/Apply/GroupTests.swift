import FieldpostCore
import Testing

@testable import FieldpostServer

@Suite struct GroupTests {
    @Test func `one rejected operation rolls its whole group back, and only the culprit is stored`() throws {
        let shop = try Shop()
        let good = shop.order(1)
        let bad = shop.order(2, total: -1)
        let late = shop.order(3)

        let results = try shop.push(groups: [[good, bad, late]])

        #expect(
            results.map(\.verdict) == ["rejected group", "rejected total_not_negative", "rejected group"]
        )
        #expect(results[0].by == bad.id)
        #expect(try shop.count("orders") == 0)
        #expect(try shop.count("fieldpost_operations") == 1)
        #expect(try shop.count("fieldpost_feed") == 0)
    }

    @Test func `a group that fails leaves its neighbours alone`() throws {
        let shop = try Shop()

        let results = try shop.push(groups: [
            [shop.order(1)], [shop.order(2), shop.order(3, total: -1)], [shop.order(4)],
        ])

        #expect(
            results.map(\.verdict) == [
                "applied", "rejected group", "rejected total_not_negative", "applied",
            ]
        )
        #expect(try shop.count("orders") == 2)
    }

    @Test func `a mate takes the culprit's status whatever it is`() throws {
        let shop = try Shop()
        let waits = shop.operation("notes", 2, .create, after: [OperationID(Shop.id(0xDEAD))!])
        let stale = shop.operation("notes", 9, .update, ["title": "x"], base: .version(1))

        let results = try shop.push(groups: [[shop.note(1), waits], [shop.note(3), stale]])

        #expect(results.map(\.verdict) == ["blocked group", "blocked", "conflict group", "conflict"])
        #expect(try shop.count("notes") == 0)
    }

    @Test func `a resent group gets its stored answers, and its unstored mates follow again`() throws {
        let shop = try Shop()
        let group = [shop.order(1), shop.order(2, total: -1)]
        let first = try shop.push(groups: [group])

        #expect(try shop.push(groups: [group]) == first)
    }

    @Test func `a mate goes through alone under its own id once it leaves the group`() throws {
        let shop = try Shop()
        let mate = shop.order(1)
        try shop.push(groups: [[mate, shop.order(2, total: -1)]])

        #expect(try shop.push(mate).map(\.verdict) == ["applied"])
    }

    @Test func `a child may come before its parent within a group`() throws {
        let shop = try Shop()
        let line = shop.operation("lines", 2, .create, ["order_id": .string(Shop.id(1)), "text": "t"])

        let results = try shop.push(groups: [[line, shop.order(1)]], as: Shop.first)

        #expect(results.map(\.verdict) == ["applied", "applied"])
        #expect(try shop.pull(as: Shop.first).rows.sorted() == ["1", "2"])
    }

    @Test func `edits of one row within a group build on each other`() throws {
        let shop = try Shop()
        let create = shop.order(1)
        let edit = shop.operation(
            "orders",
            1,
            .update,
            ["total_idr": 7],
            base: .after(create.id),
            after: [create.id]
        )
        let again = shop.operation(
            "orders",
            1,
            .update,
            ["total_idr": 8],
            base: .after(edit.id),
            after: [edit.id]
        )

        let results = try shop.push(groups: [[create, edit, again]])

        #expect(results.map(\.verdict) == ["applied", "applied", "applied"])
        #expect(try shop.row("orders", 1)?["total_idr"] == 8)
    }

    @Test func `more operations than a push may hold are refused as a whole`() throws {
        let shop = try Shop()
        let many = (0...WireLimits.operationsPerPush).map { shop.note(Int64($0) + 1) }

        let problem = #expect(throws: Problem.self) { try shop.push(groups: many.map { [$0] }) }

        #expect(problem?.status == 413)
        #expect(try shop.count("notes") == 0)
    }
}
