import FieldpostTesting
import Testing

@testable import Fieldpost

/// When a run starts, decided without a clock.
@Suite struct RunTriggersTests {
    /// Triggers and the time, moved by hand.
    private struct Timeline {
        var triggers = RunTriggers()
        var now: Int64 = 1_000
        var random: SeededRandom

        init(seed: UInt64 = 1) { random = SeededRandom(seed: seed) }

        mutating func note(_ event: RunTriggers.Event) { triggers.note(event, at: now, using: &random) }
        mutating func next() -> RunTriggers.Decision { triggers.next(at: now) }

        /// Waits as it is told; when the next run begins, and whether it forgets the backoff.
        mutating func run() -> (at: Int64, forgets: Bool) {
            while true {
                switch next() {
                case .run(let forgets): return (now, forgets)
                case .wait(let milliseconds): now += milliseconds
                }
            }
        }
    }

    @Test func `nothing happened: nothing to do`() {
        var line = Timeline()

        #expect(line.next() == .wait(milliseconds: .max - 1_000))
    }

    @Test func `writes that follow each other start one run, a tenth of a second after the first`() {
        var line = Timeline()
        line.note(.ended(nextIn: 300_000))
        for _ in 0..<50 {
            line.note(.wrote)
            line.now += 1
        }

        let run = line.run()

        #expect(run.at == 1_100)
        #expect(!run.forgets)
        line.note(.ended(nextIn: 300_000))
        #expect(line.next() == .wait(milliseconds: 300_000))
    }

    @Test func `a timer starts a run when nothing else does`() {
        var line = Timeline()
        line.note(.ended(nextIn: 4_321))

        #expect(line.run().at == 5_321)
    }

    @Test func `the foreground starts a run at once and forgets the backoff`() {
        var line = Timeline()
        line.note(.ended(nextIn: 300_000))

        line.note(.foreground)

        #expect(line.next() == .run(forgettingBackoff: true))
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `a hint starts a run within three seconds and forgets the backoff`(_ seed: UInt64) {
        var line = Timeline(seed: seed)
        line.note(.ended(nextIn: 86_400_000))

        line.note(.connectivity(ConnectivityHint([.wifi])))
        let run = line.run()

        #expect((1_000...4_000).contains(run.at))
        #expect(run.forgets)
    }

    @Test func `more hints neither put the run off nor start another`() {
        var line = Timeline(seed: 3)
        line.note(.ended(nextIn: 86_400_000))
        line.note(.connectivity(ConnectivityHint([.wifi])))
        guard case .wait(let first) = line.next() else { Issue.record("it ran at once"); return }

        for kinds in [[.wifi, .cellular], [.cellular], [.ethernet]] as [Set<ConnectivityHint.Kind>] {
            line.note(.connectivity(ConnectivityHint(kinds)))
        }

        guard case .wait(let then) = line.next() else { return }
        #expect(then <= first)
        _ = line.run()
        line.note(.ended(nextIn: 86_400_000))
        #expect(line.next() == .wait(milliseconds: 86_400_000))
    }

    @Test func `losing every network starts nothing, and takes back what its coming had started`() {
        var line = Timeline()
        line.note(.ended(nextIn: 300_000))
        line.note(.connectivity(ConnectivityHint([.wifi])))

        line.note(.connectivity(ConnectivityHint()))

        #expect(line.next() == .wait(milliseconds: 300_000))
    }

    @Test func `the same network said again starts nothing`() {
        var line = Timeline()
        line.note(.connectivity(ConnectivityHint([.wifi])))
        _ = line.run()
        line.note(.ended(nextIn: 300_000))

        line.note(.connectivity(ConnectivityHint([.wifi])))

        #expect(line.next() == .wait(milliseconds: 300_000))
    }

    @Test func `a write's run does not use up the one that a hint has started`() {
        var line = Timeline(seed: 1)
        line.note(.connectivity(ConnectivityHint([.wifi])))
        line.note(.wrote)

        let first = line.run()
        line.note(.ended(nextIn: 300_000))
        let second = line.run()

        #expect(first.at == 1_100 && !first.forgets)
        #expect(second.at <= 4_000 && second.forgets)
    }

    @Test func `what happens during a run starts another after it`() {
        var line = Timeline()
        line.note(.asked)
        _ = line.run()
        line.note(.wrote)
        line.now += 5_000

        line.note(.ended(nextIn: 300_000))

        #expect(line.next() == .run(forgettingBackoff: false))
    }

    @Test func `a poke starts a run within a quarter of a second, many pokes one a second`() {
        var line = Timeline()
        var runs: [Int64] = []
        for _ in 0..<100 {
            line.note(.poked)
            if case .run = line.next() { runs.append(line.now) }
            line.now += 100
        }

        #expect(runs[0] <= 1_350)
        #expect(zip(runs, runs.dropFirst()).allSatisfy { $1 - $0 >= 1_000 })
        #expect((8...10).contains(runs.count))
    }

    @Test func `how a run begins`() {
        let opening = RunTriggers.opening

        #expect(opening(true, 5, true) == .run)
        #expect(opening(false, 5, false) == .notDue)
        #expect(opening(false, 5, true) == .notDue)
        #expect(opening(false, 0, false) == .run)
        #expect(opening(false, 0, true) == .probe)
    }

    // MARK: Many phones

    /// How many runs begin in the busiest second when so many phones get the same Wi-Fi at one instant.
    private func busiestSecond(_ phones: Int) -> Int {
        let runs = (1...phones).map { seed in
            var line = Timeline(seed: UInt64(seed))
            line.note(.ended(nextIn: 300_000))
            line.note(.connectivity(ConnectivityHint([.wifi])))
            return line.run().at
        }.sorted()
        return runs.map { start in runs.count { (start..<start + 1_000).contains($0) } }.max() ?? 0
    }

    @Test func `phones that regain Wi-Fi at one instant never exceed twice the steady rate`() {
        // Spread over three seconds, the steady rate of 15 phones is five a second.
        #expect(busiestSecond(15) <= 2 * 5)
        #expect(busiestSecond(3_000) <= 1_100)
    }
}
