import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// The local file fails while a run is under way.
@Suite struct StoreFailureTests {
    /// Makes every statement that writes fail, or none.
    private func fail(_ shop: Shop, _ code: StoreError.Code?) async throws {
        try await shop.store.writer.perform { db, _, _ in
            guard let code else { return db.connection.willStep = nil }
            db.connection.willStep = { sql throws(StoreError) in
                if !sql.hasPrefix("SELECT") { throw StoreError(code, "The test says so.") }
            }
        }
    }

    @Test(arguments: [StoreError.Code.full, .ioError, .busy])
    func `a file that cannot be written when the answer comes says so, and nothing is on the wire`(
        code: StoreError.Code
    ) async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        var statuses = shop.store.statusUpdates.makeAsyncIterator()
        _ = try await statuses.next()
        async let running = engine.sync()
        await transport.untilHeld()
        try await fail(shop, code)

        transport.release()
        let report = await running

        #expect(report.reason.hasPrefix("the local store failed"))
        #expect(report.storeFailure == code)
        #expect(report.pushed == 0)
        let status = try await shop.store.status()
        #expect(status.state == .storeFailed)
        #expect(status.lastError?.code == "storeFailed")
        #expect(status.pending == 1 && status.inFlight == 0)
        while let update = try await statuses.next(), update != status {}

        // The disk has room again, or the other program is done.
        try await fail(shop, nil)
        #expect(await engine.sync().pushed == 1)
        #expect(try await shop.store.settled(id).status == "applied")
        #expect(try await shop.store.status().state == .allSynced)
        while let update = try await statuses.next(), update.state != .allSynced {}
        #expect(transport.pushes[0].body == transport.pushes[1].body)
    }

    @Test func `a failure that passed by itself is written down in the file, for other programs`()
        async throws
    {
        let shop = try await Shop()
        try await shop.note("a")
        let transport = ScriptedTransport([.hold(.accept)])
        let engine = shop.engine(transport)
        async let running = engine.sync()
        await transport.untilHeld()
        let isFirst = Locked(true)
        try await shop.store.writer.perform { db, _, _ in
            db.connection.willStep = { _ throws(StoreError) in
                let fails = isFirst.withLock { first in
                    defer { first = false }
                    return first
                }
                if fails { throw StoreError(.ioError, "The test says so.") }
            }
        }

        transport.release()
        _ = await running

        let other = try await Store.open(at: shop.path)
        let status = try await other.status()
        #expect(status.state == .storeFailed)
        #expect(status.inFlight == 0)
        await other.close()
    }

    @Test func `a file that another program has locked is given up after the wait, and named so`()
        async throws
    {
        let shop = try await Shop()
        try await shop.note("a")
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        async let running = engine.sync()
        await transport.untilHeld()
        let other = try Connection(path: shop.path, mode: .readWrite)
        try other.run("BEGIN IMMEDIATE")
        try await shop.store.writer.perform { db, _, _ in try db.connection.run("PRAGMA busy_timeout = 0") }

        transport.release()
        let report = await running

        #expect(report.storeFailure == .busy)
        #expect(try await shop.store.status().state == .storeFailed)
        try other.run("ROLLBACK")
        other.close()
        #expect(await engine.sync().pushed == 1)
        #expect(try await shop.store.status().state == .allSynced)
    }
}
