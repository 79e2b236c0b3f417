import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct SyncStatusTests {
    private func counts(_ status: SyncStatus) -> [Int] {
        [status.local, status.pending, status.inFlight, status.held, status.failed, status.conflicts]
    }

    @Test func `nothing to do: all changes synced`() async throws {
        let shop = try await Shop()

        let status = try await shop.store.status()

        #expect(status.state == .allSynced)
        #expect(status.sentence == "All changes synced")
        #expect(counts(status) == [0, 0, 0, 0, 0, 0])
        #expect(status.lastSync == nil)
    }

    @Test func `before anyone has signed in, work is local`() async throws {
        let folder = try TemporaryFolder()
        let store = try await Store.open(at: folder.path("a.db"), schema: Samples.shop)
        _ = try await store.write { try $0.create("notes", row: "a", set: ["title": "1"]) }

        #expect(counts(try await store.status()) == [1, 0, 0, 0, 0, 0])
        #expect(try await store.status(of: "a", in: "notes") == .local)
        try await store.signIn(account: "ayu")
        #expect(counts(try await store.status()) == [0, 1, 0, 0, 0, 0])
        #expect(try await store.status(of: "a", in: "notes") == .pending)
        await store.close()
    }

    @Test func `work that waits is counted in words`() async throws {
        let shop = try await Shop()
        try await shop.note("a")
        #expect(try await shop.store.status().sentence == "1 change waiting to be sent")
        try await shop.note("b")

        let status = try await shop.store.status()

        #expect(status.state == .waiting)
        #expect(status.sentence == "2 changes waiting to be sent")
    }

    @Test func `without network it says so, and a success takes it back`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.unreachable("no route")), .accept, .accept])
        let engine = shop.engine(transport)
        for row in ["a", "b", "c"] { try await shop.note(row) }
        _ = await engine.sync()

        let offline = try await shop.store.status()
        shop.clock.advance(by: .seconds(5))
        _ = await engine.sync()
        let online = try await shop.store.status()

        #expect(offline.state == .offline)
        #expect(offline.sentence == "3 changes waiting for network")
        #expect(offline.lastError?.message == "no route")
        #expect(online.state == .allSynced)
        #expect(online.lastError == nil)
        #expect(online.lastSync == shop.clock.now)
    }

    @Test func `on the wire: syncing, and every operation is in one count`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        try await shop.note("a")
        let syncing = Task { await engine.sync() }
        await transport.untilHeld()
        try await shop.note("b")

        let status = try await shop.store.status()
        let items = try await shop.store.outbox().map(\.state)

        #expect(status.state == .syncing)
        #expect(counts(status) == [0, 1, 1, 0, 0, 0])
        #expect(items == [.inFlight, .pending])
        #expect(try await shop.store.status(of: "a", in: "notes") == .inFlight)
        transport.release()
        _ = await syncing.value
        #expect(try await shop.store.status().state == .allSynced)
    }

    @Test func `what a killed process left on the wire is not on the wire`() async throws {
        let shop = try await Shop()
        try await shop.note("a")
        try await shop.store.writer.perform { db, now, _ in
            let lease = try Lease.acquire(db, owner: "2147483646/dead", now: now)!
            _ = try PushPlan.next(db, lease: lease, limits: .init(operations: 9), now: now)
        }

        let status = try await shop.store.status()

        #expect(counts(status) == [0, 1, 0, 0, 0, 0])
        #expect(status.state == .waiting)
        #expect(try await shop.store.outbox().map(\.state) == [.pending])
        #expect(try await shop.store.status(of: "a", in: "notes") == .pending)
    }

    @Test func `what a silent process left on the wire is not on the wire once its lease has run out`()
        async throws
    {
        let shop = try await Shop()
        try await shop.note("a")
        try await shop.store.writer.perform { db, now, _ in
            let lease = try Lease.acquire(db, owner: "unnamed", now: now)!
            _ = try PushPlan.next(db, lease: lease, limits: .init(operations: 9), now: now)
        }
        #expect(try await shop.store.status().inFlight == 1)

        shop.clock.advance(by: .milliseconds(Lease.milliseconds))

        #expect(try await shop.store.status().inFlight == 0)
    }

    @Test func `failed, held and lost work needs attention, and the counts add up`() async throws {
        let shop = try await Shop()
        let bad = try await shop.note("a")
        try await shop.rename("a", "on top")
        let lost = try await shop.note("b")
        try await shop.note("c")
        let transport = ScriptedTransport([
            .each { operation in
                switch operation.id {
                case bad: OperationResult.rejected("no")(operation)
                case lost: OperationResult.conflict(9, row: PushOutcomeTests.row("b", "theirs"))(operation)
                default: OperationResult.retry(60_000)(operation)
                }
            }
        ])
        _ = await shop.engine(transport).sync()

        let status = try await shop.store.status()

        #expect(counts(status) == [0, 1, 0, 1, 1, 1])
        #expect(try await shop.store.outbox().count == 3)
        #expect(status.state == .needsAttention)
        #expect(status.sentence == "2 changes need attention")
        #expect(try await shop.store.status(of: "a", in: "notes") == .failed)
        #expect(try await shop.store.status(of: "b", in: "notes") == .synced)
        #expect(try await shop.store.status(of: "c", in: "notes") == .pending)
    }

    @Test func `an unsent delete is pending, a row that is nowhere is missing`() async throws {
        let shop = try await Shop()
        try await shop.note("a")
        _ = await shop.engine(ScriptedTransport([.accept])).sync()
        try await shop.store.write { try $0.delete("notes", row: "a") }

        #expect(try await shop.store.status(of: "a", in: "notes") == .pending)
        let error = await #expect(throws: FieldpostError.self) {
            try await shop.store.status(of: "x", in: "notes")
        }
        #expect(error?.code == .rowMissing)
    }

    @Test func `every state has a sentence of its own`() {
        let sentences = SyncStatus.State.allCases.map { state in
            var status = SyncStatus()
            (status.state, status.pending, status.failed) = (state, 2, 1)
            return status.sentence
        }

        #expect(Set(sentences).count == SyncStatus.State.allCases.count)
        #expect(!sentences.contains(""))
    }

    @Test func `one change is one change`() {
        var status = SyncStatus()
        (status.state, status.failed) = (.needsAttention, 1)

        #expect(status.sentence == "1 change needs attention")
    }
}
