import FieldpostCore
import FieldpostSQLite
import FieldpostServer
import Testing

@testable import FieldpostServerHTTP

/// The routes behind the real engine, over real sockets.
@Suite struct RoutesSocketTests {
    private func request(_ fixture: RoutesFixture, _ line: String, _ body: [UInt8] = []) -> [UInt8] {
        let head = """
            \(line) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(fixture.token)\r\n\
            Fieldpost-Device: \(RoutesFixture.device)\r\n\(body.isEmpty ? "" : "Content-Length: \(body.count)\r\n")\r\n
            """
        return Array(head.utf8) + body
    }

    private func serve(_ fixture: RoutesFixture) throws -> (
        http: FieldpostHTTPServer, address: HTTPServerAddress
    ) {
        let lines = fixture.lines
        let http = FieldpostHTTPServer(server: fixture.server, listen: .init(port: 0)) { lines.append($0) }
        let address = try http.start()
        return (http, HTTPServerAddress(host: address.host, port: address.port))
    }

    @Test func `push and pull over one connection`() async throws {
        let fixture = try await RoutesFixture()
        let (http, address) = try serve(fixture)
        let client = try RawClient(address)

        client.send(request(fixture, "POST /v1/push", RoutesFixture.push(1)))
        let pushed = try await client.answer()
        client.send(request(fixture, "GET /v1/pull"))
        let pulled = try await client.answer()

        #expect(pushed.status == 200)
        #expect(try PullPage(bytes: Array(pulled.body.utf8)).changes.map(\.row) == [RoutesFixture.id(1)])
        await http.stop(grace: .seconds(5))
        await fixture.server.close()
    }

    @Test func `thirty-two clients that send one push at once are told the same and it is applied once`()
        async throws
    {
        let fixture = try await RoutesFixture()
        let (http, address) = try serve(fixture)
        let bytes = request(fixture, "POST /v1/push", RoutesFixture.push(1))

        let answers = try await withThrowingTaskGroup(of: [OperationResult].self) { group in
            for _ in 0..<32 {
                group.addTask {
                    let client = try RawClient(address)
                    client.send(bytes)
                    return try PushResponse(bytes: Array(try await client.answer().body.utf8)).results
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }

        #expect(answers.count == 32)
        #expect(answers.allSatisfy { $0 == answers[0] && $0[0].status == .applied })
        let reader = try Connection(path: fixture.path, mode: .readOnly)
        #expect(try reader.scalar("SELECT count(*) FROM notes") == 1)
        await http.stop(grace: .seconds(5))
        await fixture.server.close()
    }

    @Test func `a chunked body beyond the limit gets our own 413`() async throws {
        let fixture = try await RoutesFixture()
        let (http, address) = try serve(fixture)
        let client = try RawClient(address)
        client.send(
            "POST /v1/push HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer \(fixture.token)\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        let chunk = Array("10000\r\n".utf8) + [UInt8](repeating: 0x20, count: 0x10000) + Array("\r\n".utf8)
        for _ in 0..<20 where await client.sendAll(chunk) < chunk.count { break }

        let answer = try await client.answer()

        #expect(answer.status == 413)
        #expect(answer.headers["fieldpost-protocol"] == "1")
        await http.stop(grace: .seconds(5))
        await fixture.server.close()
    }

    @Test func `a client that leaves before its answer has its push all the same`() async throws {
        let fixture = try await RoutesFixture()
        let (http, address) = try serve(fixture)
        let client = try RawClient(address)
        client.send(request(fixture, "POST /v1/push", RoutesFixture.push(1)))
        client.leave()

        // The same operation again: whether the first send arrived or not, it counts once.
        let again = try RawClient(address)
        again.send(request(fixture, "POST /v1/push", RoutesFixture.push(1)))
        let answer = try await again.answer()

        #expect(try PushResponse(bytes: Array(answer.body.utf8)).results.map(\.status) == [.applied])
        let reader = try Connection(path: fixture.path, mode: .readOnly)
        #expect(try reader.scalar("SELECT count(*) FROM notes") == 1)
        await http.stop(grace: .seconds(5))
        await fixture.server.close()
    }

    @Test func `an address that is taken says so`() async throws {
        let fixture = try await RoutesFixture()
        let (http, address) = try serve(fixture)
        let second = FieldpostHTTPServer(
            server: fixture.server,
            listen: .init(host: address.host, port: address.port)
        )

        let error = #expect(throws: HTTPServerError.self) { try second.start() }

        #expect(error?.code == .addressInUse)
        await http.stop(grace: .seconds(5))
        await fixture.server.close()
    }
}
