import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct ExactlyOnceTests {
    @Test func `a resend is told the stored result and changes nothing`() throws {
        let shop = try Shop()
        var like = shop.operation("notes", 1, .update)
        like.change.inc = ["likes": 1]
        try shop.push(shop.note(1))
        let before = try shop.push(like)

        let after = try shop.push(like)

        #expect(after == before)
        #expect(try shop.row("notes", 1)?["likes"] == 1)
    }

    @Test func `a resend written in other words is the same operation`() throws {
        let shop = try Shop()
        let operation = shop.note(1, ["title": "a", "tags": ["x", 3, "x"], "rating": 2.0])
        try shop.push(operation)

        var again = operation
        again.change.set = ["rating": 2, "tags": [3, "x"], "title": "a"]
        again.row = operation.row.uppercased()
        again.seq = 77
        again.at = Timestamp(milliseconds: 1)

        #expect(try shop.push(again).map(\.verdict) == ["applied"])
    }

    @Test func `another operation under a known id is rejected and the first stands`() throws {
        let shop = try Shop()
        let operation = shop.note(1, ["title": "a"])
        try shop.push(operation)
        var other = operation
        other.change.set = ["title": "b"]

        #expect(try shop.push(other).map(\.verdict) == ["rejected key_reused"])
        #expect(try shop.push(operation).map(\.verdict) == ["applied"])
        #expect(try shop.row("notes", 1)?["title"] == "a")
    }

    @Test func `a rejection is stored and replayed word for word`() throws {
        let shop = try Shop()
        let operation = shop.order(1, total: -5)
        let first = try shop.push(operation)
        try shop.connection.run("DELETE FROM fieldpost_devices")

        #expect(first.map(\.verdict) == ["rejected total_not_negative"])
        #expect(try shop.push(operation) == first)
        #expect(try shop.count("fieldpost_operations") == 1)
    }

    @Test func `a blocked operation is not stored and goes through later`() throws {
        let shop = try Shop()
        let create = shop.note(1)
        let edit = shop.operation(
            "notes",
            1,
            .update,
            ["title": "x"],
            base: .after(create.id),
            after: [create.id]
        )

        let blocked = try shop.push(edit)
        #expect(blocked.map(\.verdict) == ["blocked"])
        #expect(blocked[0].by == create.id)
        #expect(try shop.count("fieldpost_operations") == 0)

        #expect(try shop.push(create, edit).map(\.verdict) == ["applied", "applied"])
    }

    @Test func `what depends on a rejected operation is blocked by it`() throws {
        let shop = try Shop()
        let parent = shop.order(1, total: -1)
        let child = shop.operation(
            "lines",
            2,
            .create,
            ["order_id": .string(Shop.id(1)), "text": "t"],
            after: [parent.id]
        )

        let results = try shop.push(parent, child)

        #expect(results.map(\.verdict) == ["rejected total_not_negative", "blocked"])
        #expect(results[1].by == parent.id)
    }

    @Test func `one id twice in a request is applied once`() throws {
        let shop = try Shop()
        var like = shop.operation("notes", 1, .update)
        like.change.inc = ["likes": 1]
        try shop.push(shop.note(1))

        let results = try shop.push(like, like)

        #expect(results.map(\.verdict) == ["applied", "applied"])
        #expect(try shop.row("notes", 1)?["likes"] == 1)
    }

    @Test func `a kill between any two statements of a push leaves nothing or all of it`() async throws {
        var kills = 0
        for statement in 1... {
            // Other tests wait on the same few threads.
            await Task.yield()
            let folder = try ScratchFolder()
            let shop = try Shop(folder: folder)
            let order = shop.order(1, plate: "X 1")
            let line = shop.operation("lines", 2, .create, ["order_id": .string(Shop.id(1)), "text": "t"])
            var like = shop.operation("notes", 3, .update)
            like.change.inc = ["likes": 1]
            try shop.push(shop.note(3))
            var left = statement
            shop.connection.willStep = { _ throws(StoreError) in
                left -= 1
                if left == 0 { throw .killed }
            }
            let answered = (try? shop.push(groups: [[order, line], [like]])) != nil
            shop.connection.close()

            let reopened = try Shop(folder: folder)
            let results = try reopened.push(groups: [[order, line], [like]])

            #expect(results.map(\.verdict) == ["applied", "applied", "applied"], "killed at \(statement)")
            #expect(try reopened.row("notes", 3)?["likes"] == 1, "killed at \(statement)")
            #expect(try reopened.count("orders") == 1)
            #expect(try reopened.count("lines") == 1)
            #expect(try reopened.count("fieldpost_operations") == 4)
            #expect(try reopened.count("fieldpost_feed WHERE deleted = 0") == 3)
            if answered { break }
            kills += 1
        }
        #expect(kills > 20, "the loop must have killed somewhere")
    }

    @Test func `a second operation under a device's number makes the device start anew`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        var clone = shop.note(2)
        clone.seq = 1

        let problem = #expect(throws: Problem.self) { try shop.push(clone) }

        #expect(problem?.code == "device-reset")
        #expect(problem?.status == 409)
        #expect(try shop.row("notes", 2) == nil)
        #expect(try shop.push(clone, device: Shop.otherDevice).map(\.verdict) == ["applied"])
    }

    @Test func `an operation of a schema the server does not have yet waits for the server`() throws {
        let shop = try Shop()
        var operation = shop.note(1)
        operation.schema = 3

        let problem = #expect(throws: Problem.self) { try shop.push(operation) }

        #expect(problem?.code == "server-behind")
        #expect(try shop.count("fieldpost_operations") == 0)
    }

    @Test func `a voided id is rejected when it arrives late`() throws {
        let shop = try Shop()
        let late = shop.note(1)
        let known = shop.note(2)
        try shop.push(known)
        let query = StatusRequest(ids: [late.id, known.id], void: true)

        let told = try shop.connection.transaction {
            try shop.core.status(
                query,
                on: shop.connection,
                credential: Shop.everywhere,
                device: nil,
                now: shop.now
            )
        }

        #expect(told.results.map(\.verdict) == ["rejected voided", "applied"])
        #expect(try shop.push(late).map(\.verdict) == ["rejected voided"])
        #expect(try shop.row("notes", 1) == nil)
    }
}
