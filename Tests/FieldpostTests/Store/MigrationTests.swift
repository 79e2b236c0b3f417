import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// The garage's app a year later: a column renamed, one added, one of another kind.
private let nextYear = Schema(
    version: 2,
    tables: Garage.schema.tables.map { table in
        var table = table
        if table.name == "jobs", let plate = table.columns.firstIndex(where: { $0.name == "plate" }) {
            table.columns[plate].name = "licence"
            table.columns.append(Column("bay", .integer).defaults(to: 7))
        }
        return table
    },
    migrations: [
        Migration(
            from: 1,
            to: 2,
            sql: [
                "ALTER TABLE jobs RENAME COLUMN plate TO licence",
                "ALTER TABLE jobs ADD COLUMN bay INTEGER NOT NULL DEFAULT 7",
                "UPDATE jobs SET bay = 8 WHERE status = 'paid'",
            ],
            operations: ["jobs": Upcast(rename: ["plate": "licence"], defaults: ["bay": 7])]
        )
    ]
)

@Suite struct MigrationTests {
    let folder: TemporaryFolder
    var path: String { folder.path("garage.db") }

    init() throws { folder = try TemporaryFolder() }

    /// Last year's file, from the dump that its release left: 500 queued operations.
    private func restoreLastYear() throws {
        let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures")
        let dump = try String(contentsOf: fixtures.appending(path: "garage-1.sql"), encoding: .utf8)
        let connection = try Connection(path: path)
        try connection.execute(dump)
        connection.close()
    }

    private func openNextYear(_ options: LocalDatabase.Options = .init()) throws -> LocalDatabase {
        var random = SeededRandom(seed: 1)
        return try LocalDatabase(
            path: path,
            schema: nextYear,
            options: options,
            now: Timestamp(milliseconds: 1_790_000_000_000),
            random: &random
        )
    }

    /// Everything in the file but what differs from one opening to the next.
    private func dump() throws -> [[Value]] {
        let connection = try Connection(path: path)
        defer { connection.close() }
        return try connection.query("SELECT name, sql FROM sqlite_schema ORDER BY name")
            + connection.query("SELECT * FROM jobs ORDER BY id")
            + connection.query("SELECT * FROM fieldpost_outbox ORDER BY seq")
            + connection.query("SELECT * FROM fieldpost_rows ORDER BY tbl, row")
            + connection.query("SELECT * FROM fieldpost_meta WHERE key <> 'checked' ORDER BY key")
    }

    @Test func `a file of last year's app with 500 queued operations opens and drains`() async throws {
        try restoreLastYear()
        let server = try MockServer(schema: nextYear)

        let store = try await Store.open(at: path, schema: nextYear)
        #expect(try await store.outbox(limit: 1_000).count == 500)
        let engine = SyncEngine(store: store, transport: server) { _ in MockServer.everyScope }
        var report = await engine.sync()
        while try await !store.outbox().isEmpty, report.pushed > 0 { report = await engine.sync() }

        #expect(try await store.outbox().isEmpty)
        let jobs = try await store.read {
            try $0.query("select id, licence, bay, total_idr from jobs order by id")
        }
        #expect(jobs.count > 100)
        #expect(
            try server.query("select id, licence, bay, total_idr from jobs order by id") == jobs.map(\.values)
        )
    }

    @Test func `a crash at any statement of a migration leaves the old file or the new`() throws {
        try restoreLastYear()
        let old = try dump()
        let copy = try Data(contentsOf: URL(fileURLWithPath: path))
        let whole = try openNextYear()
        whole.connection.close()
        let new = try dump()
        #expect(old != new)

        var kills = 0
        var ends: Set<Bool> = []
        for last in 0... {
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            try copy.write(to: URL(fileURLWithPath: path))
            let count = Counter()
            var options = LocalDatabase.Options()
            options.willStep = { _ throws(StoreError) in
                if count.value == last { throw .killed }
                count.add()
            }
            do {
                let database = try openNextYear(options)
                database.connection.close()
                #expect(try dump() == new)
                break
            } catch let error as StoreError where error.code == .killed {
                kills += 1
                let left = try dump()
                #expect(left == old || left == new, "killed at statement \(last)")
                ends.insert(left == new)
                try openNextYear().connection.close()
                #expect(try dump() == new, "opened again after statement \(last)")
            }
        }
        #expect(kills > 20)
        #expect(ends.contains(false))
    }

    @Test func `the server's row under an unsent edit takes the new names`() throws {
        var random = SeededRandom(seed: 2)
        let id = "0191d3a0-0000-7000-8000-000000000001"
        let row: JSONObject = [
            "id": .string(id), "status": "open", "urgency": 3, "total_idr": 1, "hours": 1.5, "paid": false,
            "opened_at": 5, "plate": "B 1", "rate": "1", "steps": [], "tags": [],
        ]
        let now = Timestamp(milliseconds: 1)
        do {
            let database = try LocalDatabase(path: path, schema: Garage.schema, now: now, random: &random)
            let page = PullPage(
                changes: [PulledChange(table: "jobs", row: id, version: 1, set: row)],
                cursor: "a",
                more: false,
                settled: [],
                serverTime: now
            )
            _ = try PullApply.page(database, page, askedWith: nil, now: now)
            try database.write(at: now) { try database.connection.execute("UPDATE jobs SET plate = 'B 2'") }
            database.connection.close()
        }

        let database = try openNextYear()
        var changed = row
        changed["plate"] = nil
        changed["licence"] = "B 9"
        changed["bay"] = 9
        changed["total_idr"] = 2
        let page = PullPage(
            changes: [PulledChange(table: "jobs", row: id, version: 2, set: changed)],
            cursor: "b",
            more: false,
            settled: [],
            serverTime: now
        )
        // The columns that are new were never received, so the pull begins again.
        _ = try PullApply.page(database, page, askedWith: nil, now: now)

        #expect(try database.connection.query("SELECT licence, bay, total_idr FROM jobs") == [["B 2", 9, 2]])
        // What was queued last year is sent as it was recorded; the server reads it as its version says.
        let entry = try #require(try database.entries(where: "1").first)
        #expect(entry.schema == 1 && entry.change?.hasPrefix(#"{"set":{"plate":"B 2"}"#) == true)
    }
}
