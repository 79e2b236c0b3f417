import Fieldpost
import FieldpostCore
import FieldpostServer
import FieldpostTesting
import Foundation
import Testing

@testable import FieldpostServerHTTP

/// Two engines that run, a real server between them, and nobody who calls `sync()`.
@Suite struct LivePokeTests {
    /// A device whose engine runs by its triggers.
    private struct LiveDevice {
        let store: Store
        let engine: Task<Void, any Error>

        init(_ name: String, in folder: String, server: URL, token: String) async throws {
            store = try await Store.open(at: "\(folder)/\(name).db", schema: FaultProxyTests.schema)
            try await store.signIn(account: name)
            let engine = SyncEngine(store: store, transport: HTTPTransport(server: server)) { _ in token }
            self.engine = Task { try await engine.run() }
        }

        /// Returns once `title` is the title of the note `a`.
        func untilTitle(_ title: String) async throws {
            let sql: SQL = "select title from notes where id = 'a'"
            for try await shown in store.watchValue(String.self, sql) where shown == title { return }
        }

        func stop() async {
            engine.cancel()
            _ = await engine.result
            await store.close()
        }
    }

    @Test func `what one device writes the other shows, with no call and long before any timer`() async throws
    {
        let folder = NSTemporaryDirectory() + "fieldpost-live-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try await SQLiteServer(path: folder + "/server.db", schema: FaultProxyTests.schema)
        let token = try await server.createToken(name: "test", scopes: .all).token
        let lines = LogLines()
        let http = FieldpostHTTPServer(server: server, listen: .init(port: 0)) { lines.append($0) }
        let url = try #require(URL(string: "http://\(try http.start())"))
        let writer = try await LiveDevice("writer", in: folder, server: url, token: token)
        let reader = try await LiveDevice("reader", in: folder, server: url, token: token)

        _ = try await writer.store.write { try $0.create("notes", row: "a", set: ["title": "one"]) }
        try await reader.untilTitle("one")
        // Both ways, and more than once: the line stays.
        try await reader.store.write { try $0.update("notes", row: "a", set: ["title": "two"]) }
        try await writer.untilTitle("two")
        try await writer.store.write { try $0.update("notes", row: "a", set: ["title": "three"]) }
        try await reader.untilTitle("three")

        let paths = lines.objects.compactMap { $0["path"]?.string }
        #expect(paths.count { $0 == "/v1/events" } == 2)
        #expect(paths.count { $0 == "/v1/push" } == 3)
        await writer.stop()
        await reader.stop()
        await http.stop(grace: .seconds(5))
        await server.close()
    }
}
