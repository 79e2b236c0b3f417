import FieldpostSimulation
import Testing

@Suite struct SimulationTests {
    /// Every kind of event that a run of all seeds must have met; one that never happens tests nothing.
    static let kinds: Set = [
        "write", "refused write", "device killed", "server killed", "offline", "online", "request lost", "request doubled",
        "late request", "answer lost", "push", "pull", "run",
    ]

    @Test func `every promise holds in each of 200 seeds, and each kind of fault has happened`() throws {
        var counts: [String: Int] = [:]
        for seed in UInt64(0)..<200 {
            let report = try Simulation.run(Simulation.Configuration(seed: seed))
            #expect(report.violation == nil, "seed \(seed)")
            counts.merge(report.counts, uniquingKeysWith: +)
        }
        for kind in Self.kinds { #expect(counts[kind, default: 0] > 0, "“\(kind)” never happened") }
    }
}
