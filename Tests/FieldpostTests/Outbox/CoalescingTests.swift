import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// Unsent operations of tables that allow it become one a row; what was sent stays as it is.
@Suite struct CoalescingTests {
    static let schema = Schema(version: 1) {
        Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("photo", .blob).optional()
            Column("likes", .integer).defaults(to: 0)
            Column("folder", .text).optional().references("folders")
        }
        .rule("likes", .counter).outbox(.state)
        Table("folders") {
            Column("id", .text).primaryKey()
            Column("name", .text)
        }
        .outbox(.state)
        Table("tasks") {
            Column("id", .text).primaryKey()
            Column("title", .text)
        }
        .coalesced()
        Table("visits") {
            Column("id", .text).primaryKey()
            Column("place", .text)
        }
    }
    let device: Device

    init() throws { device = try Device(Self.schema) }

    private var entries: [OutboxEntry] { get throws { try device.db.entries(where: "1") } }

    private func summary() throws -> [String] { try entries.map { "\($0.action) \($0.row)" } }

    /// A row that the server knows, at version 1.
    private func known(_ row: String, in table: String = "notes") throws {
        var set: JSONObject = ["id": .string(row), "title": "old"]
        if table == "notes" { set["likes"] = 4 }
        try device.pull([PulledChange(table: table, row: row, version: 1, set: set)], cursor: "c-\(row)")
    }

    // MARK: One entry a row

    @Test func `state: ten edits of a row are one entry, with the last value and the sum`() throws {
        try known("n")
        var ids: Set<OperationID> = []
        for turn in 1...10 {
            ids.formUnion(
                try device.write("UPDATE notes SET title = 't\(turn)', likes = likes + 1 WHERE id = 'n'")
            )
        }

        #expect(ids.count == 1)
        let entry = try #require(try entries.first)
        #expect(try entries.count == 1)
        #expect(
            try entry.recordedChange()
                == {
                    var change = Change(set: ["title": "t10"]); change.inc = ["likes": 10]; return change
                }()
        )
        #expect(entry.base == .version(1))
    }

    @Test func `state: only the columns touched are sent`() throws {
        try known("n")
        try device.write("UPDATE notes SET title = 'new' WHERE id = 'n'")

        #expect(try entries[0].recordedChange() == Change(set: ["title": "new"]))
    }

    @Test func `state: touching an entry renews its place`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.write("INSERT INTO notes (id, title) VALUES ('b', '1')")
        try device.write("UPDATE notes SET title = '2' WHERE id = 'a'")

        #expect(try summary() == ["create b", "create a"])
    }

    @Test func `coalesced: an update folds into the unsent create, in its place`() throws {
        let id = try device.write("INSERT INTO tasks (id, title) VALUES ('a', '1')")
        try device.write("INSERT INTO tasks (id, title) VALUES ('b', '1')")
        let again = try device.write("UPDATE tasks SET title = '2' WHERE id = 'a'")

        #expect(again == id)
        #expect(try summary() == ["create a", "create b"])
        #expect(try entries[0].recordedChange().set["title"] == "2")
    }

    @Test(arguments: ["notes", "tasks"])
    func `create, then delete: nothing is sent, and the operation is kept as discarded`(table: String) throws
    {
        let id = try device.write("INSERT INTO \(table) (id, title) VALUES ('a', '1')")[0]
        try device.write("DELETE FROM \(table)")

        #expect(try entries.isEmpty)
        #expect(
            try device.scalar("SELECT status FROM fieldpost_outcomes WHERE id = ?", .text(id.text))
                == "discarded"
        )
    }

    @Test func `create, delete and create again in one transaction: one create`() throws {
        try device.write(
            "INSERT INTO notes (id, title) VALUES ('a', '1')",
            "DELETE FROM notes",
            "INSERT INTO notes (id, title) VALUES ('a', '2')"
        )

        #expect(try summary() == ["create a"])
        #expect(try entries[0].after == [] && entries[0].base == .none)
        #expect(try entries[0].recordedChange().set["title"] == "2")
    }

    @Test func `state: a known row deleted and created again is an update of the difference`() throws {
        try known("n")
        try device.write("DELETE FROM notes")
        try device.write("INSERT INTO notes (id, title, likes) VALUES ('n', 'new', 6)")

        #expect(try summary() == ["update n"])
        #expect(
            try entries[0].recordedChange()
                == {
                    var change = Change(set: ["title": "new"]); change.inc = ["likes": 2]; return change
                }()
        )
    }

    @Test func `coalesced: a known row deleted and created again stays two operations`() throws {
        try known("n", in: "tasks")
        try device.write("DELETE FROM tasks")
        try device.write("INSERT INTO tasks (id, title) VALUES ('n', 'new')")

        #expect(try summary() == ["delete n", "create n"])
    }

    @Test func `a table that does not ask for it keeps every operation`() throws {
        try device.write("INSERT INTO visits (id, place) VALUES ('a', '1')")
        try device.write("UPDATE visits SET place = '2'")

        #expect(try summary() == ["create a", "update a"])
    }

    @Test func `writes of a program that knows nothing of Fieldpost are coalesced before they are sent`()
        throws
    {
        try device.db.connection.run("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.db.connection.run("UPDATE notes SET title = '2'")
        #expect(try entries.count == 2)

        let batch = try #require(try device.plan())

        #expect(batch.entries.count == 1)
        #expect(try batch.entries[0].recordedChange().set["title"] == "2")
    }

    @Test func `a blob survives`() throws {
        try device.write("INSERT INTO notes (id, title, photo) VALUES ('a', '1', x'00ff10')")
        try device.write("UPDATE notes SET title = '2'")

        let batch = try #require(try device.plan())
        let operation = try PushRequest(bytes: batch.body).groups[0].operations[0]
        #expect(operation.change.set["photo"] == "AP8Q")
    }

    // MARK: What was sent

    @Test(arguments: ["notes", "tasks"])
    func `an edit after the first byte left is an entry of its own, and the sent bytes stay`(table: String)
        throws
    {
        try device.write("INSERT INTO \(table) (id, title) VALUES ('a', '1')")
        let sent = try #require(try device.plan())
        try device.write("UPDATE \(table) SET title = '2'")
        try device.write("UPDATE \(table) SET title = '3'")

        #expect(try summary() == ["create a", "update a"])
        let again = try #require(try device.plan(operations: 1))
        #expect(again.body == sent.body)
    }

    @Test func `state: the newer edit goes only once the answer to the older one is here`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        _ = try device.plan()
        try device.write("UPDATE notes SET title = '2'")

        let batch = try #require(try device.plan())
        #expect(batch.entries.map(\.action) == ["create"])
        try device.settle(batch, OperationResult.applied(1))

        #expect(try device.plan()?.entries.map(\.action) == ["update"])
        #expect(try device.title("a") == "2")
    }

    @Test func `the answer clears what was sent, and not what was written since`() throws {
        try known("n")
        try device.write("UPDATE notes SET title = '1' WHERE id = 'n'")
        let batch = try #require(try device.plan())
        try device.write("UPDATE notes SET title = '2' WHERE id = 'n'")
        try device.settle(batch, OperationResult.applied(2))

        #expect(try summary() == ["update n"])
        #expect(try device.title("n") == "2")
    }

    @Test func `one that was refused keeps its place, and a newer edit is not folded into it`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.push(OperationResult.rejected("no"))
        try device.write("UPDATE notes SET title = '2'")

        #expect(try summary() == ["create a", "update a"])
    }

    // MARK: Transactions stay whole

    @Test func `both groups become one, behind what came between`() throws {
        try device.write(
            "INSERT INTO notes (id, title) VALUES ('a', '1')",
            "INSERT INTO visits (id, place) VALUES ('v', 'x')"
        )
        try device.write("INSERT INTO visits (id, place) VALUES ('w', 'x')")
        try device.write("UPDATE notes SET title = '2'", "INSERT INTO visits (id, place) VALUES ('z', 'x')")

        #expect(try summary() == ["create w", "create v", "create a", "create z"])
        let groups = try entries.map(\.group)
        #expect(Set(groups.dropFirst()).count == 1 && groups[0] != groups[1])
        #expect(try entries[2].recordedChange().set["title"] == "2")
        #expect(try device.plan()?.groupCount == 2)
    }

    @Test func `what depends on the group that moves, moves with it`() throws {
        try device.write(
            "INSERT INTO notes (id, title) VALUES ('a', '1')",
            "INSERT INTO visits (id, place) VALUES ('v', 'x')"
        )
        try device.write("UPDATE visits SET place = 'y'")
        try device.write("UPDATE notes SET title = '2'", "INSERT INTO visits (id, place) VALUES ('z', 'x')")

        #expect(try summary() == ["create v", "update v", "create a", "create z"])
        #expect(Set(try entries.map(\.group)).count == 1)
    }

    @Test func `groups that would grow too large stay apart, and so do the entries`() throws {
        let visits = (0..<Coalescing.largestGroup).map {
            "INSERT INTO visits (id, place) VALUES ('v\($0)', 'x')"
        }
        try device.db.write(at: device.now) {
            try device.db.connection.execute("INSERT INTO notes (id, title) VALUES ('a', '1')")
            for visit in visits { try device.db.connection.execute(visit) }
        }
        try device.write("UPDATE notes SET title = '2'", "INSERT INTO visits (id, place) VALUES ('z', 'x')")

        #expect(try summary().suffix(2) == ["update a", "create z"])
        #expect(try device.entry(entries[0].id)?.action == "create")
    }

    @Test func `an entry that others refer to stays before them`() throws {
        try device.write("INSERT INTO folders (id, name) VALUES ('f', '1')")
        try device.write("INSERT INTO notes (id, title, folder) VALUES ('a', '1', 'f')")
        try device.write("UPDATE folders SET name = '2'")

        #expect(try summary() == ["create f", "create a"])
        #expect(try entries[0].recordedChange().set["name"] == "2")
        #expect(try entries[1].after == [entries[0].id])
    }

    @Test func `an edit that refers to a newer row goes behind it`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.write("INSERT INTO folders (id, name) VALUES ('f', '1')")
        try device.write("UPDATE notes SET folder = 'f'")

        #expect(try summary() == ["create f", "create a"])
        #expect(try entries[1].after == [entries[0].id])
    }

    @Test func `a create that others refer to does not vanish with its delete`() throws {
        try device.write("INSERT INTO folders (id, name) VALUES ('f', '1')")
        try device.write("INSERT INTO visits (id, place) VALUES ('v', 'x')")
        try device.write("INSERT INTO notes (id, title, folder) VALUES ('a', '1', 'f')")
        try device.write("UPDATE notes SET folder = NULL")
        try device.write("DELETE FROM folders")

        #expect(try summary().contains("create f") && summary().contains("delete f"))
        try device.push(OperationResult.applied(1))
        for _ in 0..<3 where try device.outboxCount > 0 { try device.push(OperationResult.applied(2)) }
        #expect(try device.outboxCount == 0)
    }

    @Test func `a transaction that fails leaves the older entry as it was`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        let before = try entries
        #expect(throws: (any Error).self) {
            try device.write("UPDATE notes SET title = '2'", "INSERT INTO nowhere VALUES (1)")
        }

        #expect(try entries == before)
    }

    // MARK: Catching up

    @Test
    func
        `statements of another program are taken in one after the other, and what depends on them stays behind`()
        throws
    {
        let statements = [
            "INSERT INTO notes (id, title) VALUES ('a', '1'); INSERT INTO visits (id, place) VALUES ('x', '1')",
            "UPDATE notes SET title = '2'; INSERT INTO visits (id, place) VALUES ('y', '1')",
            "UPDATE visits SET place = '2' WHERE id = 'y'",
        ]
        // As transactions of a writer of ours that the file had before this table was coalesced.
        for (group, statement) in statements.enumerated() {
            try device.db.connection.execute("UPDATE fieldpost_session SET grp = \(1_000 + group)")
            try device.db.connection.execute(statement)
        }
        try device.db.connection.execute("UPDATE fieldpost_session SET grp = NULL")

        let batch = try #require(try device.plan())

        let order = batch.entries.map { "\($0.action) \($0.row)" }
        #expect(order.firstIndex(of: "create y")! < order.firstIndex(of: "update y")!)
        #expect(order.filter { $0.hasSuffix(" a") } == ["create a"])
    }

    @Test func `what was recorded under an older schema stays as it was`() throws {
        try device.write("INSERT INTO tasks (id, title) VALUES ('a', '1')")
        try device.db.connection.run("UPDATE fieldpost_outbox SET schema = 0")
        try device.write("UPDATE tasks SET title = '2'")

        #expect(try summary() == ["create a", "update a"])
    }

    @Test func `a pair does not vanish while the delete of its parent names it`() throws {
        try device.pull(
            [PulledChange(table: "folders", row: "f", version: 1, set: ["id": "f", "name": "1"])],
            cursor: "c1"
        )
        for sql in [
            "INSERT INTO notes (id, title, folder) VALUES ('a', '1', 'f')", "DELETE FROM notes",
            "DELETE FROM folders",
        ] {
            try device.db.connection.run(sql)
        }

        var sent: [String] = []
        var known = Set(try device.db.entries(where: "1").map(\.id))
        while let batch = try device.plan() {
            known.formUnion(try device.db.entries(where: "1").map(\.id))
            #expect(batch.entries.allSatisfy { $0.after.allSatisfy(known.contains) })
            sent += batch.entries.map { "\($0.action) \($0.row)" }
            try device.settle(batch, OperationResult.applied(Int64(sent.count + 1)))
        }
        #expect(sent == ["create a", "delete a", "delete f"])
    }

    @Test func `a value that must be unique is not taken before it is free`() throws {
        let device = try Device(
            Schema(version: 1) {
                Table("bays") {
                    Column("id", .text).primaryKey()
                    Column("code", .text)
                    Column("note", .text).optional()
                }
                .unique("code").coalesced()
            }
        )
        try device.write("INSERT INTO bays (id, code) VALUES ('a', 'x')")
        try device.push(OperationResult.applied(1))
        try device.write("INSERT INTO bays (id, code) VALUES ('b', 'z')")
        try device.write("UPDATE bays SET code = 'y' WHERE id = 'a'")
        try device.write("UPDATE bays SET code = 'x' WHERE id = 'b'")
        #expect(try device.outboxCount == 3)
        try device.write("UPDATE bays SET note = 'free' WHERE id = 'b'")

        #expect(try device.outboxCount == 4 || device.db.entries(where: "1").last?.row == "b")
    }

    // MARK: Waiting for it

    @Test func `who waits for an operation is answered although it got another place`() async throws {
        let shop = try await Shop(Self.schema)
        let engine = shop.engine(ScriptedTransport([.accept]))
        let id = try await shop.note("a")
        let handle = shop.store.operation(id)
        async let outcome = handle.settled()
        try await shop.note("b")
        #expect(try await shop.rename("a", "new") == id)

        _ = await engine.sync()

        #expect(try await outcome.status == "applied")
        #expect(try await handle.settled().status == "applied")
    }

    @Test func `an operation that vanished counts as discarded`() async throws {
        let shop = try await Shop(Self.schema)
        let id = try await shop.note("a")
        async let outcome = shop.store.settled(id)
        try await shop.store.write { try $0.delete("notes", row: "a") }

        #expect(try await outcome.status == "discarded")
        #expect(try await shop.store.status().state == .allSynced)
    }

    @Test func `an operation whose id was told keeps it when its group is moved later`() throws {
        try device.write(
            "INSERT INTO tasks (id, title) VALUES ('a', '1')",
            "INSERT INTO tasks (id, title) VALUES ('b', '1')"
        )
        // As after an answer that asked for time: nothing may be moved.
        try device.db.connection.run("UPDATE fieldpost_outbox SET attempts = 1")
        let told = try device.write(
            "UPDATE tasks SET title = '2' WHERE id = 'a'",
            "INSERT INTO tasks (id, title) VALUES ('c', '1')"
        )[0]
        try device.db.connection.run("UPDATE fieldpost_outbox SET attempts = 0")

        try device.write(
            "UPDATE tasks SET title = '2' WHERE id = 'b'",
            "INSERT INTO tasks (id, title) VALUES ('d', '1')"
        )

        #expect(try summary() == ["create a", "create b", "update a", "create c", "create d"])
        #expect(try entries[2].id == told)
    }
}
