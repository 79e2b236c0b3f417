internal import Dispatch
internal import FieldpostSimulation
internal import Synchronization

/// `fieldpost simulate`.
enum SimulateCommand {
    static let spec = CommandSpec(
        path: ["simulate"],
        summary: "Run phones and a server in one thread under a seed, and check every promise.",
        options: [
            .optional("seed", "N", "the first seed; 0 where none is given"),
            .optional("seeds", "N", "how many seeds; 1 where none is given"),
            .optional("steps", "N", "how many things happen in each; 400 where none is given"),
            .flag("story", "print all of what happened, also when every promise held"),
        ],
        notes: [
            "One seed decides everything: what people do, what the network loses, doubles and delays, and which process "
                + "dies before which statement. A seed whose run broke a promise is run again with fewer steps, as long as "
                + "it breaks one, and printed with the end of its story; the exit status is 70. So it is when a kind of "
                + "fault never happened in more than 50 seeds. Seeds share the machine's processors; each runs in one "
                + "thread."
        ]
    ) { invocation, console in
        let first = try number(invocation, "seed", 0)
        let count = max(1, try number(invocation, "seeds", 1))
        let steps = Int(try number(invocation, "steps", 400))
        let (told, broken) = try run(first..<(first + count), steps: steps) { seed, steps, report in
            let isAll = invocation.has("story")
            guard isAll || report.violation != nil else { return }
            console.line("seed \(seed), \(steps) steps: " + (report.violation ?? "every promise held"))
            for line in report.story.suffix(isAll ? .max : 40) { console.line("  " + line) }
        }
        console.line(
            "\(count) seeds from \(first): "
                + told.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        )
        let missing =
            count > 50 ? (Simulation.kinds + Simulation.rareKinds).filter { told[$0, default: 0] == 0 } : []
        for kind in missing { console.line("“\(kind)” never happened, so nothing about it was shown") }
        console.line("\(Int(count) - broken) passed, \(broken) failed")
        return broken == 0 && missing.isEmpty ? .done : .bug
    }

    /// Runs every seed; `tell` is given one report at a time.
    private static func run(
        _ seeds: Range<UInt64>,
        steps: Int,
        _ tell: (UInt64, Int, Simulation.Report) -> Void
    ) throws -> (counts: [String: Int], broken: Int) {
        let total = Mutex((counts: [String: Int](), broken: 0, failure: (any Error)?.none))
        // Safe because: it is called under the lock alone.
        nonisolated(unsafe) let tell = tell
        DispatchQueue.concurrentPerform(iterations: seeds.count) { index in
            var configuration = Simulation.Configuration(seed: seeds.lowerBound + UInt64(index))
            configuration.steps = steps
            do {
                let report = try Simulation.run(configuration)
                let least = report.violation == nil ? nil : try Simulation.shrunk(configuration)
                total.withLock { total in
                    total.counts.merge(report.counts, uniquingKeysWith: +)
                    if report.violation != nil { total.broken += 1 }
                    tell(configuration.seed, least?.steps ?? steps, least?.report ?? report)
                }
            } catch {
                total.withLock { $0.failure = error }
            }
        }
        return try total.withLock { total in
            if let failure = total.failure { throw failure }
            return (total.counts, total.broken)
        }
    }

    private static func number(_ invocation: Invocation, _ name: String, _ fallback: UInt64)
        throws(UsageError) -> UInt64
    {
        guard let text = invocation[name] else { return fallback }
        guard let number = UInt64(text) else {
            throw UsageError("--\(name) takes a whole number; correct it.")
        }
        return number
    }
}
