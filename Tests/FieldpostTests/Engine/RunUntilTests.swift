import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// A run in the time that a system grants in the background.
@Suite struct RunUntilTests {
    @Test
    func `with a server that does not answer, the run stops a second before the deadline and nothing failed`()
        async throws
    {
        let shop = try await Shop(inMemory: true)
        let server = try RawServer([])
        let engine = shop.engine(
            HTTPTransport(
                server: try #require(URL(string: "http://127.0.0.1:\(server.port)")),
                environment: shop.clock.environment
            )
        )
        try await shop.note("a")
        let deadline = shop.clock.now.adding(milliseconds: 6_000)
        let run = Task { await engine.run(until: deadline) }
        await server.untilRequests(1)

        shop.clock.advance(by: .seconds(5))
        let report = await run.value

        #expect(report.end == .stopped)
        #expect(shop.clock.now < deadline)
        let status = try await shop.store.status()
        #expect(status.state == .waiting && status.inFlight == 0 && status.lastError == nil)
        #expect(try await shop.store.outbox().map(\.attempts) == [0])
        let lease = try await shop.store.read {
            try $0.query("SELECT owner IS NULL AS free, failures, next_run_at FROM fieldpost_lease")[0].values
        }
        #expect(lease == [1, 0, 0])
        await server.stop()
    }

    @Test func `what was cut goes again with the same bytes`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        try await shop.note("a")
        let run = Task { await engine.run(until: shop.clock.now.adding(milliseconds: 30_000)) }
        await transport.untilHeld()
        shop.clock.advance(by: .seconds(29))
        _ = await run.value

        let report = await engine.sync()

        #expect(report.pushed == 1)
        #expect(transport.pushes[0].body == transport.pushes[1].body)
    }

    @Test func `a run that is over in time says what it did, ignoring the backoff`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.fail(.busy(retryAfterSeconds: 86_400)), .accept])
        let engine = shop.engine(transport)
        try await shop.note("a")
        _ = await engine.sync()

        let report = await engine.run(until: shop.clock.now.adding(milliseconds: 30_000))

        #expect(report.pushed == 1 && report.end == .done)
        #expect(shop.clock.sleeperCount == 0)
    }

    @Test func `a deadline that has come sends nothing`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport()

        let report = await shop.engine(transport).run(until: shop.clock.now)

        #expect(report.end == .stopped)
        #expect(transport.pulls.isEmpty)
    }

    @Test func `a person who waits for the same run is not cut off by the deadline`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.hold(.accept), .hold(.accept)])
        let engine = shop.engine(transport)
        try await shop.note("a")
        let first = Task { await engine.sync() }
        await transport.untilHeld()
        let person = Task { await engine.sync() }
        let background = Task { await engine.run(until: shop.clock.now.adding(milliseconds: 30_000)) }
        await shop.clock.untilSleeping()
        shop.clock.advance(by: .seconds(29))
        let cut = await background.value

        transport.release()

        #expect(cut.end == .stopped)
        #expect(await first.value.pushed == 1)
        #expect(await person.value.end == .done)
    }
}
