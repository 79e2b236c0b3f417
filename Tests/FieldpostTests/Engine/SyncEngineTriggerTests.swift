import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// Everything that starts a run, through the engine itself.
@Suite struct SyncEngineTriggerTests {
    private static func isShort(_ duration: Duration) -> Bool { duration <= .seconds(3) }
    private static func isLong(_ duration: Duration) -> Bool { duration > .seconds(3) }

    /// An engine that runs until it is stopped.
    private struct Running {
        let task: Task<Void, any Error>

        init(_ engine: SyncEngine) { task = Task { try await engine.run() } }

        func stop() async {
            task.cancel()
            _ = await task.result
        }
    }

    // MARK: Writes

    @Test func `a write starts a run a tenth of a second later, with nobody else asking for one`()
        async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.accept])
        let running = Running(shop.engine(transport))
        await shop.clock.untilSleeping(for: Self.isLong)

        try await shop.note("a")
        await shop.clock.untilSleeping { $0 == .milliseconds(100) }
        try await shop.rename("a", "b")
        let early = transport.pushes.count
        shop.clock.advance(by: .milliseconds(100))
        await transport.untilPushes(1)

        #expect(early == 0)
        #expect(transport.pushes[0].ids.count == 2)
        await running.stop()
    }

    @Test func `what a run settles starts no other`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.accept])
        try await shop.note("a")
        let running = Running(shop.engine(transport))

        await shop.clock.untilSleeping()

        #expect(shop.clock.sleeps == [.seconds(300)])
        #expect(transport.pulls.count == 1)
        await running.stop()
    }

    @Test func `a retry by hand starts a run`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.reject(code: "no"), .accept])
        let operation = try await shop.note("a")
        let running = Running(shop.engine(transport))
        await shop.clock.untilSleeping(for: Self.isLong)

        try await shop.store.retry(operation)
        await shop.clock.untilSleeping { $0 == .milliseconds(100) }
        shop.clock.advance(by: .milliseconds(100))
        await transport.untilPushes(2)

        #expect(transport.pushes.count == 2)
        await running.stop()
    }

    @Test func `a write by another process starts a run`() async throws {
        let folder = try TemporaryFolder()
        let store = try await Store.open(at: folder.path("shop.db"), schema: Samples.shop)
        try await store.signIn(account: "ayu")
        let transport = ScriptedTransport([.accept])
        let running = Running(SyncEngine(store: store, transport: transport) { _ in "*" })
        await transport.untilPulls(1)

        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        shell.arguments = [
            "sqlite3", "-cmd", ".timeout 60000", folder.path("shop.db"),
            "INSERT INTO notes (id, title) VALUES ('a', 'Draft')",
        ]
        shell.standardInput = FileHandle.nullDevice
        try shell.run()
        shell.waitUntilExit()
        try #require(shell.terminationStatus == 0)
        await transport.untilPushes(1)

        #expect(transport.pushes[0].groups[0].operations[0].row == "a")
        await running.stop()
        await store.close()
    }

    // MARK: Hints

    @Test func `a hint alone starts a run: one waiting operation, a far-off backoff, no new write`()
        async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.fail(.busy(retryAfterSeconds: 86_400)), .accept])
        try await shop.note("a")
        let running = Running(shop.engine(transport))
        await shop.clock.untilSleeping(for: Self.isLong)

        shop.clock.connectivity.send(ConnectivityHint([.wifi]))
        await shop.clock.untilSleeping(for: Self.isShort)
        let early = transport.pushes.count
        shop.clock.advance(by: .seconds(3))
        await transport.untilPulls(1)

        #expect(early == 1)
        #expect(transport.pushes.count == 2)
        #expect(try await shop.store.status().state == .allSynced)
        await running.stop()
    }

    @Test func `after an end without a network the probe decides before anything else is sent`() async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.fail(.unreachable("no")), .accept], probes: [false, true])
        try await shop.note("a")
        let engine = shop.engine(transport)
        var steady = Backoff()
        steady.jitter = .none
        steady.baseMilliseconds = 200_000
        await engine.setBackoff(steady)
        let running = Running(engine)
        await shop.clock.untilSleeping(for: Self.isLong)

        // A portal: there is a network, but not to the server.
        shop.clock.connectivity.send(ConnectivityHint([.wifi]))
        await shop.clock.untilSleeping(for: Self.isShort)
        shop.clock.advance(by: .seconds(3))
        await shop.clock.untilSleeping(for: Self.isLong)
        let behindPortal = (transport.probes.count, transport.pushes.count)
        let state = try await shop.store.status().state
        shop.clock.connectivity.send(ConnectivityHint([.cellular], isMetered: true))
        await shop.clock.untilSleeping(for: Self.isShort)
        shop.clock.advance(by: .seconds(3))
        await transport.untilPulls(1)

        #expect(behindPortal == (1, 1))
        #expect(state == .offline)
        #expect(transport.probes.count == 2 && transport.pushes.count == 2)
        #expect(transport.probes.allSatisfy { $0.token == nil })
        #expect(transport.probes[0].nonce != transport.probes[1].nonce)
        await running.stop()
    }

    @Test func `losing every network while idle starts nothing`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport()
        let engine = shop.engine(transport)
        let running = Running(engine)
        await shop.clock.untilSleeping(for: Self.isLong)
        shop.clock.connectivity.send(ConnectivityHint([.wifi]))
        await shop.clock.untilSleeping(for: Self.isShort)

        shop.clock.connectivity.send(ConnectivityHint())
        await shop.clock.untilSleeping(for: Self.isLong)
        shop.clock.advance(by: .seconds(200))

        // Asked for by hand, so that it is known that nothing was under way before.
        _ = await engine.sync()
        #expect(transport.pulls.count == 2 && transport.probes.isEmpty)
        await running.stop()
    }

    @Test func `a day without a network and a thousand waiting: at most one probe in each five minutes`()
        async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport(
            [.fail(.unreachable("offline"))],
            probes: Array(repeating: false, count: 2_000)
        )
        for index in 0..<1_000 { try await shop.note("\(index)") }
        let running = Running(shop.engine(transport))

        let start = shop.clock.now.milliseconds
        var wakes = 0
        while true {
            await shop.clock.untilSleeping()
            let pause = try #require(shop.clock.sleeps.last)
            if shop.clock.now.milliseconds - start + Int64(pause / .milliseconds(1)) > 86_400_000 { break }
            shop.clock.advance(by: pause)
            wakes += 1
            await shop.clock.untilSlept(wakes + 1)
        }

        // A day has 288 times five minutes; the nine delays before the longest are shorter.
        #expect((280...297).contains(wakes))
        #expect(transport.probes.count == wakes)
        #expect(transport.pushes.count == 1)
        let status = try await shop.store.status()
        #expect(status.pending == 1_000 && status.state == .offline)
        await running.stop()
    }

    // MARK: Timers

    @Test func `the foreground forgets a far-off backoff`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.fail(.busy(retryAfterSeconds: 86_400)), .accept])
        try await shop.note("a")
        let engine = shop.engine(transport)
        let running = Running(engine)
        await shop.clock.untilSleeping()

        engine.foreground()
        await transport.untilPushes(2)

        #expect(transport.pushes[0].ids == transport.pushes[1].ids)
        await running.stop()
    }

    @Test func `after a restart the timer works alone, however far off its time is`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.busy(retryAfterSeconds: 3_600)), .accept])
        try await shop.note("a")
        _ = await shop.engine(transport).sync()
        await shop.store.close()
        var configuration = Store.Configuration()
        configuration.environment = shop.clock.environment
        let store = try await Store.open(at: shop.path, schema: Samples.shop, configuration: configuration)
        let running = Running(SyncEngine(store: store, transport: transport) { _ in "*" })

        for _ in 0..<11 {
            await shop.clock.untilSleeping { $0 == .seconds(300) }
            shop.clock.advance(by: .seconds(300))
        }
        await shop.clock.untilSleeping { $0 == .seconds(300) }
        let early = transport.pushes.count
        shop.clock.advance(by: .seconds(300))
        await transport.untilPushes(2)

        #expect(early == 1)
        await running.stop()
        await store.close()
    }

    @Test(arguments: [-86_400_000, 86_400_000] as [Int64])
    func `a clock that jumps by a day neither stalls the timer nor makes it race`(_ jump: Int64) async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.fail(.busy(retryAfterSeconds: 120)), .accept])
        try await shop.note("a")
        let running = Running(shop.engine(transport))
        await shop.clock.untilSleeping()

        shop.clock.set(to: shop.clock.now.adding(milliseconds: jump))
        shop.clock.advance(by: .seconds(120))
        if jump < 0 {
            // Set back, the delay is counted once more from the time at which that was noticed.
            await shop.clock.untilSlept(2)
            shop.clock.advance(by: .seconds(120))
        }
        await transport.untilPulls(1)

        #expect(transport.pushes.count == 2)
        await running.stop()
    }

    @Test func `after a week asleep one run catches up, not one for each pause missed`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport([.accept])
        let running = Running(shop.engine(transport))
        await shop.clock.untilSleeping()

        shop.clock.advance(by: .seconds(7 * 86_400))
        await shop.clock.untilSlept(2)

        #expect(transport.pulls.count == 2)
        #expect(shop.clock.sleeps == [.seconds(300), .seconds(300)])
        await running.stop()
    }
}
