import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// The outbox has an end, and a writer meets it in its own transaction.
@Suite struct OutboxLimitTests {
    private let folder: TemporaryFolder
    private let store: Store
    /// A file is larger than this from the start, so that changes are counted.
    private static let limit: Int64 = 20_000

    init() async throws {
        folder = try TemporaryFolder()
        var configuration = Store.Configuration()
        configuration.synchronous = .off
        configuration.outboxByteLimit = Self.limit
        store = try await Store.open(
            at: folder.path("a.db"),
            schema: Samples.shop,
            configuration: configuration
        )
    }

    private func note(_ row: String, bytes: Int = 5_000) async throws {
        _ = try await store.write {
            try $0.create("notes", row: row, set: ["title": .string(String(repeating: "x", count: bytes))])
        }
    }

    private func isFull(_ row: String, bytes: Int = 5_000) async -> Bool {
        do {
            try await note(row, bytes: bytes)
            return false
        } catch {
            return (error as? FieldpostError)?.code == .outboxFull
        }
    }

    private func rows() async throws -> [String] {
        try await store.read { try $0.query("SELECT id FROM notes ORDER BY id") }
            .compactMap { $0["id"]?.text }
    }

    @Test func `a write beyond the bytes fails and leaves neither row nor operation: outbox_full`()
        async throws
    {
        for row in ["a", "b", "c"] { try await note(row) }

        #expect(await isFull("d"))

        #expect(try await rows() == ["a", "b", "c"])
        #expect(try await store.outbox().map(\.row) == ["a", "b", "c"])
        // What was refused does not count: one that fits goes in.
        #expect(await isFull("d"))
        #expect(await !isFull("e", bytes: 500))
        #expect(await isFull("f"))
    }

    @Test func `room comes back with a drain`() async throws {
        for row in ["a", "b", "c"] { try await note(row) }
        #expect(await isFull("d"))

        let transport = ScriptedTransport([.accept])
        _ = await SyncEngine(store: store, transport: transport) { _ in "t" }.sync()

        for row in ["d", "e", "f"] { #expect(await !isFull(row)) }
        #expect(await isFull("g"))
    }

    @Test func `what another program writes counts`() async throws {
        try await note("a")
        let other = try Connection(path: folder.path("a.db"), mode: .readWrite)
        try other.run(
            "INSERT INTO notes (id, title) VALUES ('shell', ?)",
            .text(String(repeating: "x", count: 12_000))
        )
        other.close()

        #expect(await isFull("b"))

        #expect(try await store.outbox().map(\.row) == ["a", "shell"])
    }

    @Test func `a change of many bytes counts as bytes, not as letters`() async throws {
        _ = try await store.write {
            try $0.create("notes", row: "a", set: ["title": .string(String(repeating: "é", count: 9_000))])
        }

        #expect(await isFull("b"))
    }

    @Test func `a transaction that is rolled back takes no room`() async throws {
        struct Stop: Error {}
        for _ in 0..<5 {
            await #expect(throws: Stop.self) {
                try await store.write { transaction in
                    try transaction.create(
                        "notes",
                        row: "a",
                        set: ["title": .string(String(repeating: "x", count: 9_000))]
                    )
                    throw Stop()
                }
            }
        }

        for row in ["a", "b", "c"] { #expect(await !isFull(row)) }
        #expect(await isFull("d"))
    }

    @Test func `far from the limit nothing that grows with the outbox is read`() throws {
        let device = try Device()
        for row in 0..<50 { try device.write("INSERT INTO notes (id, title) VALUES ('r\(row)', 'x')") }
        var limits = OutboxLimits(operations: 1_000, bytes: 1 << 30)
        let seen = Locked<[String]>([])
        device.db.connection.willStep = { sql throws(StoreError) in seen.withLock { $0.append(sql) } }

        try limits.admit(device.db.connection, from: 50, upTo: 50)
        try limits.admit(device.db.connection, from: 51, upTo: 51)
        device.db.connection.willStep = nil

        #expect(
            Set(seen.withLock { $0 }) == [
                "SELECT min(seq) FROM fieldpost_outbox", "PRAGMA page_count", "PRAGMA page_size",
            ]
        )
    }

    @Test func `near the limit only what came since is counted`() throws {
        let device = try Device()
        for row in 0..<50 { try device.write("INSERT INTO notes (id, title) VALUES ('r\(row)', 'x')") }
        var limits = OutboxLimits(operations: 1_000, bytes: 100_000)
        try limits.admit(device.db.connection, from: 1, upTo: 50)
        // Nobody does this; it shows which rows are looked at.
        try device.db.connection.run("UPDATE fieldpost_outbox SET change = zeroblob(200000) WHERE seq = 1")

        try limits.admit(device.db.connection, from: 51, upTo: 51)

        var fresh = OutboxLimits(operations: 1_000, bytes: 100_000)
        let error = #expect(throws: FieldpostError.self) {
            try fresh.admit(device.db.connection, from: 51, upTo: 51)
        }
        #expect(error?.code == .outboxFull)
    }
}
