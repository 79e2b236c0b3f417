import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@testable import Fieldpost

@Suite struct StoreOpeningTests {
    let folder: TemporaryFolder
    var path: String { folder.path("garage.db") }

    init() throws { folder = try TemporaryFolder() }

    private func bytes(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

    @Test func `a second store on a file of this process shares the first one's connection`() async throws {
        let first = try await Garage.open(folder)
        let other = folder.path("../\(folder.url.lastPathComponent)/garage.db")
        let second = try await Store.open(at: other, schema: Garage.schema)
        var counts = second.watchCount(Job.all).makeAsyncIterator()
        #expect(try await counts.next() == 0)

        try await first.insert(Job())

        #expect(try await counts.next() == 1)
        await first.close()
        let error = await #expect(throws: StoreError.self) { try await first.insert(Job()) }
        #expect(error?.code == .closed)
        try await second.insert(Job())
        #expect(try await counts.next() == 2)
        await second.close()
        #expect(try await Garage.open(folder).fetchCount(Job.all) == 2)
    }

    @Test func `another schema on a file that this process has open is refused`() async throws {
        let first = try await Garage.open(folder)
        var schema = Garage.schema
        schema.version = 2

        let error = await #expect(throws: FieldpostError.self) {
            try await Store.open(at: path, schema: schema)
        }

        #expect(error?.code == .alreadyOpen)
        try await first.insert(Job())
        await first.close()
        #expect(try await Garage.open(folder, schema: schema).fetchCount(Job.all) == 1)
    }

    @Test func `stores opened and closed at once never get in each other's way`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let store = try await Garage.open(folder)
                    try await store.insert(Job(totalIDR: Int64(number)))
                    await store.close()
                }
            }
            try await group.waitForAll()
        }

        #expect(try await Garage.open(folder).fetchCount(Job.all) == 20)
    }

    @Test func `a store that was dropped without being closed can be opened again`() async throws {
        do {
            let dropped = try await Garage.open(folder)
            try await dropped.insert(Job())
        }

        let store = try await Garage.open(folder)
        #expect(try await store.fetchCount(Job.all) == 1)
        #expect(await store.rescue() == nil)
    }

    @Test func `a file that is no database is refused and left as it is`() async throws {
        let text = Data(String(repeating: "Dear diary, today I learnt about sync. ", count: 200).utf8)
        try text.write(to: URL(fileURLWithPath: path))

        let error = await #expect(throws: StoreError.self) { try await Garage.open(folder) }

        #expect(error?.code == .notADatabase)
        #expect(try bytes(path) == text)
    }

    @Test func `a file of a newer app is refused and left as it is, byte for byte`() async throws {
        var newer = Garage.schema
        newer.version = 2
        let store = try await Garage.open(folder, schema: newer)
        try await store.insert(Job())
        await store.close()
        let before = try bytes(path)

        let error = await #expect(throws: FieldpostError.self) { try await Garage.open(folder) }

        #expect(error?.code == .newerFormat)
        #expect(try bytes(path) == before)
        #expect(try await Garage.open(folder, schema: newer).fetchCount(Job.all) == 1)
    }

    @Test func `a folder that is missing or in the way is named`() async throws {
        let missing = await #expect(throws: StoreError.self) {
            try await Store.open(at: folder.path("no/garage.db"), schema: Garage.schema)
        }
        #expect(missing?.code == .missing)
        let folderInTheWay = await #expect(throws: StoreError.self) {
            try await Store.open(at: folder.url.path, schema: Garage.schema)
        }
        #expect(folderInTheWay?.code == .cantOpen)
    }

    @Test func `a file locked by another connection is busy, and opens when it is free`() async throws {
        await (try await Garage.open(folder)).close()
        let other = try Connection(path: path)
        try other.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")

        let error = await #expect(throws: StoreError.self) { try await Garage.open(folder) }
        #expect(error?.code == .busy)

        other.close()
        #expect(try await Garage.open(folder).fetchCount(Job.all) == 0)
    }

    @Test func `a full disk fails the write alone, and nothing before it is lost`() async throws {
        let store = try await Garage.open(folder)
        try await store.insert(Job(totalIDR: 1))
        // A page limit stands in for the disk: SQLite reports the same failure at the same places.
        try await store.writer.perform { database, _, _ in
            let pages = try database.connection.scalar("PRAGMA page_count")?.integer ?? 0
            try database.connection.execute("PRAGMA max_page_count = \(pages)")
        }

        let error = await #expect(throws: StoreError.self) {
            try await store.insert(Job(plate: String(repeating: "x", count: 100_000)))
        }

        #expect(error?.code == .full)
        #expect(try await store.fetchAll(Job.self).map(\.totalIDR) == [1])
        await store.close()
        #expect(try await Garage.open(folder).fetchCount(Job.all) == 1)
    }

    @Test func `opening with a hundred tables reads no more often than with five`() async throws {
        // Counted, not timed: the statements that opening an unchanged file runs.
        func statements(_ tables: Int) async throws -> Int {
            let schema = Schema(
                version: 1,
                tables: (0..<tables).map {
                    Table("table_\($0)") {
                        Column("id", .uuid).primaryKey(); Column("name", .text)
                    }
                }
            )
            let path = folder.path("\(tables).db")
            await (try await Store.open(at: path, schema: schema)).close()
            let count = Counter()
            var options = LocalDatabase.Options()
            options.willStep = { _ in count.add() }
            var random = SystemRandomNumberGenerator()
            _ = try LocalDatabase(
                path: path,
                schema: schema,
                options: options,
                now: Timestamp(milliseconds: 0),
                random: &random
            )
            return count.value
        }
        #expect(try await statements(100) == statements(5))
    }
}

/// Counts from any thread.
final class Counter: Sendable {
    private let count = Locked(0)
    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
}

@Suite struct RescueTests {
    let folder: TemporaryFolder
    var path: String { folder.path("garage.db") }

    init() throws { folder = try TemporaryFolder() }

    /// A closed file with `count` jobs of which none is sent, marked as one that was not closed.
    private func fill(_ count: Int) async throws {
        let store = try await Garage.open(folder)
        for first in stride(from: 0, to: count, by: 500) {
            try await store.write { transaction in
                for number in first..<min(first + 500, count) {
                    try transaction.insert(Job(totalIDR: Int64(number), plate: "B \(number)"))
                }
            }
        }
        await store.close()
        let connection = try Connection(path: path)
        try connection.execute("INSERT INTO fieldpost_meta VALUES ('open', '999999999/gone')")
        connection.close()
    }

    /// Overwrites the pages of `table` from the middle on.
    private func damage(_ table: String) throws {
        let connection = try Connection(path: path)
        let pages = try connection.query(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'",
            .text(table)
        )
        let size = try connection.scalar("PRAGMA page_size")?.integer ?? 4096
        connection.close()
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        for page in pages[(pages.count / 2)...].prefix(2) {
            try file.seek(toOffset: UInt64(((page[0].integer ?? 1) - 1) * size))
            try file.write(contentsOf: Data(repeating: 0xFF, count: Int(size)))
        }
        try file.close()
    }

    @Test func `what a damaged table still holds is saved, with the whole outbox, and the file is kept`()
        async throws
    {
        try await fill(2_000)
        try damage("jobs")

        let store = try await Garage.open(folder)

        let rescue = try #require(await store.rescue())
        #expect(rescue.operations == 2_000)
        let saved = try #require(rescue.rows["jobs"])
        #expect(saved > 1_800 && saved < 2_000)
        #expect(FileManager.default.fileExists(atPath: rescue.damagedFile))
        #expect(try await store.fetchCount(Job.all) == saved)
        #expect(try await store.outbox(limit: 5_000).count == 2_000)
        try await store.insert(Job())
        await store.close()
        let again = try await Garage.open(folder)
        #expect(await again.rescue() == nil)
        #expect(try await again.fetchCount(Job.all) == saved + 1)
    }

    @Test func `a damaged outbox is saved up to the damage from both ends`() async throws {
        try await fill(2_000)
        try damage("fieldpost_outbox")

        let store = try await Garage.open(folder)

        let rescue = try #require(await store.rescue())
        #expect(rescue.operations > 1_800 && rescue.operations < 2_000)
        #expect(rescue.rows["jobs"] == 2_000)
        let first = try #require(try await store.outbox(limit: 1).first)
        #expect(first.seq == 1)
    }

    @Test func `a sound file that was not closed is only checked`() async throws {
        try await fill(10)

        let store = try await Garage.open(folder)

        #expect(await store.rescue() == nil)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path).allSatisfy {
                !$0.contains("damaged")
            }
        )
    }
}
