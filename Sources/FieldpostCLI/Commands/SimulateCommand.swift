internal import FieldpostSimulation

/// `fieldpost simulate`.
enum SimulateCommand {
    static let spec = CommandSpec(
        path: ["simulate"],
        summary: "Run phones and a server in one thread under a seed, and check every promise.",
        options: [
            .optional("seed", "N", "the first seed; 0 where none is given"),
            .optional("seeds", "N", "how many seeds, one after the other; 1 where none is given"),
            .optional("steps", "N", "how many things happen in each; 400 where none is given"),
            .flag("story", "print what happened, also when every promise held"),
        ],
        notes: [
            "One seed decides everything: what people do, what the network loses, doubles and delays, and which process "
                + "dies before which statement. A seed whose run broke a promise is printed with its story, and the exit "
                + "status is 70; so it is when a kind of fault never happened in more than 50 seeds."
        ]
    ) { invocation, console in
        let first = try number(invocation, "seed", 0)
        let count = max(1, try number(invocation, "seeds", 1))
        var counts: [String: Int] = [:]
        var broken = 0
        for seed in first..<(first + count) {
            var configuration = Simulation.Configuration(seed: seed)
            configuration.steps = Int(try number(invocation, "steps", 400))
            let report = try Simulation.run(configuration)
            counts.merge(report.counts, uniquingKeysWith: +)
            if report.violation != nil || invocation.has("story") { tell(seed, report, console) }
            if report.violation != nil { broken += 1 }
        }
        console.line(
            "\(count) seeds from \(first): "
                + counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        )
        let missing = count > 50 ? Simulation.kinds.filter { counts[$0, default: 0] == 0 } : []
        for kind in missing { console.line("“\(kind)” never happened, so nothing about it was shown") }
        console.line("\(Int(count) - broken) passed, \(broken) failed")
        return broken == 0 && missing.isEmpty ? .done : .bug
    }

    private static func tell(_ seed: UInt64, _ report: Simulation.Report, _ console: Console) {
        console.line("seed \(seed): " + (report.violation ?? "every promise held"))
        for line in report.story.suffix(200) { console.line("  " + line) }
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
