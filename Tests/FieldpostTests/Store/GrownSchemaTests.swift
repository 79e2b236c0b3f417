import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct GrownSchemaTests {
    private static func schema(_ version: Int) -> Schema {
        Schema(version: version) {
            Table("things") {
                Column("id", .text).primaryKey()
                Column("name", .text)
                if version > 1 { Column("extra", .text).optional() }
            }
            Table("tags") { Column("id", .text).primaryKey() }
        }
    }

    @Test func `a table that has only its key syncs`() async throws {
        let folder = try Samples.temporaryFolder()
        let store = try await Store.open(at: folder.path("a.db"), schema: Self.schema(1))

        try await store.write { _ = try $0.create("tags", row: "t", set: [:]) }

        #expect(try await store.outbox().map(\.row) == ["t"])
        await store.close()
    }

    @Test func `a column that is new is filled from the server, also where the row has not changed since`()
        throws
    {
        let folder = try Samples.temporaryFolder()
        let now = Timestamp(milliseconds: 1_764_460_800_000)
        var random = SeededRandom(seed: 1)
        let page = PullPage(
            changes: [
                PulledChange(
                    table: "things",
                    row: "a",
                    version: 5,
                    set: ["id": "a", "name": "n", "extra": "E"]
                )
            ],
            cursor: "c",
            more: false,
            serverTime: now
        )
        let old = try LocalDatabase(
            path: folder.path("a.db"),
            schema: Self.schema(1),
            now: now,
            random: &random
        )
        _ = try PullApply.page(old, page, askedWith: nil, now: now)
        old.connection.close()

        let new = try LocalDatabase(
            path: folder.path("a.db"),
            schema: Self.schema(2),
            now: now,
            random: &random
        )
        #expect(try PullApply.cursor(new) == nil)
        _ = try PullApply.page(new, page, askedWith: nil, now: now)

        #expect(try new.connection.scalar("SELECT extra FROM things") == "E")
        #expect(try new.meta("refetch") == nil)
    }

    @Test func `a key given twice with two values is refused`() async throws {
        let folder = try Samples.temporaryFolder()
        let store = try await Store.open(at: folder.path("a.db"), schema: Self.schema(1))

        let error = await #expect(throws: FieldpostError.self) {
            try await store.write { _ = try $0.create("tags", row: "a", set: ["id": "b"]) }
        }

        #expect(error?.code == .type)
        await store.close()
    }

    @Test func `a server's store is not taken for a device's`() throws {
        let folder = try Samples.temporaryFolder()
        var random = SeededRandom(seed: 1)
        let connection = try Connection(path: folder.path("s.db"))
        try connection.execute("CREATE TABLE fieldpost_meta (key TEXT, value TEXT)")
        connection.close()

        let error = #expect(throws: FieldpostError.self) {
            try LocalDatabase(
                path: folder.path("s.db"),
                schema: Self.schema(1),
                now: Timestamp(milliseconds: 0),
                random: &random
            )
        }

        #expect(error?.code == .notAStore)
    }

    @Test func `a clock before 1970 still makes ids that are UUIDs`() throws {
        let folder = try Samples.temporaryFolder()
        let wrong = Timestamp(milliseconds: -1_800_000_000_000)
        var random = SeededRandom(seed: 1)
        let database = try LocalDatabase(
            path: folder.path("a.db"),
            schema: Self.schema(1),
            now: wrong,
            random: &random
        )

        try database.write(at: wrong) { try database.connection.run("INSERT INTO tags (id) VALUES ('a')") }

        let id = try database.connection.scalar("SELECT id FROM fieldpost_outbox")?.text
        #expect(OperationID(id ?? "") != nil)
    }

    private static func one(_ columns: [Column], migrating sql: [String] = []) -> Schema {
        let isNext = !sql.isEmpty
        return Schema(
            version: isNext ? 2 : 1,
            tables: [
                Table("things") { for column in [Column("id", .text).primaryKey()] + columns { column } }
            ],
            migrations: isNext ? [Migration(from: 1, to: 2, sql: sql)] : []
        )
    }

    private func open(_ path: String, _ schema: Schema) throws {
        var random = SeededRandom(seed: 1)
        let now = Timestamp(milliseconds: 1)
        try LocalDatabase(path: path, schema: schema, now: now, random: &random).connection.close()
    }

    @Test
    func `a file that does not fit the schema is refused by column, with the remedy, and stays as it was`()
        throws
    {
        let folder = try Samples.temporaryFolder()
        try open(folder.path("a.db"), Self.one([Column("name", .text), Column("n", .integer).optional()]))
        let cases: [(Schema, String)] = [
            (
                Self.one([Column("name", .integer), Column("n", .integer).optional()]),
                "things.name: is TEXT in the file"
            ),
            (Self.one([Column("name", .text), Column("n", .integer)]), "things.n: is optional in the file"),
            (
                Self.one([Column("name", .text).optional(), Column("n", .integer).optional()]),
                "things.name: is required"
            ),
            (Self.one([Column("n", .integer).optional()]), "things.name: is in the file and required"),
        ]

        for (schema, words) in cases {
            let error = #expect(throws: SchemaError.self) { try open(folder.path("a.db"), schema) }
            #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
            #expect(error?.description.contains("migration") == true)
        }

        try open(folder.path("a.db"), Self.one([Column("name", .text), Column("n", .integer).optional()]))
    }

    @Test func `a migration that makes the table fit is let through`() throws {
        let folder = try Samples.temporaryFolder()
        try open(folder.path("a.db"), Self.one([Column("name", .text)]))

        try open(folder.path("a.db"), Self.one([], migrating: ["ALTER TABLE things DROP COLUMN name"]))
    }

    @Test func `bytes queued under a column's old name are sent as bytes`() throws {
        let folder = try Samples.temporaryFolder()
        let now = Timestamp(milliseconds: 1)
        var random = SeededRandom(seed: 1)
        let old = Schema(version: 1) {
            Table("things") {
                Column("id", .text).primaryKey()
                Column("photo", .blob)
            }
        }
        let rename = Migration(
            from: 1,
            to: 2,
            sql: ["ALTER TABLE things RENAME COLUMN photo TO picture"],
            operations: ["things": Upcast(rename: ["photo": "picture"])]
        )
        let new = Schema(version: 2, migrations: [rename]) {
            Table("things") {
                Column("id", .text).primaryKey()
                Column("picture", .blob)
            }
        }
        let before = try LocalDatabase(path: folder.path("a.db"), schema: old, now: now, random: &random)
        try before.write(at: now) {
            try before.connection.run("INSERT INTO things VALUES ('a', ?)", .blob([0, 255]))
        }
        before.connection.close()

        let database = try LocalDatabase(path: folder.path("a.db"), schema: new, now: now, random: &random)
        let lease = try #require(try Lease.acquire(database, owner: "a", now: now))
        let batch = try PushPlan.next(database, lease: lease, limits: .init(operations: 10), now: now)

        let operation = try PushRequest(bytes: batch?.body ?? []).groups[0].operations[0]
        #expect(operation.change.set == ["photo": "AP8="])
        #expect(try database.operations(on: "a", of: new.tables[0])[0].change.set == ["picture": "AP8="])
    }
}
