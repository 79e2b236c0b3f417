import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// An app that runs with no backend.
@Suite struct MockTransportTests {
    private func mock(_ shop: Shop, refusal: @escaping @Sendable (Operation) -> String? = { _ in nil })
        -> MockTransport
    {
        MockTransport(
            schema: Samples.shop,
            fixtures: ["notes": [["id": "n1", "title": "Buy milk"]]],
            environment: shop.clock.environment,
            refusal: refusal
        )
    }

    @Test func `fixtures arrive in the app, and its work arrives in the mock`() async throws {
        let shop = try await Shop()
        let mock = mock(shop)
        let engine = shop.engine(mock)

        #expect(await engine.sync().pulled == 1)
        try await shop.note("n2", "Wax")
        try await shop.rename("n1", "Buy tea")
        #expect(await engine.sync().pushed == 2)

        #expect(try await shop.title("n1") == "Buy tea")
        #expect(mock.rows("notes").mapValues { $0["title"] } == ["n1": "Buy tea", "n2": "Wax"])
        #expect(try await shop.store.status().state == .allSynced)
    }

    @Test func `a lost answer does nothing twice`() async throws {
        let shop = try await Shop()
        let mock = mock(shop)
        let engine = shop.engine(mock)
        _ = await engine.sync()
        try await shop.store.write { try $0.execute("UPDATE notes SET likes = likes + 1 WHERE id = 'n1'") }
        mock.loseAnswers()

        #expect(await !engine.sync().isOnline)
        #expect(await engine.sync().pushed == 1)

        #expect(mock.rows("notes")["n1"]?["likes"] == 1)
    }

    @Test func `each request takes as long as it is told to`() async throws {
        let shop = try await Shop()
        let mock = mock(shop)
        mock.setLatency(.milliseconds(300))
        let engine = shop.engine(mock)

        async let report = engine.sync()
        await shop.clock.untilSleeping()
        shop.clock.advance(by: .milliseconds(300))

        #expect(await report.pulled == 1)
        #expect(shop.clock.sleeps == [.milliseconds(300)])
    }

    @Test func `failures and refusals are what the app would see of a real server`() async throws {
        let shop = try await Shop()
        let mock = mock(shop) { $0.row == "n3" ? "no_room" : nil }
        let engine = shop.engine(mock)
        mock.fail([.unauthenticated, .unauthenticated])
        #expect(await !engine.sync().reason.isEmpty)
        #expect(try await shop.store.status().state == .needsSignIn)

        mock.setOffline(true)
        #expect(await !engine.sync().isOnline)

        mock.setOffline(false)
        let operation = try await shop.note("n3", "Too much")
        #expect(await engine.sync().rejected == 1)
        #expect(try await shop.store.outboxItem(operation)?.state == .failed)
        #expect(mock.rows("notes")["n3"] == nil)
    }

    @Test func `a mock that started anew gives the app its fixtures again`() async throws {
        let shop = try await Shop()
        _ = await shop.engine(mock(shop)).sync()
        let another = mock(shop)
        another.put(["id": "n9", "title": "New"], key: "n9", in: "notes")

        _ = await shop.engine(another).sync()

        #expect(try await shop.title("n9") == "New")
    }
}
