import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

@Suite struct MockServerTests {
    @Test func `two stores meet at the server`() async throws {
        let server = try MockServer(schema: Samples.shop)
        let first = try await Shop(seed: 1)
        let second = try await Shop(seed: 2)
        try await first.note("n1", "from the first")

        _ = await first.engine(server).sync()
        let report = await second.engine(server).sync()

        #expect(report.pulled == 1)
        #expect(try await second.title("n1") == "from the first")
        #expect(try server.query("SELECT count(*) FROM notes") == [[1]])
    }

    @Test func `a token reaches only its scopes`() async throws {
        let server = try MockServer(schema: Samples.shop)
        let shop = try await Shop()
        let order = UUIDText.version7(at: shop.clock.now, using: &SeededRandom.shared)
        _ = try await shop.store.write { transaction in
            try transaction.create("orders", row: order, set: ["branch_id": "B1", "total_idr": 5])
        }

        let report = await shop.engine(server) { _ in "B2" }.sync()

        #expect(report.rejected == 1)
        #expect(try await shop.store.outbox(.failed).map(\.failure?.code) == ["scope"])
    }

    @Test func `an unscripted push fails by name`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport()
        try await shop.note("n1")

        let report = await shop.engine(transport).sync()

        #expect(report.reason.contains("unscripted"))
        #expect(transport.unscriptedCalls == 1)
    }
}

extension SeededRandom {
    /// Fresh numbers for keys that a test only needs to be different.
    static var shared: SeededRandom {
        get { SeededRandom(seed: 99) }
        set {}
    }
}
