import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

/// Each kind of statement leaves the operations that reproduce it.
@Suite struct CaptureStatementTests {
    let file: CapturedFile

    init() throws { file = try CapturedFile() }

    private static let team = #"{"set":{"name":"red","lead":null,"size":0}}"#

    @Test func `an insert is a create of all columns, an update names what changed, a delete nothing`() throws
    {
        try file.stranger.execute(
            """
            INSERT INTO teams (id, name) VALUES ('t', 'red');
            UPDATE teams SET name = 'blue', size = 0 WHERE id = 't';
            DELETE FROM teams WHERE id = 't';
            """
        )

        #expect(
            try file.outbox == [
                "create teams/t \(Self.team)", #"update teams/t {"set":{"name":"blue"}} on #1 after #1"#,
                "delete teams/t on #2 after #2",
            ]
        )
    }

    @Test func `an update that changes nothing makes no operation`() throws {
        try file.pulled("INSERT INTO teams (id, name) VALUES ('t', 'red')", ("teams", "t"))

        try file.stranger.execute(
            "UPDATE teams SET name = name, size = 0; INSERT OR REPLACE INTO teams (id, name) VALUES ('t', 'red')"
        )

        #expect(try file.outbox == [])
        #expect(try file.scalar("SELECT base FROM fieldpost_rows") == .null)
    }

    @Test(arguments: ["", "PRAGMA recursive_triggers = ON;"])
    func `a replaced row of the same key is recorded once, whatever the triggers' mode`(_ mode: String) throws
    {
        try file.pulled("INSERT INTO teams (id, name, size) VALUES ('t', 'red', 4)", ("teams", "t"))

        try file.stranger.execute("\(mode) REPLACE INTO teams (id, name, size) VALUES ('t', 'red', 5)")

        let expected =
            mode.isEmpty
            ? [#"update teams/t {"set":{"size":5}} on 7"#]
            : [
                "delete teams/t on 7",
                #"create teams/t {"set":{"name":"red","lead":null,"size":5}} on #1 after #1"#,
            ]
        #expect(try file.outbox == expected)
        #expect(
            try file.scalar("SELECT base FROM fieldpost_rows")
                == .text(#"{"id":"t","name":"red","lead":null,"size":4}"#)
        )
    }

    @Test(arguments: [
        "CREATE UNIQUE INDEX u ON teams (name)", "CREATE UNIQUE INDEX u ON teams (name COLLATE NOCASE)",
        "CREATE UNIQUE INDEX u ON teams (lower(name), ifnull(lead, '-'))",
        "CREATE UNIQUE INDEX u ON teams (name) WHERE size = 0",
    ])
    func `a row replaced through another unique index is a delete`(_ index: String) throws {
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('a', 'red'), ('b', 'blue')",
            ("teams", "a"),
            ("teams", "b")
        )
        try file.database.connection.execute(index)
        try file.write("SELECT 1")

        try file.stranger.execute("REPLACE INTO teams (id, name) VALUES ('c', 'red')")
        try file.stranger.execute("UPDATE OR REPLACE teams SET name = 'blue' WHERE id = 'c'")

        #expect(
            try file.outbox == [
                "create teams/c \(Self.team)", "delete teams/a on 7",
                #"update teams/c {"set":{"name":"blue"}} on #1 after #1"#, "delete teams/b on 7",
            ]
        )
        #expect(try file.scalar("SELECT count(*) FROM fieldpost_rows WHERE base IS NULL") == 0)
    }

    @Test(arguments: ["OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK", "OR REPLACE"])
    func `the conflict clause of the statement does not reach the outbox`(_ clause: String) throws {
        try file.stranger.execute(
            "INSERT \(clause) INTO teams (id, name) VALUES ('t', 'red'); UPDATE \(clause) teams SET size = 1"
        )

        #expect(
            try file.outbox == [
                "create teams/t \(Self.team)", #"update teams/t {"set":{"size":1}} on #1 after #1"#,
            ]
        )
    }

    @Test func `what a conflict clause passes over leaves no operation`() throws {
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('t', 'red'), ('u', 'blue')",
            ("teams", "t"),
            ("teams", "u")
        )

        try file.stranger.execute(
            """
            INSERT OR IGNORE INTO teams (id, name) VALUES ('t', 'x');
            INSERT INTO teams (id, name) VALUES ('t', 'x') ON CONFLICT DO NOTHING;
            UPDATE OR IGNORE teams SET id = 't' WHERE id = 'u';
            """
        )
        #expect(throws: StoreError.self) {
            try file.stranger.execute(
                "INSERT OR FAIL INTO teams (id, name) VALUES ('v', 'red'), ('t', 'x'), ('w', 'x')"
            )
        }
        try file.stranger.execute(
            "DELETE FROM teams WHERE id = 't'; INSERT INTO teams (id, name) VALUES ('t', 'red')"
        )

        #expect(
            try file.outbox == [
                "create teams/v \(Self.team)", "delete teams/t on 7",
                "create teams/t \(Self.team) on #2 after #2",
            ]
        )
    }

    @Test func `an upsert is the insert or the update that it did`() throws {
        let upsert =
            "INSERT INTO teams (id, name) VALUES ('t', 'red') ON CONFLICT (id) DO UPDATE SET size = size + 1"

        try file.stranger.execute("\(upsert); \(upsert)")

        #expect(
            try file.outbox == [
                "create teams/t \(Self.team)", #"update teams/t {"set":{"size":1}} on #1 after #1"#,
            ]
        )
    }

    @Test func `a changed key is a create, the children, a delete`() throws {
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('t', 'red'); INSERT INTO members (id, team) VALUES ('m', 't'), ('n', 't')",
            ("teams", "t"),
            ("members", "m"),
            ("members", "n")
        )

        try file.write("UPDATE teams SET id = 'u'", "UPDATE members SET team = 'u' WHERE team = 't'")

        #expect(
            try file.outbox == [
                "create teams/u \(Self.team)", #"update members/m {"set":{"team":"u"}} on 7 after #1"#,
                #"update members/n {"set":{"team":"u"}} on 7 after #1"#, "delete teams/t on 7",
            ]
        )
        #expect(try file.scalar("SELECT count(DISTINCT grp) FROM fieldpost_outbox") == 1)
    }

    @Test func `a cascade and a cleared reference are recorded before the delete`() throws {
        try file.pulled(
            """
            INSERT INTO people (id, name) VALUES ('p', 'Zoë'); INSERT INTO teams (id, name, lead) VALUES ('t', 'red', 'p');
            INSERT INTO members (id, team) VALUES ('m', 't');
            """,
            ("people", "p"),
            ("teams", "t"),
            ("members", "m")
        )

        try file.write("DELETE FROM people WHERE id = 'p'", "DELETE FROM teams")

        #expect(
            try file.outbox == [
                #"update teams/t {"set":{"lead":null}} on 7"#, "delete people/p on 7",
                "delete members/m on 7",
                "delete teams/t on #1 after #1",
            ]
        )
    }

    @Test func `what is rolled back leaves neither row nor operation`() throws {
        try file.stranger.execute(
            """
            BEGIN; INSERT INTO teams (id, name) VALUES ('t', 'red');
            SAVEPOINT s; INSERT INTO teams (id, name) VALUES ('u', 'red'); ROLLBACK TO s; RELEASE s; COMMIT;
            BEGIN; DELETE FROM teams; ROLLBACK;
            """
        )
        #expect(throws: StoreError.self) {
            try file.database.write(at: CapturedFile.time) {
                try file.database.connection.execute("DELETE FROM teams")
                throw StoreError.killed
            }
        }

        #expect(try file.outbox == ["create teams/t \(Self.team)"])
        #expect(try file.scalar("SELECT count(*) FROM teams") == 1)
    }

    @Test func `an app's trigger that changes the new row is recorded after the create`() throws {
        try file.database.connection.execute(
            "CREATE TRIGGER app AFTER INSERT ON teams BEGIN UPDATE teams SET size = 9 WHERE id = NEW.id; END"
        )

        try file.write("INSERT INTO teams (id, name) VALUES ('t', 'red')")

        #expect(
            try file.outbox == [
                "create teams/t \(Self.team)", #"update teams/t {"set":{"size":9}} on #1 after #1"#,
            ]
        )
    }

    @Test func `a change without its outbox row is not made`() throws {
        try file.stranger.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON fieldpost_outbox BEGIN SELECT RAISE(IGNORE); END"
        )

        #expect(throws: StoreError.self) {
            try file.stranger.execute("INSERT INTO teams (id, name) VALUES ('t', 'red')")
        }
        #expect(throws: StoreError.self) {
            try file.stranger.execute("INSERT OR IGNORE INTO teams (id, name) VALUES ('t', 'red')")
        }

        #expect(try file.scalar("SELECT count(*) FROM teams") == 0)
    }

    @Test func `counters and sets are recorded as differences`() throws {
        try file.pulled(
            #"INSERT INTO people (id, name, likes, tags) VALUES ('p', 'x', 5, '["a",1]')"#,
            ("people", "p")
        )

        try file.stranger.execute(#"UPDATE people SET likes = likes - 7, tags = '["b",1,"1"]'"#)
        try file.stranger.execute(
            #"REPLACE INTO people (id, name, likes, tags) VALUES ('p', 'x', 0, '["b"]')"#
        )

        #expect(
            try file.outbox == [
                #"update people/p {"inc":{"likes":-7},"add":{"tags":["b","1"]},"remove":{"tags":["a"]}} on 7"#,
                #"update people/p {"inc":{"likes":2},"add":{"tags":[]},"remove":{"tags":[1,"1"]}} on #1 after #1"#,
            ]
        )
    }
}
