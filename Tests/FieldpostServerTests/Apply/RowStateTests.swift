import FieldpostCore
import Testing

@testable import FieldpostServer

/// What an operation meets: a live row, a deleted one, or none.
@Suite struct RowStateTests {
    @Test func `an update of an absent row is a conflict without a row and creates nothing`() throws {
        let shop = try Shop()

        let result = try shop.push(shop.operation("notes", 1, .update, ["title": "x"], base: .version(3)))[0]

        #expect(result.status == .conflict)
        #expect(result.row == nil && !result.deleted)
        #expect(result.json["row"] == .null)
        #expect(try shop.count("notes") == 0)
    }

    @Test func `an update of a deleted row is a conflict that says so`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1), shop.operation("notes", 1, .delete))

        let result = try shop.push(shop.operation("notes", 1, .update, ["title": "x"], base: .version(1)))[0]

        #expect(result.status == .conflict)
        #expect(result.deleted)
        #expect(result.version == 2)
    }

    @Test func `a create of a row that exists equal is applied`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["title": "same", "tags": ["b", "a"]]))

        let result = try shop.push(shop.note(1, ["tags": ["a", "b"], "title": "same"]))[0]

        #expect(result.verdict == "applied")
        #expect(result.version == 1)
    }

    @Test func `a create of a row that exists otherwise is a conflict with that row`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["title": "theirs"]))

        let result = try shop.push(shop.note(1, ["title": "mine"]))[0]

        #expect(result.status == .conflict)
        #expect(result.row?["title"] == "theirs")
    }

    @Test func `a create over a deleted row is applied`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1, ["title": "old"]), shop.operation("notes", 1, .delete))

        #expect(try shop.push(shop.note(1, ["title": "new"])).map(\.verdict) == ["applied"])
        #expect(try shop.row("notes", 1)?["title"] == "new")
        #expect(try shop.pull().rows == ["1"])
    }

    @Test func `a delete of an absent row is applied`() throws {
        let shop = try Shop()

        #expect(try shop.push(shop.operation("notes", 1, .delete)).map(\.verdict) == ["applied"])
        #expect(try shop.pull().changes.isEmpty)
    }

    @Test func `a delete is applied twice without a second version`() throws {
        let shop = try Shop()
        let results = try shop.push(
            shop.note(1),
            shop.operation("notes", 1, .delete),
            shop.operation("notes", 1, .delete)
        )

        #expect(results.map(\.version) == [1, 2, 2])
    }

    @Test func `the answer leaves the row out where the device shows it already`() throws {
        let shop = try Shop()
        let create = try shop.push(shop.note(1, ["title": "a"]))[0]
        let onTop = try shop.push(shop.operation("notes", 1, .update, ["title": "b"], base: .version(1)))[0]
        let behind = try shop.push(shop.operation("notes", 1, .update, ["body": "c"], base: .version(1)))[0]
        let gone = try shop.push(shop.operation("notes", 1, .delete, base: .version(1)))[0]

        #expect(create.row == nil && onTop.row == nil && gone.row == nil)
        #expect(behind.row?["title"] == "b")
        #expect(behind.row?["body"] == "c")
    }

    @Test func `the answer brings the row where the server spells it differently`() throws {
        let shop = try Shop()

        let result = try shop.push(shop.note(1, ["tags": ["b", "a"]]))[0]

        #expect(result.row?["tags"] == ["a", "b"])
    }
}
