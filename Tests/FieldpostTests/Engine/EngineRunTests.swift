import FieldpostCore
import Synchronization
import Testing

@testable import Fieldpost

@Suite struct EngineRunTests {
    /// Counts pulls and answers each with an empty page, once it is allowed to.
    private final class CountingTransport: Transport {
        let pulls = Mutex(0)
        let reached: AsyncStream<Int>
        private let reach: AsyncStream<Int>.Continuation

        init() { (reached, reach) = AsyncStream<Int>.makeStream() }

        func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
            -> PushResponse
        {
            throw .unreachable("nothing is pushed here")
        }

        func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
            let count = pulls.withLock { count in
                count += 1
                return count
            }
            reach.yield(count)
            return PullPage(changes: [], cursor: "c", more: false, settled: [], serverTime: context.now)
        }

        func probe(_ context: RequestContext) async -> Bool { true }
    }

    /// An environment whose sleeps end when the test says so.
    private final class Sleeper: Sendable {
        let asked: AsyncStream<Duration>
        private let ask: AsyncStream<Duration>.Continuation
        private let alarm = Alarm()

        init() { (asked, ask) = AsyncStream<Duration>.makeStream() }

        var environment: Environment {
            Environment(
                now: { Timestamp(milliseconds: 1_764_460_800_000) },
                sleep: { duration in
                    self.ask.yield(duration)
                    await self.alarm.wait()
                    try Task.checkCancellation()
                },
                randomBits: { 7 }
            )
        }

        func wake() { alarm.raise() }
    }

    @Test func `each pause is waited out, also after one that ended by itself`() async throws {
        let folder = try Samples.temporaryFolder()
        let sleeper = Sleeper()
        var configuration = Store.Configuration()
        configuration.environment = sleeper.environment
        let store = try await Store.open(
            at: folder.path("a.db"),
            schema: Samples.shop,
            configuration: configuration
        )
        let transport = CountingTransport()
        let engine = SyncEngine(store: store, transport: transport) { _ in "t" }
        var pauses = sleeper.asked.makeAsyncIterator()

        let run = Task { try await engine.run() }
        _ = await pauses.next()
        sleeper.wake()
        _ = await pauses.next()
        sleeper.wake()
        let third = await pauses.next()
        // A run without a pause would have pulled more often by the time that it asks for its third.
        let count = transport.pulls.withLock { $0 }
        run.cancel()
        _ = try? await run.value

        #expect(third == .seconds(300))
        #expect(count == 3)
    }

    @Test func `a poke ends the pause`() async throws {
        let folder = try Samples.temporaryFolder()
        let sleeper = Sleeper()
        var configuration = Store.Configuration()
        configuration.environment = sleeper.environment
        let store = try await Store.open(
            at: folder.path("a.db"),
            schema: Samples.shop,
            configuration: configuration
        )
        let transport = CountingTransport()
        let engine = SyncEngine(store: store, transport: transport) { _ in "t" }
        var pulls = transport.reached.makeAsyncIterator()
        var pauses = sleeper.asked.makeAsyncIterator()

        let run = Task { try await engine.run() }
        _ = await pulls.next()
        _ = await pauses.next()
        await engine.poke()
        let second = await pulls.next()
        run.cancel()
        _ = try? await run.value

        #expect(second == 2)
    }
}
