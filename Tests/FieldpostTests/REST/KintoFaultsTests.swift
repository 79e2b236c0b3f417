import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// Which exchanges of a scenario are spoilt, each in every way that suits it.
enum FaultMix: String, CaseIterable, Sendable {
    /// Requests that do not reach the server.
    case requests
    /// Answers to writes that the server has made.
    case writes
    /// Answers to reads.
    case reads

    var faults: [String] {
        switch self {
        case .requests: ["drop_request", "portal", "status", "redirect"]
        case .writes: ["drop_response", "truncate", "garbage", "empty", "duplicate"]
        case .reads: ["drop_response", "truncate", "garbage", "empty"]
        }
    }

    var methods: String {
        switch self {
        case .requests: ".*"
        case .writes: "PUT|POST|PATCH|DELETE"
        case .reads: "GET"
        }
    }

    func bucket(_ scenario: KintoScenario) -> String { "\(scenario.id)-\(rawValue)" }

    /// One rule for each fault of each scenario, told apart by the bucket in the path.
    static let plan = JSON.array(
        KintoScenario.all.flatMap { scenario in
            FaultMix.allCases.flatMap { mix in
                mix.faults.map { fault in
                    [
                        "m": .string(mix.methods),
                        "p": .string("/buckets/\(mix.bucket(scenario))/.*/records"),
                        "fault": .string(fault), "code": 503,
                    ]
                }
            }
        }
    )
}

/// The scenarios of kinto.js on a real Kinto, through a proxy that nobody here wrote and that spoils exchanges.
@Suite(.kinto(faults: FaultMix.plan)) struct KintoFaultsTests {
    @Test(arguments: KintoScenario.all, FaultMix.allCases)
    func `a scenario ends the same, whatever the proxy does to it`(scenario: KintoScenario, mix: FaultMix)
        async throws
    {
        let proxy = try #require(KintoServer.current?.faults)
        let play = try await KintoPlay(scenario, mix.bucket(scenario))
        try await play.prepare()
        // A truncated answer leaves the connection open, so each costs the stall time.
        let engine = try play.engine(through: proxy.port, stall: .seconds(1))

        var (runs, pushed) = (0, 0)
        var isDone = false
        while !isDone, runs < 30 {
            let report = await engine.sync()
            isDone = report.reason.isEmpty
            pushed += report.pushed
            runs += 1
        }

        #expect(isDone)
        try await play.check()
        let log = try String(contentsOfFile: proxy.log, encoding: .utf8)
        let met = log.split(separator: "\n").filter { $0.contains("/buckets/\(mix.bucket(scenario))/") }
        let kinds = Set(met.map { String($0.split(separator: " ")[1]) })
        if mix != .writes {
            #expect(kinds == Set(mix.faults))
        } else if pushed > 0, scenario.strategy != "pull_only" {
            #expect(kinds.contains("drop_response"))
        }
    }
}
