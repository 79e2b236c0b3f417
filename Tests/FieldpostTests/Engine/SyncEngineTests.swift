import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// The tests that every offline-first client is asked for first, and those of the shell itself.
@Suite struct SyncEngineTests {
    @Test func `timeout then success: the same id, and the outbox is empty`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.accept, .fail(.unreachable("timeout")), .accept])
        let engine = shop.engine(transport)
        try await shop.note("t1")
        _ = await engine.sync()
        try await shop.rename("t1", "Final")

        let first = await engine.sync()
        let waiting = try await shop.store.outbox()
        shop.clock.advance(by: .seconds(120))
        _ = await engine.sync()

        #expect(!first.isOnline)
        #expect(waiting.count == 1)
        #expect(waiting[0].attempts == 0)
        #expect(transport.pushes[1].ids == transport.pushes[2].ids)
        #expect(transport.pushes[1].body == transport.pushes[2].body)
        #expect(try await shop.store.outbox() == [])
    }

    @Test func `a pending title survives a pull that brings the other columns`() async throws {
        let shop = try await Shop()
        let theirs: JSONObject = [
            "id": "t1", "title": "Theirs", "body": "from web", "score": .null, "done": false, "photo": .null,
            "meta": .null, "tags": [], "likes": 0,
        ]
        let page = PullPage(
            changes: [PulledChange(table: "notes", row: "t1", version: 5, set: theirs)],
            cursor: "c5",
            more: false,
            serverTime: shop.clock.now
        )
        let transport = ScriptedTransport(
            [.accept, .retry(afterMilliseconds: 60_000)],
            pulls: [
                .page(PullPage(changes: [], cursor: "c1", more: false, serverTime: shop.clock.now)),
                .page(page),
            ]
        )
        let engine = shop.engine(transport)
        try await shop.note("t1")
        _ = await engine.sync()
        try await shop.rename("t1", "Mine")

        let report = await engine.sync()

        #expect(report.pulled == 1)
        #expect(try await shop.title("t1") == "Mine")
        let body = try await shop.store.read { try $0.query("SELECT body FROM notes")[0]["body"] }
        #expect(body == "from web")
    }

    @Test func `a lost acknowledgement is not applied twice`() async throws {
        let shop = try await Shop()
        let server = try MockServer(schema: Samples.shop)
        let engine = shop.engine(server)
        _ = try await shop.store.write {
            try $0.create("notes", row: "t1", set: ["title": "Draft", "likes": 1])
        }
        _ = await engine.sync()
        try await shop.store.write { _ = try $0.execute("UPDATE notes SET likes = likes + 1") }
        server.loseAnswers()

        let lost = await engine.sync()
        let again = await engine.sync()

        #expect(!lost.isOnline)
        #expect(again.pushed == 1)
        #expect(try server.query("SELECT likes FROM notes") == [[2]])
        #expect(try await shop.store.status().state == .allSynced)
    }

    @Test func `three syncs at once make one push`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.accept])
        let engine = shop.engine(transport)
        try await shop.note("t1")

        let reports = await withTaskGroup(of: SyncReport.self) { group in
            for _ in 0..<3 { group.addTask { await engine.sync() } }
            return await group.reduce(into: []) { $0.append($1) }
        }

        #expect(transport.pushes.count == 1)
        #expect(transport.unscriptedCalls == 0)
        #expect(reports.map(\.isOnline) == [true, true, true])
    }

    @Test func `a call during a run is answered by a later run`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        try await shop.note("t1")
        let first = Task { await engine.sync() }
        await transport.untilHeld()
        try await shop.note("t2")

        let second = await call(engine)
        // Turns on an actor come in order: once this has had its turn, the call above has had its own.
        await engine.setBackoff(Backoff())
        transport.release()

        _ = await first.value
        _ = await second.value
        #expect(transport.pulls.count == 2)
        #expect(try await shop.store.status().state == .allSynced)
    }

    private func call(_ engine: isolated SyncEngine) -> Task<SyncReport, Never> {
        Task { await engine.sync() }
    }

    @Test func `a rejected operation is set aside and later ones go through`() async throws {
        let shop = try await Shop()
        let bad = try await shop.note("bad")
        try await shop.note("good")
        let transport = ScriptedTransport([
            .each { $0.id == bad ? OperationResult.rejected("nope")($0) : OperationResult.applied(1)($0) }
        ])

        let report = await shop.engine(transport).sync()

        #expect(report.pushed == 1)
        #expect(report.rejected == 1)
        #expect(try await shop.store.outbox().map(\.operation) == [bad])
        #expect(try await shop.store.status(of: "bad", in: "notes") == .failed)
        #expect(try await shop.store.status(of: "good", in: "notes") == .synced)
        #expect(try await shop.title("bad") == "Draft")
    }
}
