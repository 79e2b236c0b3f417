import FieldpostSimulation
import Testing

/// A few seeds in the debug build; `make test` runs 200 in the release build, by `fieldpost simulate`.
@Suite struct SimulationTests {
    @Test func `every promise holds, and each kind of fault has happened`() throws {
        var counts: [String: Int] = [:]
        for seed in UInt64(0)..<12 {
            let report = try Simulation.run(Simulation.Configuration(seed: seed))
            #expect(report.violation == nil, "seed \(seed)")
            counts.merge(report.counts, uniquingKeysWith: +)
        }
        for kind in Simulation.kinds { #expect(counts[kind, default: 0] > 0, "“\(kind)” never happened") }
    }

    @Test func `the same seed tells the same story`() throws {
        let first = try Simulation.run(Simulation.Configuration(seed: 77))
        let second = try Simulation.run(Simulation.Configuration(seed: 77))

        #expect(first.story == second.story)
    }
}
