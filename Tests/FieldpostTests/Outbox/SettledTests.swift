import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// An app waits for what becomes of one of its operations.
@Suite struct SettledTests {
    /// Begins to wait, and returns once the waiting watches the file.
    private func waiting(_ shop: Shop, _ id: OperationID) async throws -> Task<Outcome, any Error> {
        let handle = shop.store.operation(id)
        let runs = shop.store.watchRunCount
        let task = Task { try await handle.settled() }
        while shop.store.watchRunCount == runs { await Task.yield() }
        return task
    }

    @Test func `one that is applied answers who waits, however many, and who asks later`() async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let waiting = [try await waiting(shop, id), try await waiting(shop, id)]

        _ = await shop.engine(ScriptedTransport([.accept])).sync()

        for task in waiting { #expect(try await task.value.status == "applied") }
        let later = try await shop.store.settled(id)
        #expect(later.status == "applied")
        #expect(later.version != nil)
        #expect(later.settledAt == shop.clock.now)
        #expect(try await shop.store.outcome(of: id) == later)
    }

    @Test func `a retry and a lost answer settle nothing`() async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let waiting = try await waiting(shop, id)
        let transport = ScriptedTransport([.retry(afterMilliseconds: 5), .acceptAndLoseAnswer, .accept])
        let engine = shop.engine(transport)

        for _ in 1...2 {
            _ = await engine.sync()
            #expect(try await shop.store.outcome(of: id) == nil)
            #expect(try await shop.store.outbox().map(\.attempts) == [1])
        }
        _ = await engine.sync()

        #expect(try await waiting.value.status == "applied")
        #expect(transport.pushes.count == 3)
    }

    @Test func `a dead letter counts as settled, and says why`() async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let waiting = try await waiting(shop, id)

        _ = await shop.engine(ScriptedTransport([.reject(code: "not_today")])).sync()

        let outcome = try await waiting.value
        #expect(outcome.status == "rejected")
        #expect(outcome.failure?.code == "not_today")
        // It is still in the outbox, so the journal has nothing of it.
        #expect(try await shop.store.outcome(of: id) == nil)

        let ids = try await shop.store.retry(id)
        let again = try await self.waiting(shop, ids[0])
        _ = await shop.engine(ScriptedTransport([.accept])).sync()
        #expect(try await again.value.status == "applied")
    }

    @Test func `a conflict and a discarded change are outcomes too`() async throws {
        let shop = try await Shop()
        let lost = try await shop.note("a")
        let waiting = try await waiting(shop, lost)
        _ = await shop.engine(ScriptedTransport([.conflict(row: nil, version: 4)])).sync()
        #expect(try await waiting.value.status == "conflict")

        let given = try await shop.note("b")
        let other = try await self.waiting(shop, given)
        try await shop.store.discard(given)
        #expect(try await other.value.status == "discarded")
    }

    @Test func `a held operation waits on`() async throws {
        let shop = try await Shop()
        let first = try await shop.note("a")
        let second = try await shop.rename("a", "later")
        let waiting = try await waiting(shop, second)

        _ = await shop.engine(
            ScriptedTransport([
                .each { operation in
                    operation.id == first
                        ? OperationResult.rejected("no")(operation)
                        : OperationResult.blocked(by: first)(operation)
                }
            ])
        ).sync()
        #expect(try await shop.store.outbox().map(\.state) == [.failed, .held])
        try await shop.store.discard(first, dependants: true)

        #expect(try await waiting.value.status == "discarded")
    }

    @Test func `nobody waits for an operation that there is not`() async throws {
        let shop = try await Shop()
        let id = try #require(OperationID("0191b2a0-0000-7000-8000-0000000000ff"))

        let error = await #expect(throws: FieldpostError.self) { try await shop.store.settled(id) }

        #expect(error?.code == .operationMissing)
    }

    @Test func `waiting ends when it is cancelled, and when the store is closed`() async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let cancelled = try await waiting(shop, id)
        let closed = try await waiting(shop, id)

        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await shop.store.close()

        let error = await #expect(throws: StoreError.self) { try await closed.value }
        #expect(error?.code == .closed)
    }

    // MARK: The journal

    @Test func `the journal keeps the last ten thousand successes, and everything that was none`() throws {
        let device = try Device()
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        try device.push(OperationResult.rejected("no"))
        let others = 12_000
        try device.db.connection.transaction(.immediate) {
            try device.db.connection.execute(
                """
                INSERT INTO fieldpost_outcomes (seq, id, status)
                WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < \(others))
                SELECT i, 'x' || i,
                  CASE i WHEN 10 THEN 'conflict' WHEN 11 THEN 'discarded' WHEN 12 THEN 'rejected' ELSE 'applied' END FROM n;
                UPDATE sqlite_sequence SET seq = \(others) WHERE name = 'fieldpost_outbox';
                INSERT INTO fieldpost_conflicts (operation, tbl, row, mine) VALUES ('x10', 'notes', 'z', '{}');
                """
            )
        }
        try device.write("INSERT INTO notes (id, title) VALUES ('b', '1')")

        try device.push(OperationResult.applied(1))

        #expect(
            try device.scalar("SELECT count(*) FROM fieldpost_outcomes WHERE status = 'applied'") == 10_000
        )
        let kept = try device.db.connection.query("SELECT seq FROM fieldpost_outcomes ORDER BY seq LIMIT 3")
        #expect(kept.map { $0[0] } == [10, 11, 12])
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_conflicts") == 1)
        #expect(try device.states() == [.failed])
    }
}
