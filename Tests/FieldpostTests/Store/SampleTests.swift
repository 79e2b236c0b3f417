import Fieldpost
import FieldpostTesting
import Testing

// The sample of the article "Testing your app": an app's own tests of a bad day on the network, with a store in memory,
// a clock that stands still and a server that follows a script.

private struct Note: SyncedRecord, Equatable {
    var id: String
    var title: String
    var notes = ""
}

private let schema = Schema(version: 1) {
    Table("notes") {
        Column("id", .text).primaryKey()
        Column("title", .text)
        Column("notes", .text).defaults(to: "")
    }
}

@Suite struct SampleTests {
    let clock = ManualClock()
    let store: Store

    init() async throws {
        var configuration = Store.Configuration()
        configuration.environment = clock.environment
        store = try await Store.inMemory(schema, configuration: configuration)
        try await store.signIn(account: "ani")
    }

    private func engine(_ transport: some Transport) -> SyncEngine {
        SyncEngine(store: store, transport: transport) { _ in "token" }
    }

    @Test func `a timeout, then success, sends the same id twice and leaves the outbox empty`() async throws {
        let transport = ScriptedTransport([.fail(.unreachable("timeout")), .accept])
        try await store.insert(Note(id: "t1", title: "Draft"))

        _ = await engine(transport).sync()
        #expect(try await store.status().pending == 1)
        clock.advance(by: .seconds(120))
        _ = await engine(transport).sync()

        #expect(try await store.status().state == .allSynced)
        #expect(transport.pushes.count == 2)
        #expect(transport.pushes[0].ids == transport.pushes[1].ids)
    }

    @Test func `an unsent title survives a pull, which brings the other columns`() async throws {
        let theirs: JSONObject = ["id": "t1", "title": "Theirs", "notes": "from web"]
        let draft: JSONObject = ["id": "t1", "title": "Draft", "notes": ""]
        func page(_ row: JSONObject, _ version: Int64) -> PullPage {
            PullPage(
                changes: [PulledChange(table: "notes", row: "t1", version: version, set: row)],
                cursor: "\(version)",
                more: false,
                settled: [],
                serverTime: clock.now
            )
        }
        _ = await engine(ScriptedTransport(pulls: [.page(page(draft, 1))])).sync()
        try await store.update(Note.self, "t1") { $0.title = "Mine" }

        let transport = ScriptedTransport(
            [.retry(afterMilliseconds: 60_000)],
            pulls: [.page(page(theirs, 5))]
        )
        _ = await engine(transport).sync()

        #expect(try await store.fetchOne(Note.self, "t1") == Note(id: "t1", title: "Mine", notes: "from web"))
    }

    @Test func `a lost acknowledgement is not applied twice`() async throws {
        let server = try MockServer(schema: schema)
        let engine = SyncEngine(store: store, transport: server) { _ in MockServer.everyScope }
        try await store.insert(Note(id: "t1", title: "Draft"))
        server.loseAnswers()

        let lost = await engine.sync()
        let again = await engine.sync()

        #expect(!lost.isOnline && again.pushed == 1)
        #expect(try server.query("select title from notes") == [["Draft"]])
    }

    @Test func `three calls at once push once`() async throws {
        let transport = ScriptedTransport([.accept])
        let engine = engine(transport)
        try await store.insert(Note(id: "t1", title: "Draft"))

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 { group.addTask { _ = await engine.sync() } }
        }

        #expect(transport.pushes.count == 1 && transport.unscriptedCalls == 0)
    }

    @Test func `a rejected change is set aside, and later ones go through`() async throws {
        let bad = Note(id: "bad", title: "x"), good = Note(id: "good", title: "y")
        try await store.insert(bad)
        let rejected = try #require(try await store.outbox().first).operation
        try await store.insert(good)
        let transport = ScriptedTransport([
            .each {
                $0.id == rejected ? OperationResult.rejected("nope")($0) : OperationResult.applied(1)($0)
            }
        ])

        _ = await engine(transport).sync()

        #expect(try await store.status(of: bad) == .failed)
        #expect(try await store.status(of: good) == .synced)
    }

    @Test func `the clock a day ahead neither stalls nor loses anything`() async throws {
        let transport = ScriptedTransport([.fail(.unreachable("tunnel")), .accept])
        try await store.insert(Note(id: "t1", title: "Draft"))
        _ = await engine(transport).sync()

        clock.set(to: clock.now.adding(milliseconds: -86_400_000))
        _ = await engine(transport).sync()

        #expect(try await store.status().sentence == "All changes synced")
    }
}
