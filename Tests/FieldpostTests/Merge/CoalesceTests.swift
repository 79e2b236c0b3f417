import FieldpostTesting
import Testing

@testable import FieldpostCore

/// The matrix of two operations on one row, neither of which was ever sent.
@Suite struct CoalesceTests {
    let table = Table("notes") {
        Column("id", .text).primaryKey()
        Column("title", .text)
        Column("tags", .set).defaults(to: [])
        Column("likes", .integer).defaults(to: 0)
    }
    .rule("tags", .set).rule("likes", .counter)

    private func coalesce(
        _ first: Operation.Action,
        _ before: Change,
        _ second: Operation.Action,
        _ after: Change,
        base: JSONObject? = nil
    ) -> Merge.Coalesced {
        Merge.coalesce((first, before), (second, after), base: base, table: table)
    }

    private func change(
        set: JSONObject = [:],
        inc: JSONObject = [:],
        add: JSONObject = [:],
        remove: JSONObject = [:]
    ) -> Change {
        var change = Change(set: set)
        (change.inc, change.add, change.remove) = (inc, add, remove)
        return change
    }

    @Test func `create, update: a create of the row as it is now`() {
        let create = Change(set: ["title": "a", "tags": ["x"], "likes": 2])
        let update = change(
            set: ["title": "b"],
            inc: ["likes": 3],
            add: ["tags": ["y"]],
            remove: ["tags": ["x"]]
        )

        #expect(
            coalesce(.create, create, .update, update)
                == .one(.create, Change(set: ["title": "b", "tags": ["y"], "likes": 5]))
        )
    }

    @Test func `create, delete: nothing`() {
        #expect(coalesce(.create, Change(set: ["title": "a"]), .delete, Change()) == .nothing)
    }

    @Test func `update, update: the later values, the sum, and the elements that either touched`() {
        let first = change(
            set: ["title": "a"],
            inc: ["likes": 3],
            add: ["tags": ["x", "y"]],
            remove: ["tags": ["z"]]
        )
        let second = change(
            set: ["title": "b"],
            inc: ["likes": -1],
            add: ["tags": ["z"]],
            remove: ["tags": ["x"]]
        )

        #expect(
            coalesce(.update, first, .update, second)
                == .one(
                    .update,
                    change(
                        set: ["title": "b"],
                        inc: ["likes": 2],
                        add: ["tags": ["y", "z"]],
                        remove: ["tags": ["x"]]
                    )
                )
        )
    }

    @Test func `update, update: differences that cancel leave nothing`() {
        let first = change(inc: ["likes": 3])

        #expect(coalesce(.update, first, .update, change(inc: ["likes": -3])) == .nothing)
    }

    @Test func `update, update: a sum beyond 64 bits stays two`() {
        let most = change(inc: ["likes": .integer(.max)])

        #expect(coalesce(.update, most, .update, change(inc: ["likes": 1])) == .apart)
        #expect(
            coalesce(.create, Change(set: ["likes": .integer(.max)]), .update, change(inc: ["likes": 1]))
                == .apart
        )
    }

    @Test func `update, delete: a delete`() {
        #expect(coalesce(.update, Change(set: ["title": "a"]), .delete, Change()) == .one(.delete, Change()))
    }

    @Test func `delete, create: an update of what differs from the server's row`() {
        let base: JSONObject = ["id": "n", "title": "a", "tags": ["x"], "likes": 7]
        let create = Change(set: ["title": "b", "tags": ["y"], "likes": 0])

        #expect(
            coalesce(.delete, Change(), .create, create, base: base)
                == .one(
                    .update,
                    change(
                        set: ["title": "b"],
                        inc: ["likes": -7],
                        add: ["tags": ["y"]],
                        remove: ["tags": ["x"]]
                    )
                )
        )
    }

    @Test func `delete, create of the same row again: nothing`() {
        let base: JSONObject = ["id": "n", "title": "a", "tags": ["x"], "likes": 7]

        #expect(
            coalesce(
                .delete,
                Change(),
                .create,
                Change(set: ["title": "a", "tags": ["x"], "likes": 7]),
                base: base
            )
                == .nothing
        )
    }

    @Test func `delete, create of a row that the server never told of: two`() {
        #expect(coalesce(.delete, Change(), .create, Change(set: ["title": "a"])) == .apart)
    }

    @Test(arguments: 0..<UInt64(300))
    func `any two changes, on any row: the one does what both do`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        func element() -> JSON {
            random.chance(50) ? .integer(Int64(random.below(3))) : .string("t\(random.below(3))")
        }
        func elements() -> JSON { .array((0..<random.below(3)).map { _ in element() }) }
        func drawn() -> Change {
            change(
                set: random.chance(50) ? ["title": .string("\(random.below(4))")] : [:],
                inc: random.chance(50) ? ["likes": .integer(Int64(random.below(9)) - 4)] : [:],
                add: random.chance(50) ? ["tags": elements()] : [:],
                remove: random.chance(50) ? ["tags": elements()] : [:]
            )
        }
        let (first, second) = (drawn(), drawn())
        let row: JSONObject = ["id": "n", "title": "start", "tags": elements(), "likes": 1]
        func applied(_ changes: [Change], to row: JSONObject) -> JSONObject {
            var row = row
            row["tags"] = .array(try! SetValue(row["tags"]!).elements)
            for change in changes { row = Merge.changed(row, by: change) }
            return row
        }

        let both = applied([first, second], to: row)
        switch coalesce(.update, first, .update, second) {
        case .one(let action, let change):
            #expect(action == .update)
            #expect(applied([change], to: row) == both)
        case .nothing: #expect(applied([], to: row) == both)
        case .apart: Issue.record("these always go together")
        }
    }
}
