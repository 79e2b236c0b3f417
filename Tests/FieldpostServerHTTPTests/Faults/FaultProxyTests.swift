import Fieldpost
import FieldpostCore
import FieldpostSQLite
import FieldpostServer
import FieldpostTesting
import Foundation
import Testing

@testable import FieldpostServerHTTP

/// The whole product over real sockets through a network that spoils exchanges: whatever it does, each change arrives once.
@Suite struct FaultProxyTests {
    static let schema = Schema(version: 1) {
        Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("likes", .integer).defaults(to: 0)
        }
        .rule("likes", .counter)
    }

    /// A device, a proxy and a server.
    private final class Line: Sendable {
        let folder: String
        let server: SQLiteServer
        let http: FieldpostHTTPServer
        let proxy: FaultProxy
        let store: Store
        let engine: SyncEngine
        let token: String
        let clock = ManualClock()

        init() async throws {
            folder = NSTemporaryDirectory() + "fieldpost-line-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            server = try await SQLiteServer(path: folder + "/server.db", schema: FaultProxyTests.schema)
            token = try await server.createToken(name: "test", scopes: .all).token
            http = FieldpostHTTPServer(server: server, listen: .init(port: 0))
            proxy = try FaultProxy(to: try http.start().port)
            var configuration = Store.Configuration()
            configuration.environment = clock.environment
            store = try await Store.open(
                at: folder + "/device.db",
                schema: FaultProxyTests.schema,
                configuration: configuration
            )
            let transport = HTTPTransport(
                server: URL(string: "http://127.0.0.1:\(proxy.port)")!,
                environment: clock.environment
            )
            engine = SyncEngine(store: store, transport: transport) { [token] _ in token }
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        func stop() async {
            await proxy.stop()
            await http.stop(grace: .zero)
            await server.close()
            await store.close()
        }

        /// What the server has, read without Fieldpost's client.
        func serverRows() throws -> [[Value]] {
            try Connection(path: folder + "/server.db", mode: .readOnly).query(
                "SELECT id, likes FROM notes ORDER BY id"
            )
        }
    }

    private func write(_ line: Line) async throws {
        _ = try await line.store.write { transaction in
            try transaction.create("notes", row: "a", set: ["title": "1", "likes": 1])
        }
        try await line.store.write { _ = try $0.execute("UPDATE notes SET likes = likes + 10") }
        try await line.store.write { _ = try $0.execute("UPDATE notes SET likes = likes + 100") }
    }

    @Test(arguments: [
        FaultProxy.Fault.pass, .refuse, .dropBefore, .dropAfter, .cut, .duplicate, .duplicateAndDrop,
    ])
    func `whatever happens to the first push, everything arrives once`(_ fault: FaultProxy.Fault) async throws
    {
        let line = try await Line()
        try await write(line)
        line.proxy.plan([fault])

        let first = await line.engine.sync()
        let second = await line.engine.sync()

        let isHarmless = fault == .pass || fault == .duplicate
        #expect(first.isOnline == isHarmless)
        #expect(first.pushed + second.pushed == 3)
        #expect(try line.serverRows() == [["a", 111]])
        #expect(try await line.store.outbox() == [])
        #expect(line.proxy.exchanges[0].fault == fault)
        let reached: [FaultProxy.Fault: Int] = [
            .pass: 1, .refuse: 0, .dropBefore: 0, .dropAfter: 1, .cut: 1, .duplicate: 2, .duplicateAndDrop: 2,
        ]
        #expect(line.proxy.exchanges[0].answers == reached[fault])
        await line.stop()
    }

    @Test func `a push that arrives after its own retry changes nothing`() async throws {
        let line = try await Line()
        try await write(line)
        line.proxy.plan([.delayRequest])
        let engine = line.engine
        let running = Task { try await engine.run() }
        await line.proxy.untilHeld()
        // The device gives up while its request is still on the way.
        running.cancel()
        _ = await running.result

        _ = await line.engine.sync()
        let before = try line.serverRows()
        line.proxy.release()
        await line.proxy.untilExchanges(3)

        #expect(before == [["a", 111]])
        #expect(try line.serverRows() == [["a", 111]])
        #expect(line.proxy.exchanges.last?.fault == .delayRequest)
        #expect(line.proxy.exchanges.last?.answers == 1)
        await line.stop()
    }

    @Test func `an answer that comes after the stall time is asked for again, and the effect is one`()
        async throws
    {
        let line = try await Line()
        try await write(line)
        let before = try await line.store.outbox()
        line.proxy.plan([.delayAnswer])
        let proxy = line.proxy
        var environment = line.clock.environment
        // The stall time is over once the server has acted and its answer is on the way.
        environment.sleep = { _ in await proxy.untilHeld() }
        let impatient = HTTPTransport(
            server: URL(string: "http://127.0.0.1:\(proxy.port)")!,
            environment: environment
        )
        let token = line.token

        let first = await SyncEngine(store: line.store, transport: impatient) { _ in token }.sync()

        #expect(!first.isOnline)
        #expect(first.reason == "no byte moved for 8.0 seconds")
        #expect(try await line.store.outbox() == before)
        #expect(try line.serverRows() == [["a", 111]])
        #expect(proxy.exchanges.count == 0)
        proxy.release()
        #expect(await line.engine.sync().pushed == 3)
        #expect(try line.serverRows() == [["a", 111]])
        await proxy.untilExchanges(3)
        let pushes = proxy.exchanges.filter { $0.request.hasPrefix("POST") }
        #expect(pushes.count == 2)
        #expect(Set(pushes.map(\.body)).count == 1)
        await line.stop()
    }

    @Test func `an answer that is late is waited for`() async throws {
        let line = try await Line()
        try await write(line)
        line.proxy.plan([.delayAnswer])
        let engine = line.engine
        let syncing = Task { await engine.sync() }
        await line.proxy.untilHeld()
        let status = try await line.store.status()

        line.proxy.release()
        let report = await syncing.value

        #expect(status.inFlight == 3)
        #expect(report.pushed == 3)
        #expect(try line.serverRows() == [["a", 111]])
        await line.stop()
    }

    @Test func `every fault in a row, on pushes and pulls, and everything arrives once`() async throws {
        let line = try await Line()
        line.proxy.plan(FaultProxy.Fault.allCases.filter { $0 != .delayRequest && $0 != .delayAnswer })
        try await write(line)

        var rounds = 0
        repeat {
            _ = await line.engine.sync()
            rounds += 1
        } while try await line.store.status().state != .allSynced && rounds < 20

        #expect(try line.serverRows() == [["a", 111]])
        #expect(Set(line.proxy.exchanges.map(\.fault)).count >= 2)
        await line.stop()
    }

    @Test func `a proxy stops with requests held and connections open`() async throws {
        let line = try await Line()
        try await write(line)
        line.proxy.plan([.delayRequest])
        let engine = line.engine
        let syncing = Task { await engine.sync() }
        await line.proxy.untilHeld()

        await line.proxy.stop()

        #expect(await syncing.value.isOnline == false)
        await line.stop()
    }
}
