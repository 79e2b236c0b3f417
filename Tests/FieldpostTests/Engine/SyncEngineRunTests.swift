import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// The shell: triggers, pauses, tokens, cancellation.
@Suite struct SyncEngineRunTests {
    // MARK: Pauses

    @Test func `a running engine asks once, sleeps, and asks again only when the pause is over`() async throws
    {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport()
        let engine = shop.engine(transport)
        let running = Task { try await engine.run() }

        for round in 1...4 {
            await shop.clock.untilSleeping()
            #expect(transport.pulls.count == round)
            shop.clock.advance(by: .seconds(300))
            await transport.untilPulls(round + 1)
        }

        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
    }

    @Test func `a poke starts a run, again and again`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport()
        let engine = shop.engine(transport)
        let running = Task { try await engine.run() }

        for round in 1...4 {
            await shop.clock.untilSleeping()
            #expect(transport.pulls.count == round)
            engine.poke()
            await transport.untilPulls(round + 1)
        }

        running.cancel()
        _ = await running.result
    }

    @Test func `a request carries no more operations than the largest may`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport(Array(repeating: .accept, count: 20))
        let engine = shop.engine(transport)
        for number in 0..<30 { try await shop.note("n\(number)") }
        await engine.setLargestRequest(operations: 12)

        _ = await engine.sync()
        try await shop.note("a")
        try await shop.note("b")
        await engine.setLargestRequest(operations: 0)
        _ = await engine.sync()

        #expect(transport.pushes.map(\.ids.count) == [10, 12, 8, 1, 1])
    }

    @Test func `a server that asks for calm is left in peace so long`() async throws {
        let shop = try await Shop(inMemory: true)
        var page = PullPage(changes: [], cursor: "c", more: false, serverTime: shop.clock.now)
        page.calmSeconds = 90
        let transport = ScriptedTransport(pulls: [.page(page)])
        let engine = shop.engine(transport)
        let running = Task { try await engine.run() }
        await shop.clock.untilSleeping()

        shop.clock.advance(by: .seconds(30))
        let early = transport.pulls.count
        shop.clock.advance(by: .seconds(60))
        await transport.untilPulls(2)

        #expect(early == 1)
        #expect(shop.clock.sleeps.first == .seconds(90))
        running.cancel()
        _ = await running.result
    }

    @Test func `a lease that another process holds is looked at now and then, not in a loop`() async throws {
        let shop = try await Shop(inMemory: true)
        let transport = ScriptedTransport()
        try await shop.store.writer.perform { db, now, _ in
            _ = try Lease.acquire(db, owner: "other", now: now)
        }
        let engine = shop.engine(transport)
        try await shop.note("a")
        let running = Task { try await engine.run() }

        await shop.clock.untilSleeping()

        #expect(transport.pushes.isEmpty)
        #expect(shop.clock.sleeps[0] >= .seconds(2))
        #expect(try await shop.store.status().state == .waiting)
        running.cancel()
        _ = await running.result
    }

    // MARK: Tokens

    @Test func `a refused token is refreshed once, and the fresh one is used`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.unauthenticated), .accept])
        try await shop.note("a")

        let report = await shop.engine(transport) { refresh in refresh ? "fresh" : "stale" }.sync()

        #expect(report.pushed == 1)
        #expect(transport.pushes.map(\.context.token) == ["stale", "fresh"])
        #expect(transport.pushes[0].body == transport.pushes[1].body)
        #expect(transport.pulls.map(\.context.token) == ["fresh"])
    }

    @Test func `a fresh token that is refused too pauses, and nothing fails`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.unauthenticated), .fail(.unauthenticated)])
        try await shop.note("a")

        let report = await shop.engine(transport).sync()

        #expect(report.isOnline)
        #expect(transport.pushes.count == 2)
        #expect(try await shop.store.status().state == .needsSignIn)
        #expect(try await shop.store.outbox().map(\.state) == [.pending])
        #expect(try await shop.store.outbox().map(\.attempts) == [0])
    }

    @Test func `no fresh token pauses without a second request`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.unauthenticated)])
        try await shop.note("a")

        _ = await shop.engine(transport) { $0 ? nil : "stale" }.sync()

        #expect(transport.pushes.count == 1)
        #expect(try await shop.store.status().state == .needsSignIn)
    }

    // MARK: Whole requests

    @Test(
        arguments: [
            (.forbidden("no"), .forbidden), (.misconfigured("no"), .misconfigured),
            (.needsUpgrade, .needsUpgrade), (.serverBehind, .serverBehind), (.unreachable("no"), .offline),
            (.busy(retryAfterSeconds: 9), .waiting), (.inProgress, .waiting), (.resyncRequired, .waiting),
        ] as [(ExchangeFailure, SyncStatus.State)]
    )
    func `a failure of the whole request uses up nothing and says what it is`(
        _ failure: ExchangeFailure,
        _ state: SyncStatus.State
    ) async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(failure)])
        try await shop.note("a")
        try await shop.note("b")

        let report = await shop.engine(transport).sync()

        #expect(transport.pushes.count == 1)
        #expect(transport.pulls.isEmpty)
        #expect(report.reason != "")
        #expect(try await shop.store.outbox().map(\.attempts) == [0, 0])
        #expect(try await shop.store.outbox().map(\.state) == [.pending, .pending])
        #expect(try await shop.store.status().state == state)
    }

    @Test func `another identity is taken once when the server knows another history, the operations stay`()
        async throws
    {
        let shop = try await Shop()
        let transport = ScriptedTransport([.fail(.deviceReset), .accept])
        try await shop.note("a")

        let report = await shop.engine(transport).sync()

        #expect(report.pushed == 1)
        #expect(transport.pushes[0].ids == transport.pushes[1].ids)
        #expect(transport.pushes[0].context.device != transport.pushes[1].context.device)
        #expect(try await shop.store.deviceID() == transport.pushes[1].context.device)
    }

    @Test(arguments: [ExchangeFailure.tooLarge, .invalid(Problem("malformed", status: 400, detail: "why"))])
    func
        `a request the server refuses is halved until the group at fault is alone, and that becomes a dead letter`(
            _ failure: ExchangeFailure
        ) async throws
    {
        let shop = try await Shop()
        let transport = ScriptedTransport()
        for row in ["a", "b", "c", "d"] { try await shop.note(row) }
        let bad = try await shop.store.outbox()[2].operation
        let engine = shop.engine(PoisonTransport(bad, failure, transport))

        let report = await engine.sync()

        #expect(report.pushed == 3 && report.rejected == 1)
        #expect(try await shop.store.outbox(.failed).map(\.operation) == [bad])
        #expect(try await shop.store.outbox().count == 1)
    }

    @Test func `an operation that makes the server fail uses up its own attempts only`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport()
        for row in ["a", "b", "c"] { try await shop.note(row) }
        let bad = try await shop.store.outbox()[0].operation
        let engine = shop.engine(PoisonTransport(bad, .serverError(500), transport))

        var rounds = 0
        while try await shop.store.outbox(.failed).isEmpty, rounds < 40 {
            _ = await engine.sync()
            shop.clock.advance(by: .seconds(600))
            rounds += 1
        }

        #expect(try await shop.store.outbox().map(\.operation) == [bad])
        #expect(try await shop.store.outbox().map(\.attempts) == [8])
    }

    @Test
    func `an operation that makes the server fail stops nobody, though each run is a process of its own`()
        async throws
    {
        let shop = try await Shop()
        for row in 0..<12 { try await shop.note("n\(row)") }
        let bad = try await shop.store.outbox()[3].operation

        let report = await shop.engine(PoisonTransport(bad, .serverError(500), ScriptedTransport())).sync()

        #expect(report.pushed == 11)
        #expect(try await shop.store.outbox().map(\.operation) == [bad])
        #expect(try await shop.store.outbox().map(\.attempts) == [1])
    }

    @Test func `a server that fails on everything is asked a few times, then left in peace`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport(Array(repeating: .fail(.serverError(500)), count: 100))
        for row in 0..<12 { try await shop.note("n\(row)") }

        let report = await shop.engine(transport).sync()

        #expect(transport.pushes.map(\.ids.count) == [10, 5, 2, 1, 1])
        #expect(report.reason == "the server failed with status 500")
        #expect(try await shop.store.status().state == .waiting)
    }

    @Test func `an answer that names nobody is asked for later, not in a loop`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.each { _ in nil }])
        try await shop.note("a")

        let report = await shop.engine(transport).sync()

        #expect(!report.isOnline)
        #expect(transport.pushes.count == 1)
    }

    @Test func `a page that leads nowhere ends the run`() async throws {
        let shop = try await Shop()
        let page = PullPage(changes: [], cursor: "c", more: true, serverTime: shop.clock.now)
        let transport = ScriptedTransport(pulls: [.page(page), .page(page), .page(page)])

        let report = await shop.engine(transport).sync()

        #expect(!report.isOnline)
        #expect(transport.pulls.count == 2)
    }

    @Test func `a cursor that is no longer honoured starts over once`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport(pulls: [
            .page(PullPage(changes: [], cursor: "c", more: false, serverTime: shop.clock.now)),
            .fail(.resyncRequired),
        ])
        let engine = shop.engine(transport)
        _ = await engine.sync()

        let report = await engine.sync()

        #expect(report.reason == "")
        #expect(transport.pulls.map(\.cursor) == [nil, "c", nil])
    }

    // MARK: Cancellation

    @Test func `a run that is cancelled while a request is out stops at once and is no failure`() async throws
    {
        let shop = try await Shop()
        let transport = ScriptedTransport([.hold(.accept), .accept])
        let engine = shop.engine(transport)
        try await shop.note("a")
        let running = Task { try await engine.run() }
        await transport.untilHeld()

        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }

        let status = try await shop.store.status()
        #expect(status.state == .waiting)
        #expect(status.lastError == nil)
        #expect(status.inFlight == 0)
        _ = await engine.sync()
        #expect(transport.pushes[0].body == transport.pushes[1].body)
        #expect(try await shop.store.outbox() == [])
    }

    @Test func `a caller that is cancelled is answered at once, the others by the run`() async throws {
        let shop = try await Shop()
        let transport = ScriptedTransport([.hold(.accept)])
        let engine = shop.engine(transport)
        try await shop.note("a")
        let impatient = Task { await engine.sync() }
        await transport.untilHeld()

        impatient.cancel()
        let report = await impatient.value
        transport.release()
        _ = await engine.sync()

        #expect(report.end == .stopped)
        #expect(transport.pushes.count == 1)
        #expect(try await shop.store.status().state == .allSynced)
    }
}

/// A server that fails whenever one operation is in the request, and accepts all else.
private struct PoisonTransport: Transport {
    let bad: OperationID
    let failure: ExchangeFailure
    let others: ScriptedTransport

    init(_ bad: OperationID, _ failure: ExchangeFailure, _ others: ScriptedTransport) {
        (self.bad, self.failure, self.others) = (bad, failure, others)
    }

    func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure) -> PushResponse {
        let isBad = (try? push.request())?.groups.flatMap(\.operations).contains { $0.id == bad } ?? false
        others.append([isBad ? .fail(failure) : .accept])
        return try await others.push(push, context)
    }

    func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        try await others.pull(cursor: cursor, context)
    }

    func probe(_ context: RequestContext) async -> Bool { await others.probe(context) }
}
