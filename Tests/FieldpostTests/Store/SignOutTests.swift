import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// Someone signs out while another part of the app is in the middle of a sync.
@Suite struct SignOutTests {
    private func page(_ shop: Shop) -> ScriptedTransport.PullLine {
        let change = PulledChange(table: "notes", row: "theirs", version: 3, set: ["title": "words"])
        var page = PullPage(changes: [change], cursor: "c", more: false, serverTime: shop.clock.now)
        page.account = "ayu-at-server"
        return .page(page)
    }

    /// A second use of the shop's file in this process.
    private func second(_ shop: Shop) async throws -> Store {
        var configuration = Store.Configuration()
        configuration.environment = shop.clock.environment
        return try await Store.open(at: shop.path, schema: Samples.shop, configuration: configuration)
    }

    @Test func `a page that was on its way does not come into an emptied file, nor bind it`() async throws {
        let shop = try await Shop()
        let other = try await second(shop)
        let transport = ScriptedTransport(pulls: [.hold(page(shop))])
        let engine = SyncEngine(store: other, transport: transport) { _ in "t" }
        async let running = engine.sync()
        await transport.untilHeld()

        try await shop.store.signOut(.discard)
        transport.release()
        let report = await running

        #expect(report.pulled == 0)
        #expect(try await other.read { try $0.query("SELECT id FROM notes") } == [])
        try await other.signIn(account: "budi")
        #expect(try await other.writer.perform { db, _, _ in try FileAccount(db).boundTo() } == nil)
        await other.close()
    }

    @Test(arguments: [SignOutPolicy.keep, .discard])
    func `an answer that was on its way settles nothing`(policy: SignOutPolicy) async throws {
        let shop = try await Shop()
        let other = try await second(shop)
        try await shop.note("a")
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = SyncEngine(store: other, transport: transport) { _ in "t" }
        async let running = engine.sync()
        await transport.untilHeld()

        try await shop.store.signOut(policy)
        transport.release()
        let report = await running

        #expect(report.pushed == 0)
        #expect(try await other.status().inFlight == 0)
        #expect(try await other.outbox().count == (policy == .keep ? 1 : 0))
        // Nothing goes before someone has signed in, and then with the same bytes.
        #expect(await engine.sync().pushed == 0)
        try await other.signIn(account: "ayu")
        #expect(await engine.sync().pushed == (policy == .keep ? 1 : 0))
        #expect(Set(transport.pushes.map(\.body)).count == 1)
        await other.close()
    }

    @Test func `a refused sign-out changes nothing, also for a run that is under way`() async throws {
        let shop = try await Shop()
        try await shop.note("a")
        let transport = ScriptedTransport([.hold(.accept)])
        let engine = shop.engine(transport)
        async let running = engine.sync()
        await transport.untilHeld()

        let error = await #expect(throws: FieldpostError.self) { try await shop.store.signOut() }
        transport.release()

        #expect(error?.message.hasPrefix("1 change is not on the server yet") == true)
        #expect(await running.pushed == 1)
    }
}
