import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@testable import Fieldpost

/// Random SQL, by Fieldpost and by programs that do not know it, against a replayer that shares no code with
/// it.
@Suite struct CaptureOracleTests {
    @Test(arguments: 0..<8)
    func `the outbox reproduces the tables after random scripts`(_ part: Int) throws {
        let folder = try Samples.temporaryFolder()
        let (first, count) = (part * 125, 125)
        try Oracle.makeTemplate(at: folder.path("template.db"))

        let prepared = try Oracle.run(
            "prepare",
            folder.path("template.db"),
            folder.url.path,
            "\(first)",
            "\(count)"
        )
        try #require(prepared == "")
        for seed in first..<first + count { try Oracle.runThroughFieldpost(folder, seed) }
        let finished = try Oracle.run("finish", folder.url.path, "\(first)", "\(count)")

        #expect(finished == "")
    }

    @Test(arguments: [
        "people_before_insert", "people_after_insert", "people_after_replace", "people_after_update",
        "people_after_delete", "members_before_update", "teams_after_key_change", "members_after_key_replace",
    ])
    func `the oracle sees that one trigger is missing`(_ trigger: String) throws {
        let folder = try Samples.temporaryFolder()
        try Oracle.makeTemplate(at: folder.path("template.db"))
        try Connection(path: folder.path("template.db")).execute("DROP TRIGGER fieldpost_\(trigger)")

        let prepared = try Oracle.run("prepare", folder.path("template.db"), folder.url.path, "0", "300")

        #expect(prepared != "")
    }
}

/// Runs `Tests/oracle`, which needs python3 and the sqlite3 shell.
enum Oracle {
    /// References of every kind, counters, sets and each type; see `Tests/oracle/scripts.py`.
    static let schema = Schema(version: 1) {
        Table("people") {
            Column("id", .text).primaryKey()
            Column("name", .text)
            Column("email", .text).optional()
            Column("likes", .integer).defaults(to: 0)
            Column("tags", .set).defaults(to: [])
            Column("score", .real).optional()
            Column("photo", .blob).optional()
            Column("meta", .json).optional()
            Column("done", .boolean).defaults(to: false)
            Column("boss", .text).optional().references("people", onDelete: .setNull)
        }
        .rule("likes", .counter).rule("tags", .set)
        Table("teams") {
            Column("id", .text).primaryKey()
            Column("name", .text)
            Column("lead", .text).optional().references("people", onDelete: .setNull)
            Column("size", .integer).defaults(to: 0)
        }
        Table("members") {
            Column("id", .text).primaryKey()
            Column("team", .text).references("teams", onDelete: .cascade)
            Column("person", .text).optional().references("people")
            Column("role", .text).defaults(to: "member")
            Column("rank", .integer).defaults(to: 0)
        }
        Table("log") {
            Column("id", .text).primaryKey()
            Column("team", .text).optional().references("teams")
            Column("note", .text)
        }
        .conflict(.appendOnly)
    }

    static func open(_ path: String) throws -> LocalDatabase {
        var random = SystemRandomNumberGenerator()
        var options = LocalDatabase.Options()
        options.synchronous = .off
        return try LocalDatabase(
            path: path,
            schema: schema,
            options: options,
            now: Timestamp(milliseconds: 1_764_460_800_000),
            random: &random
        )
    }

    /// A file with the indexes and the trigger that an app might add.
    static func makeTemplate(at path: String) throws {
        let database = try open(path)
        try database.connection.execute(
            """
            CREATE UNIQUE INDEX app_email ON people (email COLLATE NOCASE);
            CREATE UNIQUE INDEX app_name ON teams (lower(name), lead);
            CREATE UNIQUE INDEX app_rank ON members (team, rank) WHERE rank > 0;
            CREATE UNIQUE INDEX app_note ON log (note) WHERE note <> '';
            CREATE TRIGGER app_size AFTER INSERT ON teams BEGIN
              UPDATE teams SET size = size + 1 WHERE id = NEW.id AND size < 100;
            END;
            """
        )
        database.connection.close()
        try open(path).connection.close()
    }

    /// Runs the transactions that `prepare` left for Fieldpost; statements that fail are passed over.
    static func runThroughFieldpost(_ folder: TemporaryFolder, _ seed: Int) throws {
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: folder.path("\(seed).json"))))
        let script = try JSON(bytes: bytes).object?["transactions"]?.array ?? []
        let database = try open(folder.path("\(seed).db"))
        for (index, transaction) in script.enumerated() {
            let statements = transaction.object?["statements"]?.array?.compactMap(\.string) ?? []
            try? database.write(at: Timestamp(milliseconds: 1_764_460_800_001 + Int64(index))) {
                for statement in statements { try? database.connection.execute(statement) }
                if transaction.object?["end"] == "rollback" { throw Abandoned() }
            }
        }
        database.connection.close()
    }

    private struct Abandoned: Error {}

    /// What the oracle says; nothing when all is well.
    static func run(_ arguments: String...) throws -> String {
        let folder = try Samples.temporaryFolder()
        try Data().write(to: URL(filePath: folder.path("out")))
        let output = try FileHandle(forWritingTo: URL(filePath: folder.path("out")))
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let script = URL(filePath: #filePath).appending(path: "../../../oracle/oracle.py").standardized.path
        process.arguments = ["python3", "-B", script] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        process.waitUntilExit()
        let text = try String(contentsOf: URL(filePath: folder.path("out")), encoding: .utf8)
        return process.terminationStatus == 0 ? "" : text.isEmpty ? "exit \(process.terminationStatus)" : text
    }
}
