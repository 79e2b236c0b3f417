import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// A real Kinto in memory: the scenarios of its own client, directly and through a bad network.
@Suite(.kinto) struct KintoTests {
    @Test func `there are all the scenarios of kinto.js`() { #expect(KintoScenario.all.count == 21) }

    @Test(arguments: KintoScenario.all)
    func `a scenario of kinto.js ends as it says`(scenario: KintoScenario) async throws {
        let play = try await KintoPlay(scenario, scenario.id)
        try await play.prepare()
        let before = try await play.versions()

        let report = await play.engine.sync()

        #expect(report.reason == "")
        #expect((report.conflicts == 0) == scenario.expectedConflicts.isEmpty)
        if scenario.isSilent { #expect(try await play.versions() == before) }
        try await play.check()

        // Nothing more happens.
        let cursor = try await play.cursor()
        let settled = try await play.versions()
        let again = await play.engine.sync()
        #expect(again.pushed == 0)
        #expect(again.pulled == 0)
        if scenario.thenSync?["cursor_same"] == true { #expect(try await play.cursor() == cursor) }
        #expect(try await play.versions() == settled)
        try await play.check()
    }

    /// Each fault meets each of the first requests once, then all go through.
    @Test(
        arguments: KintoScenario.named(
            "kj-02",
            "kj-03",
            "kj-08",
            "kj-09",
            "kj-10",
            "kj-12",
            "kj-13",
            "kj-17",
            "kj-18"
        ),
        [FaultProxy.Fault.refuse, .dropBefore, .dropAfter, .cut, .duplicate, .duplicateAndDrop]
    )
    func `a scenario ends the same through a bad network`(scenario: KintoScenario, fault: FaultProxy.Fault)
        async throws
    {
        let proxy = try FaultProxy(to: try #require(KintoServer.current).port)
        let play = try await KintoPlay(scenario, "\(scenario.id)-\(fault.rawValue)", through: proxy.port)
        try await play.prepare()
        proxy.plan([fault, .pass, fault, .pass, .pass, fault])

        var reports: [SyncReport] = []
        repeat {
            reports.append(await play.engine.sync())
        } while reports.last?.reason != "" && reports.count < 8

        #expect(reports.last?.reason == "")
        #expect(proxy.exchanges.contains { $0.fault == fault })
        try await play.check()
        await proxy.stop()
    }

    @Test func `a wrong password is a matter of signing in, and nothing fails`() async throws {
        let play = try await KintoPlay(KintoScenario.all[0], "password")
        let profile = try play.scenario.profile(play.server.base, bucket: "password")
        try await play.store.write { try $0.create("notes", row: "n1", set: ["title": "A"]) }

        let engine = SyncEngine(
            store: play.store,
            transport: try RESTTransport(profile: profile, store: play.store)
        ) { _ in "alice:wrong" }
        _ = await engine.sync()

        #expect(try await play.store.status().state == .needsSignIn)
        #expect(try await play.store.outbox().map(\.state) == [.pending])
    }

    @Test func `a wiped collection is read from the start, and the next run is calm`() async throws {
        let play = try await KintoPlay(KintoScenario.all[0], "wiped")
        try await play.prepare()
        try await play.server.curl("DELETE", "/buckets/wiped/collections/notes")
        try await play.server.makeCollection("wiped")

        #expect(await play.engine.sync().reason == "")
        let cursor = try await play.cursor()
        #expect(await play.engine.sync().reason == "")
        #expect(try await play.cursor() == cursor)
    }

    @Test func `rows of one transaction go one by one, and a refused one says what was done`() async throws {
        let play = try await KintoPlay(KintoScenario.all[0], "group")
        try await play.store.write { transaction in
            try transaction.create("notes", row: "n1", set: ["title": "A"])
            // Kinto takes no such id.
            try transaction.create("notes", row: "-n2", set: ["title": "B"])
            try transaction.create("notes", row: "n3", set: ["title": "C"])
        }

        #expect(await play.engine.sync().rejected == 3)

        #expect(try await play.remote().keys.sorted() == ["n1"])
        let failed = try await play.store.outbox(.failed)
        #expect(failed.map(\.state) == [.failed, .failed, .failed])
    }

    @Test func `two devices that edit one row field by field lose nothing`() async throws {
        let scenario = try #require(KintoScenario.named("kj-10").first)
        let one = try await KintoPlay(scenario, "both")
        let two = try await KintoPlay(scenario, "both")
        try await one.store.write { try $0.create("notes", row: "n1", set: ["title": "A", "n": 1]) }
        _ = await one.engine.sync()
        _ = await two.engine.sync()
        try await one.store.write { try $0.update("notes", row: "n1", set: ["title": "B"]) }
        try await two.store.write { try $0.update("notes", row: "n1", set: ["n": 2]) }

        for play in [one, two, one] { #expect(await play.engine.sync().reason == "") }

        let merged: [String: JSONObject] = ["n1": ["title": "B", "n": 2]]
        #expect(try await one.local() == merged)
        #expect(try await two.local() == merged)
        #expect(try await one.remote() == merged)
    }
}
