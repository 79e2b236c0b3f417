import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@testable import Fieldpost

/// What each operation is made on, waits for and belongs to.
@Suite struct CaptureDependencyTests {
    let file: CapturedFile

    init() throws { file = try CapturedFile() }

    @Test func `a child waits for the unsettled create of its parent and no longer`() throws {
        try file.pulled("INSERT INTO teams (id, name) VALUES ('old', 'x')", ("teams", "old"))

        try file.stranger.execute(
            """
            INSERT INTO people (id, name) VALUES ('p', 'Zoë'); INSERT INTO teams (id, name, lead) VALUES ('t', 'red', 'p');
            UPDATE teams SET size = 1 WHERE id = 't'; INSERT INTO members (id, team, person) VALUES ('m', 't', 'p'), ('n', 'old', NULL);
            UPDATE members SET rank = 1 WHERE id = 'n'; UPDATE members SET team = 't' WHERE id = 'n';
            """
        )

        #expect(
            try file.outline == [
                "create people/p", "create teams/t after #1", "update teams/t on #2 after #2",
                "create members/m after #1,#2", "create members/n", "update members/n on #5 after #5",
                "update members/n on #6 after #2,#6",
            ]
        )
    }

    @Test func `the base is kept once, before the first unsettled change`() throws {
        try file.pulled("INSERT INTO teams (id, name, size) VALUES ('t', 'red', 1)", ("teams", "t"))

        try file.write("UPDATE teams SET size = 2", "UPDATE teams SET size = 3")
        try file.stranger.execute("DELETE FROM teams; INSERT INTO teams (id, name) VALUES ('t', 'blue')")

        #expect(
            try file.outline == [
                "update teams/t on 7", "update teams/t on #1 after #1", "delete teams/t on #2 after #2",
                "create teams/t on #3 after #3",
            ]
        )
        #expect(
            try file.scalar("SELECT base FROM fieldpost_rows")
                == .text(#"{"id":"t","name":"red","lead":null,"size":1}"#)
        )
    }

    @Test func `a delete waits for what made other rows let go of it`() throws {
        try file.pulled(
            """
            INSERT INTO teams (id, name) VALUES ('t', 'red'), ('u', 'blue');
            INSERT INTO members (id, team) VALUES ('a', 't'), ('b', 't'), ('c', 't');
            """,
            ("teams", "t"),
            ("teams", "u"),
            ("members", "a"),
            ("members", "b"),
            ("members", "c")
        )
        try file.write("UPDATE members SET team = 'u' WHERE id = 'a'")
        try file.write("DELETE FROM members WHERE id = 'b'")
        try file.write("DELETE FROM members WHERE id = 'c'")
        try file.stranger.execute("DELETE FROM fieldpost_outbox WHERE row = 'c'")  // settled

        try file.write("DELETE FROM teams WHERE id = 't'")

        #expect(
            try file.outline == [
                "update members/a on 7", "delete members/b on 7",
                "delete teams/t on 7 after #1,#2",
            ]
        )
    }

    @Test func `a delete made before its children's goes behind them`() throws {
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('t', 'red'); INSERT INTO members (id, team) VALUES ('m', 't')",
            ("teams", "t"),
            ("members", "m")
        )

        try file.stranger.execute("DELETE FROM teams; DELETE FROM members")

        #expect(try file.outline == ["delete members/m on 7", "delete teams/t on 7 after #1"])
    }

    @Test func `a delete that was sent keeps its place`() throws {
        try file.pulled(
            "INSERT INTO teams (id, name) VALUES ('t', 'red'); INSERT INTO members (id, team) VALUES ('m', 't')",
            ("teams", "t"),
            ("members", "m")
        )
        try file.stranger.execute("DELETE FROM teams; UPDATE fieldpost_lease SET sent_upto = 1")

        try file.stranger.execute("DELETE FROM members")

        #expect(try file.outline == ["delete teams/t on 7", "delete members/m on 7"])
    }

    @Test
    func `a transaction is a group at the writer's time, a stranger's operations are alone at SQLite's`()
        throws
    {
        try file.write(
            "INSERT INTO teams (id, name) VALUES ('a', 'x'), ('b', 'x')",
            "UPDATE teams SET size = 1"
        )
        try file.stranger.execute("BEGIN; UPDATE teams SET size = 2; COMMIT")

        let rows = try file.stranger.query(
            "SELECT grp, created_at, substr(id, 1, 13), abs(created_at - unixepoch() * 1000) < 5000 FROM fieldpost_outbox ORDER BY seq"
        )
        let stamp = Value.text("019ad20f-2800")
        #expect(
            rows.prefix(4).allSatisfy {
                $0[0] == 1 && $0[1] == .integer(CapturedFile.time.milliseconds) && $0[2] == stamp
            }
        )
        #expect(rows.dropFirst(4).allSatisfy { $0[0] == .null && $0[3] == 1 })
        #expect(rows.count == 6)
    }

    @Test func `a write through the shell is captured like any other`() throws {
        file.database.connection.close()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "sqlite3", file.folder.path("a.db"),
            "INSERT INTO people (id, name, score) VALUES ('p', 'Zoë', 0.1); DELETE FROM people;",
        ]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()

        #expect(process.terminationStatus == 0)
        #expect(try file.outline == ["create people/p", "delete people/p on #1 after #1"])
    }

    @Test func `a kill at any statement of an apply leaves capture on`() throws {
        var statements = 0
        for victim in 0..<20 {
            let file = try CapturedFile()
            statements = 0
            file.database.connection.willStep = { _ throws(StoreError) in
                if statements == victim { throw .killed }
                statements += 1
            }
            _ = try? file.pulled(
                "INSERT INTO teams (id, name) VALUES ('s', 'red'); DELETE FROM teams",
                ("teams", "s")
            )
            file.database.connection.close()
            try file.reopen()

            try file.write("INSERT INTO teams (id, name) VALUES ('t', 'red')")
            try file.stranger.execute("UPDATE teams SET size = 1 WHERE id = 't'")

            #expect(try file.outbox.count == 2)
            #expect(try file.scalar("SELECT applying FROM fieldpost_session") == 0)
        }
        // The last kills came after the end, so every statement was hit.
        #expect(statements < 20)
    }

    // MARK: Append only

    @Test func `rows of an append-only table are neither changed nor replaced nor deleted`() throws {
        try file.pulled("INSERT INTO log (id, note) VALUES ('l', 'x')", ("log", "l"))
        try file.stranger.execute("CREATE UNIQUE INDEX u ON log (note)")
        try file.write("INSERT INTO log (id, note) VALUES ('sent', 'y')")
        try file.stranger.execute("UPDATE fieldpost_lease SET sent_upto = 1")

        for sql in [
            "UPDATE log SET note = 'z' WHERE id = 'l'", "UPDATE OR IGNORE log SET note = 'z'",
            "DELETE FROM log WHERE id = 'l'",
            "DELETE FROM log WHERE id = 'sent'", "REPLACE INTO log (id, note) VALUES ('l', 'z')",
            "REPLACE INTO log (id, note) VALUES ('m', 'x')",
            "PRAGMA recursive_triggers = ON; REPLACE INTO log (id, note) VALUES ('n', 'x')",
            "INSERT INTO log (id, note) VALUES ('l', 'x') ON CONFLICT (id) DO UPDATE SET note = 'z'",
        ] {
            #expect(file.refusal { try file.stranger.execute(sql) }?.code == .appendOnly, "\(sql)")
        }

        #expect(try file.outline == ["create log/sent"])
        #expect(try file.scalar("SELECT group_concat(note) FROM log") == "x,y")
    }

    @Test func `deleting a create that was never sent discards it`() throws {
        try file.write("INSERT INTO log (id, note) VALUES ('a', 'x'), ('b', 'y')")

        try file.stranger.execute("DELETE FROM log WHERE id = 'a'")

        #expect(try file.outline == ["create log/b"])
    }
}
