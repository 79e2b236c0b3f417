import FieldpostCore
import Testing

@testable import FieldpostServer

/// A device sees and changes only the rows of its own scopes.
@Suite struct ScopeTests {
    /// A shop with one order in each branch.
    private func twoBranches() throws -> Shop {
        let shop = try Shop()
        try shop.push(shop.order(1, branch: "B1"), shop.order(2, branch: "B2"))
        return shop
    }

    @Test func `a pull brings the rows of the credential's scopes and the global ones`() throws {
        let shop = try twoBranches()
        try shop.push(shop.note(3))

        #expect(try shop.pull(as: Shop.first).rows == ["1", "3"])
        #expect(try shop.pull(as: Shop.second).rows == ["2", "3"])
        #expect(try shop.pull(as: Shop.both).rows == ["1", "2", "3"])
        #expect(try shop.pull(as: Shop.everywhere).rows == ["1", "2", "3"])
    }

    @Test func `a row cannot be created in a foreign scope`() throws {
        let shop = try Shop()

        let result = try shop.push(shop.order(1, branch: "B2"), as: Shop.first)[0]

        #expect(result.verdict == "rejected scope")
        #expect(result.fields == ["branch_id"])
    }

    @Test func `a row cannot be moved to a foreign scope`() throws {
        let shop = try twoBranches()
        let move = shop.operation("orders", 1, .update, ["branch_id": "B2"], base: .version(1))

        #expect(try shop.push(move, as: Shop.first).map(\.verdict) == ["rejected scope"])
    }

    @Test func `nobody can make a scoped row global`() throws {
        let shop = try twoBranches()
        let move = shop.operation("orders", 1, .update, ["branch_id": ""], base: .version(1))

        #expect(try shop.push(move).map(\.verdict) == ["rejected scope"])
        #expect(try shop.push(shop.order(3, branch: "")).map(\.verdict) == ["rejected scope"])
    }

    @Test func `edits of foreign rows are answered like edits of absent ones`() throws {
        let shop = try twoBranches()
        for action in [Operation.Action.update, .delete] {
            let foreign = shop.operation(
                "orders",
                2,
                action,
                action == .update ? ["status": "x"] : [:],
                base: .version(2)
            )
            let absent = shop.operation(
                "orders",
                9,
                action,
                action == .update ? ["status": "x"] : [:],
                base: .version(2)
            )

            let results = try shop.push(foreign, absent, as: Shop.first)

            var same = results[0]
            same.id = results[1].id
            #expect(same == results[1])
        }
        #expect(try shop.row("orders", 2)?["status"] == "open")
    }

    @Test func `who knows an operation's id learns nothing of a row beyond its scopes`() throws {
        let shop = try twoBranches()
        let stale = shop.operation("orders", 1, .update, ["status": "x"], base: .version(0))
        let own = try shop.push(stale, as: Shop.first)[0]

        let replayed = try shop.push(stale, as: Shop.second)[0]

        #expect(replayed.id == own.id && replayed.status == own.status)
        #expect(replayed.row == nil)
        #expect(try shop.push(stale, as: Shop.both)[0] == own)
    }

    @Test func `a deleted foreign row is answered like an absent one`() throws {
        let shop = try twoBranches()
        try shop.push(shop.operation("orders", 2, .delete, base: .version(2)))
        let foreign = shop.operation("orders", 2, .update, ["status": "x"], base: .version(2))

        #expect(try shop.push(foreign, as: Shop.first)[0].deleted == false)
        #expect(
            try shop.push(shop.operation("orders", 2, .update, ["status": "x"]), as: Shop.second)[0].deleted
        )
    }

    @Test func `a foreign key cannot be taken, and the answer shows nothing of its row`() throws {
        let shop = try twoBranches()

        let result = try shop.push(shop.order(2, branch: "B1"), as: Shop.first)[0]

        #expect(result.verdict == "rejected scope")
        #expect(result.row == nil && result.version == nil)
    }

    @Test func `a reference to a foreign row is answered like one to an absent row`() throws {
        let shop = try twoBranches()
        let results = try [2, 9].map { order in
            try shop.push(
                shop.operation(
                    "payments",
                    5,
                    .create,
                    ["branch_id": "B1", "order_id": .string(Shop.id(order)), "amount_idr": 1]
                ),
                shop.operation("lines", 6, .create, ["order_id": .string(Shop.id(order)), "text": "t"]),
                as: Shop.first
            )
        }

        #expect(results[0].map(\.verdict) == ["rejected reference", "rejected reference"])
        #expect(results[1].map(\.verdict) == results[0].map(\.verdict))
        #expect(results[1].map(\.message) == results[0].map(\.message))
    }

    @Test func `a child cannot be moved below a foreign parent`() throws {
        let shop = try twoBranches()
        try shop.push(shop.operation("lines", 3, .create, ["order_id": .string(Shop.id(1)), "text": "t"]))
        let move = shop.operation("lines", 3, .update, ["order_id": .string(Shop.id(2))], base: .version(3))

        #expect(try shop.push(move, as: Shop.first).map(\.verdict) == ["rejected reference"])
        #expect(try shop.push(move, as: Shop.first).map(\.verdict) == ["rejected reference"])
        #expect(try shop.row("lines", 3)?["order_id"] == .string(Shop.id(1)))
    }

    @Test func `a row that leaves a scope ends there and begins in the other`() throws {
        let shop = try twoBranches()
        let (first, second, both) = (
            try shop.pull(as: Shop.first).cursor, try shop.pull(as: Shop.second).cursor,
            try shop.pull(as: Shop.both).cursor
        )

        try shop.push(shop.operation("orders", 1, .update, ["branch_id": "B2"], base: .version(1)))

        #expect(try shop.pull(first, as: Shop.first).rows == ["-1 scope"])
        #expect(try shop.pull(second, as: Shop.second).rows == ["1"])
        #expect(try shop.pull(both, as: Shop.both).rows == ["1"])
    }

    @Test func `a parent that moves takes its children along`() throws {
        let shop = try twoBranches()
        try shop.push(shop.operation("lines", 3, .create, ["order_id": .string(Shop.id(1)), "text": "t"]))
        let (first, second) = (try shop.pull(as: Shop.first).cursor, try shop.pull(as: Shop.second).cursor)

        try shop.push(shop.operation("orders", 1, .update, ["branch_id": "B2"], base: .version(1)))

        #expect(try shop.pull(first, as: Shop.first).rows == ["-1 scope", "-3 scope"])
        #expect(try shop.pull(second, as: Shop.second).rows == ["1", "3"])
    }

    @Test func `a row that went on to be deleted elsewhere stays out of sight`() throws {
        let shop = try twoBranches()
        try shop.push(shop.operation("orders", 1, .update, ["branch_id": "B2"], base: .version(1)))
        try shop.push(shop.operation("orders", 1, .delete, base: .version(4)))

        #expect(try shop.pull(as: Shop.first).rows == ["-1 scope"])
        #expect(try shop.pull(as: Shop.second).rows == ["2", "-1"])
        #expect(try shop.pull(as: Shop.both).rows == ["2", "-1"])
    }

    @Test func `a role that may not write a table is rejected`() throws {
        let shop = try Shop()
        let operation = shop.operation("settings", 1, .create, ["value": "v"])
        let admin = Credential(tokenID: "a", role: "admin", scopes: .only(["B1"]))

        #expect(try shop.push(operation, as: Shop.first).map(\.verdict) == ["rejected role"])
        #expect(
            try shop.push(shop.operation("settings", 2, .create, ["value": "v"]), as: admin).map(\.verdict)
                == ["applied"]
        )
        #expect(try shop.pull(as: Shop.first).rows == ["2"])
    }

    @Test func `a cascade does not reach beyond the credential's scopes`() throws {
        let schema = Schema(version: 2) {
            Table("customers") { Column("id", .uuid).primaryKey() }
            Table("visits", scope: "branch_id") {
                Column("id", .uuid).primaryKey()
                Column("branch_id", .text)
                Column("customer_id", .uuid).references("customers", onDelete: .cascade)
            }
        }
        let shop = try Shop(schema: schema)
        try shop.push(
            shop.operation("customers", 1, .create),
            shop.operation("visits", 2, .create, ["branch_id": "B2", "customer_id": .string(Shop.id(1))])
        )

        #expect(
            try shop.push(shop.operation("customers", 1, .delete), as: Shop.first).map(\.verdict) == [
                "rejected reference"
            ]
        )
        #expect(
            try shop.push(shop.operation("customers", 1, .delete), as: Shop.second).map(\.verdict) == [
                "applied"
            ]
        )
    }
}
