import Fieldpost
import FieldpostCore
import FieldpostTesting
import Testing

@Suite struct ManualClockTests {
    @Test func `a sleeper wakes when its time has come, and not before`() async throws {
        let clock = ManualClock()
        let woken = Task {
            try await clock.sleep(for: .seconds(10))
            return clock.now
        }
        await clock.untilSleeping()

        clock.advance(by: .milliseconds(9_999))
        let before = clock.sleeperCount
        clock.advance(by: .milliseconds(1))

        #expect(before == 1)
        #expect(try await woken.value == Timestamp(milliseconds: 1_764_460_810_000))
        #expect(clock.sleeps == [.seconds(10)])
    }

    @Test func `a wall clock that is set back delays no sleeper`() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(10)) }
        await clock.untilSleeping()

        clock.set(to: Timestamp(milliseconds: 0))
        clock.advance(by: .seconds(10))

        try await sleeper.value
        #expect(clock.now == Timestamp(milliseconds: 10_000))
    }

    @Test func `a cancelled sleeper throws at once`() async {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(10)) }
        await clock.untilSleeping()

        sleeper.cancel()

        await #expect(throws: CancellationError.self) { try await sleeper.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test func `one seed gives one sequence`() {
        let first = ManualClock(seed: 5).environment
        let second = ManualClock(seed: 5).environment

        #expect((0..<10).map { _ in first.randomBits() } == (0..<10).map { _ in second.randomBits() })
    }
}
