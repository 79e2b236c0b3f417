import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct OpeningTests {
    private let folder: ScratchFolder
    private var path: String { folder.path + "/shop.db" }

    init() throws { folder = try ScratchFolder() }

    private func schema(
        _ version: Int,
        _ columns: [Column],
        check: String? = nil,
        migrations: [Migration] = []
    ) -> Schema {
        var table = Table("notes") {
            Column("id", .uuid).primaryKey()
            for column in columns { column }
        }
        if let check { table = table.check("short", check) }
        return Schema(version: version, tables: [table], migrations: migrations)
    }

    private let title = Column("title", .text)

    private func open(_ schema: Schema) throws -> Shop { try Shop(schema: schema, folder: folder) }

    private func refusal(_ schema: Schema) -> ServerError.Code? {
        do { _ = try open(schema) } catch { return (error as? ServerError)?.code }
        return nil
    }

    private func write(_ shop: Shop, _ row: Int64, _ set: JSONObject) throws -> String {
        var operation = shop.operation("notes", row, .create, set, schema: shop.core.schema.version)
        // Another store object begins to count anew, the device does not.
        operation.id = OperationID(Shop.id(0xC000 + row))!
        operation.seq = row
        return try shop.push(operation)[0].verdict
    }

    @Test func `opening twice changes nothing`() throws {
        let shop = try open(Shop.schema)
        try shop.push(shop.note(1))
        let (cursor, before) = (try shop.pull().cursor, shop.connection.totalChanges)

        let again = try open(Shop.schema)

        #expect(again.core.signingKey == shop.core.signingKey)
        #expect(again.connection.totalChanges == 0)
        #expect(try again.pull(cursor).changes.isEmpty)
        #expect(before > 0)
    }

    @Test func `columns and tables that are only added need no migration`() throws {
        let shop = try open(schema(1, [title]))
        _ = try write(shop, 1, ["title": "a"])
        shop.connection.close()
        var newer = schema(
            2,
            [title, Column("done", .boolean).defaults(to: false), Column("due", .date).optional()]
        )
        newer.tables.append(Table("tags") { Column("id", .text).primaryKey() })

        let upgraded = try open(newer)

        #expect(
            try upgraded.row("notes", 1) == [
                "id": .string(Shop.id(1)), "title": "a", "done": false, "due": nil,
            ]
        )
        #expect(try upgraded.count("tags") == 0)
        #expect(try write(upgraded, 2, ["title": "b", "done": true]) == "applied")
        #expect(try upgraded.pull().rows == ["1", "2"])
    }

    @Test func `a check that is added holds from then on`() throws {
        let shop = try open(schema(1, [title]))
        _ = try write(shop, 1, ["title": "a"])
        shop.connection.close()

        let upgraded = try open(schema(2, [title], check: "length(title) < 5"))

        #expect(try write(upgraded, 2, ["title": "too long"]) == "rejected short")
        #expect(try upgraded.row("notes", 1)?["title"] == "a")
    }

    @Test func `rows that break a new rule refuse the upgrade and stay as they are`() throws {
        let shop = try open(schema(1, [title]))
        _ = try write(shop, 1, ["title": "too long"])
        shop.connection.close()

        #expect(refusal(schema(2, [title], check: "length(title) < 5")) == .incompatibleSchema)
        #expect(refusal(schema(2, [title, Column("done", .boolean)])) == .incompatibleSchema)
        #expect(try open(schema(1, [title])).row("notes", 1)?["title"] == "too long")
    }

    @Test func `migrations run once, and what they change reaches the devices`() throws {
        let shop = try open(schema(1, [title]))
        _ = try write(shop, 1, ["title": "a"])
        let cursor = try shop.pull().cursor
        shop.connection.close()
        let step = Migration(
            from: 1,
            to: 2,
            sql: ["ALTER TABLE notes RENAME COLUMN title TO name", "UPDATE notes SET name = name || '!'"]
        )
        let newer = schema(2, [Column("name", .text)], migrations: [step])

        for _ in 0..<2 {
            let upgraded = try open(newer)
            #expect(try upgraded.row("notes", 1)?["name"] == "a!")
            #expect(try upgraded.pull(cursor).rows == ["1"])
            upgraded.connection.close()
        }
    }

    @Test func `a migration that fails leaves the store as it was`() throws {
        try open(schema(1, [title])).connection.close()
        let step = Migration(
            from: 1,
            to: 2,
            sql: ["UPDATE notes SET title = 'x'", "SELECT nonsense FROM nowhere"]
        )

        #expect(refusal(schema(2, [title], migrations: [step])) == .migrationFailed)
        #expect(try write(open(schema(1, [title])), 1, ["title": "a"]) == "applied")
    }

    @Test func `a kill between any two statements of an upgrade leaves the old store or the new one`()
        async throws
    {
        let step = Migration(from: 1, to: 2, sql: ["UPDATE notes SET title = title || '!'"])
        let newer = schema(2, [title, Column("n", .integer).defaults(to: 0)], migrations: [step])
        for statement in 1... {
            // Other tests wait on the same few threads.
            await Task.yield()
            let folder = try ScratchFolder()
            let shop = try Shop(schema: schema(1, [title]), folder: folder)
            _ = try write(shop, 1, ["title": "a"])
            var left = statement
            shop.connection.willStep = { _ throws(StoreError) in
                left -= 1
                if left == 0 { throw .killed }
            }
            let done =
                (try? ServerCore.open(
                    shop.connection,
                    schema: newer,
                    now: shop.now,
                    random: { shop.random.bytes($0) }
                )) != nil
            shop.connection.close()

            let reopened = try Shop(schema: newer, folder: folder)
            #expect(try reopened.row("notes", 1)?["title"] == "a!", "killed at \(statement)")
            #expect(try reopened.pull().rows == ["1"])
            if done { break }
        }
    }

    @Test func `what a newer program or a newer schema wrote is refused and left alone`() throws {
        let shop = try open(schema(2, [title]))
        #expect(refusal(schema(1, [title])) == .newerSchema)

        try shop.connection.run("UPDATE fieldpost_meta SET value = 99 WHERE key = 'format'")
        #expect(refusal(schema(2, [title])) == .newerFormat)
    }

    @Test func `a table that gets a scope is no longer everybody's`() throws {
        let branch = Column("branch_id", .text)
        let shop = try open(schema(1, [branch]))
        _ = try write(shop, 1, ["branch_id": "B1"])
        let cursor = try shop.pull(as: Shop.second).cursor
        shop.connection.close()
        var newer = schema(2, [branch])
        newer.tables[0].scope = .column("branch_id")

        let upgraded = try open(newer)

        #expect(try upgraded.pull(cursor, as: Shop.second).rows == ["-1 scope"])
        #expect(try upgraded.pull(as: Shop.first).rows == ["1"])
    }

    @Test func `a column that vanished without a migration is refused`() throws {
        try open(schema(1, [title, Column("n", .integer)])).connection.close()

        #expect(refusal(schema(2, [title])) == .incompatibleSchema)
    }

    @Test func `another program's database is refused`() throws {
        try Connection(path: path).execute("CREATE TABLE something (id)")

        #expect(refusal(Shop.schema) == .notAStore)
    }

    @Test func `a schema with faults is refused before the file is touched`() throws {
        #expect(refusal(Schema(version: 1, tables: [])) == .invalidSchema)
        #expect(try Connection(path: path).scalar("SELECT count(*) FROM sqlite_schema")?.integer == 0)
    }

    @Test func `missing triggers are rebuilt and what was missed is made up for`() throws {
        let shop = try open(schema(1, [title]))
        for row in 1...3 { _ = try write(shop, Int64(row), ["title": "a"]) }
        let cursor = try shop.pull().cursor
        try shop.connection.execute(
            """
            DROP TRIGGER fieldpost_feed_notes__insert; DROP TRIGGER fieldpost_feed_notes__update;
            DROP TRIGGER fieldpost_feed_notes__delete;
            UPDATE notes SET title = 'b' WHERE id = '\(Shop.id(1))'; DELETE FROM notes WHERE id = '\(Shop.id(2))';
            INSERT INTO notes VALUES ('\(Shop.id(4))', 'c');
            """
        )
        shop.connection.close()

        let page = try open(schema(1, [title])).pull(cursor)

        #expect(page.rows.sorted() == ["-2", "1", "3", "4"])
        #expect(page.changes.first { $0.row == Shop.id(1) }?.set?["title"] == "b")
    }

    @Test func `a token can be made before there is a schema`() throws {
        let connection = try Connection(path: path)
        let random = CountingRandom()
        try ServerCore.openForTokens(
            connection,
            now: Timestamp(milliseconds: 0),
            random: { random.bytes($0) }
        )
        let made = try Tokens.create(
            connection,
            name: "x",
            scopes: .all,
            now: Timestamp(milliseconds: 0),
            random: { random.bytes($0) }
        )
        connection.close()

        let shop = try open(Shop.schema)

        #expect(try Tokens.authenticate(shop.connection, token: made.token)?.scopes == .all)
        #expect(try shop.push(shop.note(1)).map(\.verdict) == ["applied"])
    }
}
