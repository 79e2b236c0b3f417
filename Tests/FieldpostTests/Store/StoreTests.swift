import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

@Suite struct StoreTests {
    private struct Stop: Error {}

    private func code(_ body: () async throws -> Void) async -> FieldpostError? {
        do {
            try await body()
            return nil
        } catch { return error as? FieldpostError }
    }

    // MARK: Transactions

    @Test func `a write that throws leaves neither row nor operation, and the error comes out`() async throws
    {
        let shop = try await Shop()

        await #expect(throws: Stop.self) {
            try await shop.store.write { transaction in
                try transaction.create("notes", row: "a", set: ["title": "1"])
                throw Stop()
            }
        }

        #expect(try await shop.title("a") == nil)
        #expect(try await shop.store.outbox() == [])
        try await shop.note("b")
        #expect(try await shop.store.outbox().count == 1)
    }

    @Test func `a write is one group`() async throws {
        let shop = try await Shop()
        try await shop.note("first")

        let operations = try await shop.store.write { transaction in
            try transaction.create("notes", row: "a", set: ["title": "1"])
            try transaction.update("notes", row: "a", set: ["title": "2"])
            try transaction.delete("notes", row: "first")
            return try transaction.operations()
        }

        let items = try await shop.store.outbox().suffix(3)
        #expect(items.map(\.operation) == operations)
        #expect(Set(items.map(\.group)).count == 1)
        #expect(items.map(\.action) == ["create", "update", "delete"])
    }

    @Test func `a read sees one moment, whatever is written meanwhile`() async throws {
        let shop = try await Shop()
        try await shop.note("a", "before")
        let started = Signal()
        let written = Signal()

        let reading = Task {
            try await shop.store.read { transaction in
                let first = try transaction.query("SELECT title FROM notes")[0]["title"]
                started.send()
                written.wait()
                return [first, try transaction.query("SELECT title FROM notes")[0]["title"]]
            }
        }
        await started.received()
        try await shop.rename("a", "after")
        written.send()

        #expect(try await reading.value == ["before", "before"])
        #expect(try await shop.title("a") == "after")
    }

    @Test func `a closed store says so`() async throws {
        let shop = try await Shop()
        await shop.store.close()

        let error = await #expect(throws: StoreError.self) { try await shop.note("a") }
        #expect(error?.code == .closed)
    }

    // MARK: Errors

    @Test func `a create of a row that is there: row_exists`() async throws {
        let shop = try await Shop()
        try await shop.note("a", "kept")

        let error = await code { try await shop.note("a", "again") }

        #expect(error?.code == .rowExists)
        #expect(error?.names == ["id"])
        #expect(try await shop.title("a") == "kept")
    }

    @Test func `a change of a row that is not there: row_missing`() async throws {
        let shop = try await Shop()

        #expect(await code { try await shop.rename("a", "x") }?.code == .rowMissing)
        #expect(
            await code { try await shop.store.write { try $0.delete("notes", row: "a") } }?.code
                == .rowMissing
        )
        #expect(
            await code { try await shop.store.write { try $0.update("notes", row: "a", set: [:]) } }?.code
                == .rowMissing
        )
        #expect(try await shop.store.outbox() == [])
    }

    @Test func `an unknown table and an unknown column are named`() async throws {
        let shop = try await Shop()

        let table = await code { try await shop.store.write { _ = try $0.create("invoices", set: [:]) } }
        let column = await code {
            try await shop.store.write { _ = try $0.create("notes", set: ["titel": "1"]) }
        }

        #expect(table?.code == .unknownTable)
        #expect(table?.message.contains("notes") == true)
        #expect(column?.code == .unknownColumn)
        #expect(column?.names == ["titel"])
    }

    @Test(
        arguments: [
            ("done", .integer(1)), ("likes", "many"), ("likes", .number("1.5")), ("title", .null),
            ("tags", "a"),
            ("photo", "not base64!"), ("score", "high"),
        ] as [(String, JSON)]
    )
    func `a value that does not fit its column: type`(_ column: String, _ value: JSON) async throws {
        let shop = try await Shop()
        var set: JSONObject = ["title": "1"]
        set[column] = value
        let row = set

        let error = await code {
            try await shop.store.write { _ = try $0.create("notes", row: "a", set: row) }
        }

        #expect(error?.code == .type)
        #expect(error?.names == [column])
        #expect(try await shop.title("a") == nil)
    }

    @Test func `a check and a missing parent: check`() async throws {
        let shop = try await Shop()

        let negative = await code {
            try await shop.store.write {
                _ = try $0.create("orders", set: ["branch_id": "B1", "total_idr": -1])
            }
        }
        let orphan = await code {
            try await shop.store.write { transaction in
                _ = try transaction.create(
                    "payments",
                    set: [
                        "branch_id": "B1", "amount_idr": 1,
                        "order_id": "0191b2a0-0000-7000-8000-00000000000a",
                    ]
                )
            }
        }

        #expect(negative?.code == .check)
        #expect(negative?.names == ["total_not_negative"])
        #expect(orphan?.code == .check)
        #expect(try await shop.store.outbox() == [])
    }

    @Test func `rows that are never changed refuse a change: append_only`() async throws {
        let shop = try await Shop()
        let (order, payment) = (
            "0191b2a0-0000-7000-8000-00000000000a", "0191b2a0-0000-7000-8000-00000000000b"
        )
        try await shop.store.write { transaction in
            try transaction.create("orders", row: order, set: ["branch_id": "B1", "total_idr": 1])
            try transaction.create(
                "payments",
                row: payment,
                set: ["branch_id": "B1", "amount_idr": 1, "order_id": .string(order)]
            )
        }

        let error = await code {
            try await shop.store.write { try $0.update("payments", row: payment, set: ["amount_idr": 2]) }
        }

        #expect(error?.code == .appendOnly)
    }

    @Test func `Fieldpost's own tables are reserved, and a query only reads`() async throws {
        let shop = try await Shop()

        let table = await code {
            try await shop.store.write { _ = try $0.create("fieldpost_outbox", set: [:]) }
        }
        let sql = await code {
            try await shop.store.write { _ = try $0.execute("DELETE FROM fieldpost_outbox") }
        }
        let query = await code { try await shop.store.read { _ = try $0.query("DELETE FROM notes") } }

        #expect(table?.code == .reservedTable)
        #expect(sql?.code == .reservedTable)
        #expect(query?.code == .notReadOnly)
    }

    @Test func `a transaction of its own inside a write is a mistake of use`() async throws {
        let shop = try await Shop()

        for sql in ["COMMIT", "BEGIN", "ROLLBACK", "/* x */ commit"] {
            #expect(await code { try await shop.store.write { _ = try $0.execute(sql) } }?.code == .usage)
        }
        try await shop.note("a")
    }

    // MARK: Limits

    @Test func `a transaction of too many operations is refused whole: transaction_too_large`() async throws {
        let shop = try await Shop()
        func write(_ count: Int) async throws {
            try await shop.store.write { transaction in
                for index in 0..<count {
                    try transaction.create("notes", row: "n\(index)", set: ["title": "1"])
                }
            }
        }

        let error = await code { try await write(1_001) }

        #expect(error?.code == .transactionTooLarge)
        #expect(try await shop.store.outbox() == [])
        try await write(1_000)
    }

    @Test func `a transaction of too many bytes is refused whole`() async throws {
        let shop = try await Shop()
        let long = String(repeating: "x", count: 2 << 20)

        let error = await code {
            try await shop.store.write { transaction in
                for row in ["a", "b", "c"] {
                    try transaction.create("notes", row: row, set: ["title": .string(long)])
                }
            }
        }

        #expect(error?.code == .transactionTooLarge)
        #expect(try await shop.title("a") == nil)
    }

    @Test func `an outbox at its limit refuses the next write, until something is settled: outbox_full`()
        async throws
    {
        let shop = try await Shop(outboxLimit: 2)
        try await shop.note("a")
        try await shop.note("b")

        let error = await code { try await shop.note("c") }
        #expect(error?.code == .outboxFull)
        #expect(try await shop.title("c") == nil)

        _ = await shop.engine(ScriptedTransport([.accept])).sync()
        try await shop.note("c")
        #expect(try await shop.title("c") == "Draft")
    }

    // MARK: Opening

    @Test func `a file of a newer app is refused and not one byte of it changes`() async throws {
        let folder = try TemporaryFolder()
        let newer = Schema(version: 2, tables: Samples.shop.tables)
        let store = try await Store.open(at: folder.path("a.db"), schema: newer)
        _ = try await store.write { try $0.create("notes", row: "a", set: ["title": "1"]) }
        await store.close()
        let before = try files(folder)

        let error = await code { _ = try await Store.open(at: folder.path("a.db"), schema: Samples.shop) }

        #expect(error?.code == .newerFormat)
        #expect(try files(folder) == before)
    }

    private func files(_ folder: TemporaryFolder) throws -> [String: Data] {
        var found: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
            found[name] = try Data(contentsOf: folder.url.appending(path: name))
        }
        return found
    }

    @Test func `a file belongs to one account`() async throws {
        let shop = try await Shop()

        try await shop.store.signIn(account: "ayu")

        #expect(await code { try await shop.store.signIn(account: "budi") }?.code == .wrongState)
    }
}

/// Sent once, from anywhere; waited for by a thread or by a task.
private final class Signal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func send() { semaphore.signal() }
    func wait() { semaphore.wait() }

    func received() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                self.semaphore.wait()
                continuation.resume()
            }
        }
    }
}
