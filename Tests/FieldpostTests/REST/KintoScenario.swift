import FieldpostCore
import Foundation
import Testing

@testable import Fieldpost

/// One scenario of kinto.js's own tests (Kinto/kinto.js d085bd2, Apache-2.0), as data.
struct KintoScenario: Sendable, CustomTestStringConvertible {
    let id: String
    let title: String
    let strategy: String
    let pageSize: Int
    let synced: [String: JSONObject]
    let localEdits: [Edit]
    let remoteEdits: [Edit]
    let expect: JSONObject
    let thenSync: JSONObject?

    struct Edit: Sendable {
        let action: String
        let row: String
        let fields: JSONObject
    }

    var testDescription: String { "\(id) \(title)" }

    static let all: [KintoScenario] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "Fixtures/kintojs.json"
        )
        guard let data = try? Data(contentsOf: file), let root = try? JSON(bytes: Array(data)).object else {
            return []
        }
        return (root["cases"]?.array ?? []).compactMap(\.object).map(KintoScenario.init)
    }()

    static func named(_ ids: String...) -> [KintoScenario] { all.filter { ids.contains($0.id) } }

    private init(_ json: JSONObject) {
        func edits(_ name: String) -> [Edit] {
            (json[name]?.array ?? []).compactMap(\.object).map {
                Edit(
                    action: $0["op"]?.string ?? "",
                    row: $0["id"]?.string ?? "",
                    fields: $0["fields"]?.object ?? [:]
                )
            }
        }
        id = json["id"]?.string ?? ""
        title = json["title"]?.string ?? ""
        strategy = json["strategy"]?.string ?? ""
        pageSize = Int(json["page_size"]?.integer ?? 500)
        synced = Self.rows(json["synced"])
        localEdits = edits("local_edits")
        remoteEdits = edits("remote_edits")
        expect = json["expect"]?.object ?? [:]
        thenSync = json["then_sync"]?.object
    }

    private static func rows(_ json: JSON?) -> [String: JSONObject] {
        Dictionary(
            (json?.object?.members ?? []).map { ($0.name, $0.value.object ?? [:]) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    var expectedRemote: [String: JSONObject] { Self.rows(expect["remote"]) }

    /// The rows whose edits are expected to be reported.
    var expectedConflicts: [String] {
        (expect["conflicts"]?.array ?? []).compactMap { $0.object?["id"]?.string } + adoptedLoss
    }

    /// Where the server lost the row and the server wins, Fieldpost drops the row too, but keeps the edit as a conflict.
    private var adoptedLoss: [String] { id == "kj-16" ? ["t1"] : [] }

    /// The rows expected here.
    ///
    /// kinto.js keeps an edit that conflicts in its row; Fieldpost keeps it as a conflict, and the
    /// row shows what the server has.
    var expectedLocal: [String: JSONObject] {
        var rows = Self.rows(expect["local"])
        for row in expectedConflicts { rows[row] = expectedRemote[row] }
        return rows
    }

    /// How many operations are expected to be applied; `nil` where the scenario does not say or Fieldpost counts otherwise.
    var isSilent: Bool { expect["pushed"]?.array?.isEmpty == true && id != "kj-19" && id != "kj-18" }

    // MARK: What the strategies are here

    var schema: Schema {
        switch strategy {
        case "manual": RESTSamples.schema(.compareAndSet)
        case "client_wins": RESTSamples.schema(.lastWriteWins, .updateWins)
        default: RESTSamples.schema(.lastWriteWins)
        }
    }

    func profile(_ base: String, bucket: String) throws -> RESTProfile {
        var profile = RESTProfile.kinto(
            server: try #require(URL(string: base)),
            bucket: bucket,
            tables: ["notes"],
            pageSize: pageSize
        )
        if strategy == "server_wins" || strategy == "pull_only" {
            profile.resources["notes"]?.onConflict = .adopt
        }
        if strategy == "pull_only" {
            profile.resources["notes"]?.create = nil
            profile.resources["notes"]?.update = nil
            profile.resources["notes"]?.delete = nil
        }
        return profile
    }
}

/// One scenario being played: a device, and the collection on a real server.
struct KintoPlay {
    let scenario: KintoScenario
    let server: KintoServer
    let bucket: String
    let store: Store
    let engine: SyncEngine
    private let folder: TemporaryFolder

    /// - Parameter port: where the device finds the server, such as a proxy's.
    init(_ scenario: KintoScenario, _ name: String, through port: UInt16? = nil) async throws {
        self.scenario = scenario
        server = try #require(KintoServer.current)
        bucket = name
        folder = try TemporaryFolder()
        var configuration = Store.Configuration()
        configuration.synchronous = .off
        store = try await Store.open(
            at: folder.path("device.db"),
            schema: scenario.schema,
            configuration: configuration
        )
        try await store.signIn(account: "alice")
        let profile = try scenario.profile("http://127.0.0.1:\(port ?? server.port)/v1", bucket: name)
        engine = SyncEngine(store: store, transport: try RESTTransport(profile: profile, store: store)) { _ in
            KintoServer.user
        }
        try await server.makeCollection(name)
    }

    /// Another engine for the same file, which finds the server at `port`.
    func engine(through port: UInt16, stall: Duration) throws -> SyncEngine {
        let profile = try scenario.profile("http://127.0.0.1:\(port)/v1", bucket: bucket)
        let transport = try RESTTransport(profile: profile, store: store, stall: stall)
        return SyncEngine(store: store, transport: transport) { _ in KintoServer.user }
    }

    private func path(_ row: String) -> String { "/buckets/\(bucket)/collections/notes/records/\(row)" }

    /// Brings both sides to where the scenario begins, then apart.
    func prepare() async throws {
        for (row, fields) in scenario.synced.sorted(by: { $0.key < $1.key }) {
            try await server.curl("PUT", path(row), JSON.object(["data": .object(fields)]).text())
        }
        #expect(await engine.sync().reason == "")
        for edit in scenario.localEdits { try await editHere(edit) }
        for edit in scenario.remoteEdits { try await editThere(edit) }
    }

    private func editHere(_ edit: KintoScenario.Edit) async throws {
        switch edit.action {
        case "put":
            try await store.write { transaction in
                let there = try transaction.query("SELECT 1 FROM notes WHERE id = ?", [.text(edit.row)])
                if there.isEmpty {
                    try transaction.create("notes", row: edit.row, set: edit.fields)
                } else {
                    try transaction.update("notes", row: edit.row, set: edit.fields)
                }
            }
        case "delete": try await store.write { try $0.delete("notes", row: edit.row) }
        case "forget":
            try await store.writer.perform { db, _, _ in
                try db.applying {
                    try db.connection.run("DELETE FROM notes WHERE id = ?", .text(edit.row))
                    try db.connection.run("DELETE FROM fieldpost_rows WHERE row = ?", .text(edit.row))
                }
            }
        default: Issue.record("unknown edit \(edit.action)")
        }
    }

    private func editThere(_ edit: KintoScenario.Edit) async throws {
        switch edit.action {
        case "put":
            try await server.curl("PUT", path(edit.row), JSON.object(["data": .object(edit.fields)]).text())
        case "delete": try await server.curl("DELETE", path(edit.row))
        case "wipe":
            try await server.curl("DELETE", "/buckets/\(bucket)/collections/notes")
            try await server.makeCollection(bucket)
        default: Issue.record("unknown edit \(edit.action)")
        }
    }

    // MARK: Looking

    func local() async throws -> [String: JSONObject] {
        let rows = try await store.read { try $0.query("SELECT id, title, done, n FROM notes") }
        var result: [String: JSONObject] = [:]
        for row in rows {
            var fields = JSONObject()
            if let title = row["title"]?.text { fields.append("title", .string(title)) }
            if let done = row["done"]?.integer { fields.append("done", .bool(done == 1)) }
            if let n = row["n"]?.integer { fields.append("n", .integer(n)) }
            result[row["id"]?.text ?? ""] = fields
        }
        return result
    }

    /// The server's records without what is its own.
    func remote() async throws -> [String: JSONObject] {
        try await server.records(bucket).mapValues { record in
            JSONObject(
                distinct: record.members.filter {
                    !["id", "last_modified", "schema"].contains($0.name) && $0.value != .null
                }
            )
        }
    }

    func versions() async throws -> [String: Int64] {
        try await server.records(bucket).compactMapValues { $0["last_modified"]?.integer }
    }

    func cursor() async throws -> String? {
        try await store.writer.perform { db, _, _ in try PullApply.cursor(db) }
    }

    /// Compares both sides, the outbox and the conflicts with what the scenario expects.
    func check() async throws {
        #expect(try await local() == scenario.expectedLocal)
        #expect(try await remote() == scenario.expectedRemote)
        #expect(try await store.outbox().isEmpty)
        let conflicts = try await store.conflicts()
        #expect(Set(conflicts.map(\.row)) == Set(scenario.expectedConflicts))
        for conflict in conflicts {
            let mine = scenario.localEdits.last { $0.row == conflict.row }
            for member in mine?.fields.members ?? [] {
                #expect(conflict.mine.set[member.name] == member.value)
            }
            #expect(conflict.theirs?["title"] == scenario.expectedRemote[conflict.row]?["title"])
        }
    }
}
