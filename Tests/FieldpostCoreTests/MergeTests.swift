import FieldpostCore
import Testing

@Suite struct MergeTests {
    let notes = Table("notes") {
        Column("id", .text).primaryKey()
        Column("title", .text)
        Column("body", .text).optional()
        Column("tags", .set).defaults(to: [])
        Column("likes", .integer).defaults(to: 0)
    }
    .rule("tags", .set).rule("likes", .counter)

    private func operation(_ action: Operation.Action, _ change: Change = Change()) throws -> Operation {
        let id = try #require(OperationID("0191d3a0-0000-7000-8000-000000000001"))
        return Operation(
            id: id,
            table: "notes",
            row: "n",
            action: action,
            change: change,
            seq: 1,
            schema: 1,
            at: Timestamp(milliseconds: 0)
        )
    }

    private var base: JSONObject {
        ["id": "n", "title": "Draft", "body": "b", "tags": ["a", "b"], "likes": 3]
    }

    @Test func `fields that are not edited take the server's value`() throws {
        var change = Change(set: ["title": "Mine"])
        change.inc = ["likes": 2]
        change.add = ["tags": ["c"]]
        change.remove = ["tags": ["a"]]

        let row = Merge.replay(base: base, operations: [try operation(.update, change)], table: notes)

        #expect(row == ["id": "n", "title": "Mine", "body": "b", "tags": ["b", "c"], "likes": 5])
    }

    @Test func `a create starts from the defaults`() throws {
        let row = Merge.replay(
            base: nil,
            operations: [try operation(.create, Change(set: ["title": "T"]))],
            table: notes
        )
        #expect(row == ["id": "n", "title": "T", "body": nil, "tags": [], "likes": 0])
    }

    @Test func `an update of a row that is gone creates nothing`() throws {
        let update = try operation(.update, Change(set: ["title": "T"]))
        #expect(Merge.replay(base: nil, operations: [update], table: notes) == nil)
        #expect(Merge.replay(base: base, operations: [try operation(.delete), update], table: notes) == nil)
    }

    @Test func `no operation, no difference`() {
        #expect(Merge.replay(base: base, operations: [], table: notes) == base)
    }

    @Test func `a counter stops at the limits of 64 bits`() throws {
        var change = Change()
        change.inc = ["likes": .integer(.max)]
        let row = Merge.replay(base: base, operations: [try operation(.update, change)], table: notes)
        #expect(row?["likes"] == .integer(.max))
    }
}
