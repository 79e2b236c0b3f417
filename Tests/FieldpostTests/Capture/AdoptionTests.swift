import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

/// What was written while a table had no triggers is found at the next start.
@Suite struct AdoptionTests {
    private func drop(_ file: CapturedFile, _ table: String) throws {
        for row in try file.stranger.query(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND name GLOB 'fieldpost_*'",
            .text(table)
        ) { try file.stranger.execute("DROP TRIGGER \(row[0].text ?? "")") }
    }

    @Test func `rows nobody recorded become creates, rows that are gone become deletes`() throws {
        let file = try CapturedFile()
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('kept', 'x'), ('gone', 'x'), ('parked', 'x')",
            ("teams", "kept"),
            ("teams", "gone"),
            ("teams", "parked")
        )
        try file.write(
            "INSERT INTO teams (id, name) VALUES ('made', 'x'), ('stays', 'x')",
            "DELETE FROM teams WHERE id = 'kept'"
        )
        try drop(file, "teams")
        try file.stranger.execute(
            """
            DELETE FROM teams WHERE id IN ('gone', 'made', 'parked');
            INSERT INTO teams (id, name) VALUES ('new', 'x'), ('kept', 'x');
            INSERT INTO fieldpost_parked (tbl, row, version) VALUES ('teams', 'parked', 8);
            """
        )

        try file.reopen()

        #expect(
            try file.outline.sorted() == [
                "create teams/kept on #3 after #3", "create teams/made", "create teams/new",
                "create teams/stays",
                "delete teams/gone on 7", "delete teams/kept on 7", "delete teams/made on #1 after #1",
            ]
        )
        try file.reopen()
        #expect(try file.outbox.count == 7)
        let ids = try file.stranger.scalar("SELECT count(DISTINCT id) FROM fieldpost_outbox")
        #expect(ids == 7, "every operation has an id of its own")
    }

    @Test func `a table that is gone whole is fetched again, not deleted row by row`() throws {
        let file = try CapturedFile()
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('a', 'x'), ('b', 'x')",
            ("teams", "a"),
            ("teams", "b")
        )
        try file.stranger.execute(
            "INSERT INTO fieldpost_meta (key, value) VALUES ('cursor', 'c'); DROP TABLE teams"
        )

        try file.reopen()

        #expect(try file.outbox.isEmpty)
        #expect(try file.stranger.scalar("SELECT value FROM fieldpost_meta WHERE key = 'cursor'") == nil)
    }

    @Test func `a table rebuilt by the app is captured from the next write on`() throws {
        let file = try CapturedFile()
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('a', 'x'), ('b', 'x'); INSERT INTO members (id, team) VALUES ('m', 'a')",
            ("teams", "a"),
            ("teams", "b"),
            ("members", "m")
        )

        try file.stranger.execute(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, lead TEXT, size INTEGER NOT NULL DEFAULT 0) STRICT;
            INSERT INTO fresh SELECT * FROM teams WHERE id <> 'b'; INSERT INTO fresh (id, name) VALUES ('c', 'x');
            DROP TABLE teams; ALTER TABLE fresh RENAME TO teams;
            """
        )
        try file.write("UPDATE teams SET size = 1 WHERE id = 'a'")

        #expect(try file.outline == ["create teams/c", "delete teams/b on 7", "update teams/a on 7"])
    }

    @Test
    func `a table that the app had before is sent parents first, and what cannot travel is a dead letter`()
        throws
    {
        let file = try CapturedFile(
            before: """
                CREATE TABLE people (id TEXT PRIMARY KEY NOT NULL, name TEXT, email, likes INTEGER NOT NULL DEFAULT 0,
                  tags TEXT NOT NULL DEFAULT '[]', score REAL, photo, meta, done INTEGER NOT NULL DEFAULT 0, boss TEXT);
                INSERT INTO people (id, name, boss) VALUES ('a', 'x', 'b'), ('b', 'x', 'c'), ('c', 'x', NULL),
                  ('d', CAST(x'ff' AS TEXT), NULL), ('e', 'x', 'e');
                INSERT INTO people (id, name, score) VALUES ('f', 'x', 9e999);
                """
        )

        #expect(
            try file.outline == [
                "create people/c", "create people/b after #1", "create people/a after #2", "create people/e",
                "create people/d", "create people/f",
            ]
        )
        let failed = try file.stranger.query(
            "SELECT row, json_extract(error, '$.message') FROM fieldpost_outbox WHERE state = 3 ORDER BY seq"
        )
        #expect(
            failed == [
                ["d", "people.name is not valid UTF-8; encode it"],
                ["f", "people.score is infinite; store a finite number"],
            ]
        )
    }

    @Test func `a migration may drop a column, and its changes of rows are found`() throws {
        let old = Schema(version: 1) {
            Table("things") {
                Column("id", .text).primaryKey()
                Column("body", .text).optional()
                Column("extra", .text).optional()
            }
        }
        let file = try CapturedFile(old)
        try file.pulled("INSERT INTO things (id) VALUES ('a'), ('b')", ("things", "a"), ("things", "b"))
        let new = Schema(
            version: 2,
            migrations: [
                Migration(
                    from: 1,
                    to: 2,
                    sql: [
                        "ALTER TABLE things DROP COLUMN extra", "DELETE FROM things WHERE id = 'b'",
                        "UPDATE things SET body = 'filled'", "INSERT INTO things (id) VALUES ('c')",
                    ]
                )
            ]
        ) {
            Table("things") {
                Column("id", .text).primaryKey()
                Column("body", .text).optional()
            }
        }

        try file.reopen(new)
        try file.stranger.execute("UPDATE things SET body = 'later' WHERE id = 'a'")

        #expect(try file.outline == ["create things/c", "delete things/b on 7", "update things/a on 7"])
        #expect(try file.scalar("SELECT DISTINCT schema FROM fieldpost_outbox") == 2)
    }

    @Test func `names of indexes are told apart`() throws {
        let schema = Schema(version: 1) {
            Table("outbox") {
                Column("id", .text).primaryKey()
                Column("pending", .text).optional()
                Column("a", .text).optional()
                Column("b_c", .text).optional()
                Column("a_b", .text).optional()
                Column("c", .text).optional()
            }
            .index("pending").index("a", "b_c").index("a_b", "c")
        }

        let file = try CapturedFile(schema)

        let count = try file.scalar("SELECT count(*) FROM pragma_index_list('outbox') WHERE origin = 'c'")
        #expect(count == 3)
    }
}
