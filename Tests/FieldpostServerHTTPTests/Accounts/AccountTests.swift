import Fieldpost
import FieldpostCore
import FieldpostSQLite
import FieldpostServer
import FieldpostTesting
import Foundation
import Testing

@testable import FieldpostServerHTTP

/// A device's file belongs to one account, and only that account's token carries what is in it, over real sockets.
@Suite struct AccountTests {
    static let schema = Schema(version: 1) {
        Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
        }
    }

    /// A server with two tenants, and one device's file whose token the test chooses.
    private final class Office: Sendable {
        let folder: String
        let server: SQLiteServer
        let http: FieldpostHTTPServer
        let lines = LogLines()
        let url: URL
        let clock = ManualClock()
        private let token = Guarded("")
        private let asked = Guarded(0)

        init() async throws {
            folder = NSTemporaryDirectory() + "fieldpost-office-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            server = try await SQLiteServer(path: folder + "/server.db", schema: AccountTests.schema)
            let lines = lines
            http = FieldpostHTTPServer(server: server, listen: .init(port: 0)) { lines.append($0) }
            url = URL(string: "http://127.0.0.1:\(try http.start().port)")!
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        func open(_ name: String) async throws -> Store {
            var configuration = Store.Configuration()
            configuration.environment = clock.environment
            return try await Store.open(
                at: folder + "/" + name,
                schema: AccountTests.schema,
                configuration: configuration
            )
        }

        func makeToken(
            _ account: String = "",
            tenant: String = "main",
            scopes: Credential.Scopes = .all
        ) async throws -> (token: String, id: String) {
            try await server.createToken(
                name: "t",
                tenant: try TenantName(tenant),
                scopes: scopes,
                account: account
            )
        }

        /// One sync with `token`.
        @discardableResult
        func sync(_ store: Store, _ token: String) async -> SyncReport {
            let transport = HTTPTransport(server: url, environment: clock.environment)
            return await SyncEngine(store: store, transport: transport) { _ in token }.sync()
        }

        /// What a tenant has, read without Fieldpost's client.
        func notes(tenant: String = "main") throws -> [String] {
            let path = try TenantName(tenant).path(in: folder + "/server.db")
            guard FileManager.default.fileExists(atPath: path) else { return [] }
            return try Connection(path: path, mode: .readOnly).query("SELECT id FROM notes ORDER BY id")
                .compactMap { $0[0].text }
        }

        /// Statuses of the requests to a path so far.
        func answers(_ path: String) -> [Int64] {
            lines.objects.filter { $0["path"]?.string == path }.compactMap { $0["status"]?.integer }
        }

        func stop(_ stores: Store...) async {
            for store in stores { await store.close() }
            await http.stop(grace: .zero)
            await server.close()
        }
    }

    private func note(_ store: Store, _ row: String) async throws {
        _ = try await store.write { try $0.create("notes", row: row, set: ["title": "words"]) }
    }

    // MARK: Another account's token

    @Test(arguments: [("", "other"), ("budi", "main")])
    func `another account's token sends nothing of the file, and nothing fails`(
        account: String,
        tenant: String
    ) async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        let (own, foreign) = (
            try await office.makeToken("ayu").token,
            try await office.makeToken(account, tenant: tenant).token
        )
        try await note(store, "a")
        #expect(await office.sync(store, own).pushed == 1)
        try await note(store, "b")
        let before = try await store.outbox()

        let report = await office.sync(store, foreign)

        #expect(report.isOnline)
        #expect(report.pushed == 0 && report.rejected == 0)
        let status = try await store.status()
        #expect(status.state == .needsSignIn)
        #expect(status.lastError?.message == "the token belongs to another account than this file")
        #expect(try await store.outbox() == before)
        #expect(office.answers("/v1/push") == [200, 403])
        #expect(try office.notes() == ["a"])
        #expect(try office.notes(tenant: "other") == [])

        #expect(await office.sync(store, own).pushed == 1)
        #expect(try office.notes() == ["a", "b"])
        #expect(try await store.status().state == .allSynced)
        await office.stop(store)
    }

    @Test func `a file that has nothing to send takes nothing from another account either`() async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        let other = try await office.open("other.db")
        let own = try await office.makeToken("ayu").token
        let foreign = try await office.makeToken(tenant: "other").token
        await office.sync(store, own)
        try await note(other, "secret")
        await office.sync(other, foreign)

        let report = await office.sync(store, foreign)

        #expect(report.pulled == 0)
        #expect(try await store.status().state == .needsSignIn)
        #expect(try await store.read { try $0.query("SELECT id FROM notes") } == [])
        await office.stop(store, other)
    }

    @Test func `a new token of the same account goes on, whatever its scopes`() async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        let old = try await office.makeToken("ayu")
        try await note(store, "a")
        await office.sync(store, old.token)
        try await office.server.revokeToken(id: old.id)
        let new = try await office.makeToken("ayu", scopes: .only(["kemang"])).token
        try await note(store, "b")

        #expect(await office.sync(store, old.token).pushed == 0)
        #expect(try await store.status().state == .needsSignIn)
        #expect(await office.sync(store, new).pushed == 1)

        #expect(try office.notes() == ["a", "b"])
        await office.stop(store)
    }

    @Test func `the binding survives the end of the process`() async throws {
        let office = try await Office()
        let first = try await office.open("device.db")
        await office.sync(first, try await office.makeToken("ayu").token)
        await first.close()
        let again = try await office.open("device.db")
        try await note(again, "a")

        await office.sync(again, try await office.makeToken("budi").token)

        #expect(try office.notes() == [])
        #expect(try await again.status().pending + again.status().local == 1)
        await office.stop(again)
    }

    // MARK: The token itself

    @Test func `the token is in no byte of the file`() async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        let token = try await office.makeToken("ayu").token
        try await note(store, "a")
        await office.sync(store, token)
        try await note(store, "b")
        await office.sync(store, "a refused token")

        for suffix in ["", "-wal", "-shm"] {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: office.folder + "/device.db" + suffix))
            #expect(!bytes.isEmpty)
            #expect(bytes.range(of: Data(token.utf8)) == nil)
            #expect(bytes.range(of: Data("a refused token".utf8)) == nil)
        }
        #expect(office.lines.all.allSatisfy { !$0.contains(token) })
        await office.stop(store)
    }

    @Test func `many callers that meet a refused token cause one refresh`() async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        let good = try await office.makeToken("ayu").token
        let refreshes = Guarded(0)
        let transport = HTTPTransport(server: office.url, environment: office.clock.environment)
        let engine = SyncEngine(store: store, transport: transport) { refresh in
            if !refresh { return refreshes.withLock { $0 } == 0 ? "stale" : good }
            refreshes.withLock { $0 += 1 }
            return good
        }
        try await note(store, "a")

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = await engine.sync() } }
        }

        #expect(refreshes.withLock { $0 } == 1)
        #expect(office.answers("/v1/push") == [401, 200])
        #expect(try office.notes() == ["a"])
        await office.stop(store)
    }

    // MARK: Signing out

    @Test func `signing out is refused while changes are unsent, saying how many`() async throws {
        let office = try await Office()
        let store = try await office.open("device.db")
        try await store.signIn(account: "ayu")
        try await note(store, "a")
        try await note(store, "b")

        let error = await #expect(throws: FieldpostError.self) { try await store.signOut() }

        #expect(error?.code == .unsentWork)
        #expect(error?.names == ["2"])
        #expect(error?.message.hasPrefix("2 changes are not on the server yet") == true)
        // Still open, and still that account's.
        #expect(await office.sync(store, try await office.makeToken("ayu").token).pushed == 2)
        try await store.signOut()
        await #expect(throws: StoreError.self) { try await note(store, "c") }
        await office.stop()
    }

    @Test func `work that was kept waits for its account, while another works in another file`() async throws
    {
        let office = try await Office()
        let ayu = try await office.makeToken("ayu").token
        let budi = try await office.makeToken("budi").token
        let file = try await office.open("ayu.db")
        try await file.signIn(account: "ayu")
        await office.sync(file, ayu)
        try await note(file, "of ayu")
        try await file.signOut(.keep)
        let other = try await office.open("budi.db")
        try await other.signIn(account: "budi")
        try await note(other, "of budi")
        #expect(await office.sync(other, budi).pushed == 1)

        let again = try await office.open("ayu.db")
        await #expect(throws: FieldpostError.self) { try await again.signIn(account: "budi") }
        for token in [budi, ayu] { #expect(await office.sync(again, token).pushed == 0) }
        let requests = office.answers("/v1/push")
        #expect(try await again.status().state == .needsSignIn)
        #expect(try await again.status().pending == 1)
        try await again.signIn(account: "ayu")
        #expect(await office.sync(again, ayu).pushed == 1)

        // Signed out, it did not even ask.
        #expect(requests == [200])
        #expect(try office.notes() == ["of ayu", "of budi"])
        await office.stop(again, other)
    }

    @Test func `work that is discarded leaves the file with everything else, for any account`() async throws {
        let office = try await Office()
        let (ayu, budi) = (try await office.makeToken("ayu").token, try await office.makeToken("budi").token)
        let file = try await office.open("device.db")
        try await file.signIn(account: "ayu")
        try await note(file, "sent")
        await office.sync(file, ayu)
        let device = try await file.deviceID()
        _ = try await file.write { try $0.create("notes", row: "unsent", set: ["title": "diary words"]) }

        try await file.signOut(.discard)

        let names = try FileManager.default.contentsOfDirectory(atPath: office.folder)
        for name in names where name.hasPrefix("device.db") {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: office.folder + "/" + name))
            for word in ["diary words", "unsent", "ayu"] { #expect(bytes.range(of: Data(word.utf8)) == nil) }
        }
        let next = try await office.open("device.db")
        #expect(try await next.status().state == .allSynced)
        #expect(try await next.deviceID() != device)
        try await next.signIn(account: "budi")
        try await note(next, "of budi")
        #expect(await office.sync(next, budi).pushed == 1)
        #expect(try office.notes() == ["of budi", "sent"])
        // The tenant's rows come again, since the cursor went too.
        #expect(try await next.read { try $0.query("SELECT id FROM notes") }.count == 2)
        await office.stop(next)
    }
}
