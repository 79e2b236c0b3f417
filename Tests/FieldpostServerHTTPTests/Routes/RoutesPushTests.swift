import FieldpostCore
import FieldpostGzip
import FieldpostSQLite
import FieldpostServer
import Testing

@testable import FieldpostServerHTTP

@Suite struct RoutesPushTests {
    private func count(_ fixture: RoutesFixture) throws -> Value? {
        try Connection(path: fixture.path, mode: .readOnly).scalar("SELECT count(*) FROM notes")
    }

    @Test func `a push is applied and answered, and again the same`() async throws {
        let fixture = try await RoutesFixture()
        let first = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1, 2))
        let second = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1, 2))

        let results = try PushResponse(bytes: first.bytes).results
        #expect(results.map(\.status) == [.applied, .applied])
        #expect(try PushResponse(bytes: second.bytes).results == results)
        #expect(try count(fixture) == 2)
        await fixture.server.close()
    }

    @Test func `a body packed by gzip is the same push`() async throws {
        let fixture = try await RoutesFixture()
        let body = Gzip.compress(RoutesFixture.push(1))

        let reply = try await fixture.send("POST", "/v1/push", body, headers: ["Content-Encoding": "gzip"])

        #expect(reply.status == 200)
        #expect(try count(fixture) == 1)
        await fixture.server.close()
    }

    @Test func `a body that unpacks beyond the limit is refused`() async throws {
        let fixture = try await RoutesFixture()
        let bomb = Gzip.compress([UInt8](repeating: 0x20, count: WireLimits.unpackedBytes + 1))

        let reply = try await fixture.send("POST", "/v1/push", bomb, headers: ["Content-Encoding": "gzip"])

        #expect(bomb.count < WireLimits.compressedBytes)
        #expect(reply.status == 413)
        #expect(reply.problem == "body-too-large")
        await fixture.server.close()
    }

    @Test func `a cut or spoiled gzip body is refused`() async throws {
        let fixture = try await RoutesFixture()
        let body = Gzip.compress(RoutesFixture.push(1))
        for bad in [Array(body.dropLast(1)), body + [0], RoutesFixture.push(1)] {
            let reply = try await fixture.send("POST", "/v1/push", bad, headers: ["Content-Encoding": "gzip"])
            #expect(reply.status == 400)
        }
        #expect(try count(fixture) == 0)
        await fixture.server.close()
    }

    @Test func `a body of unknown length is counted as it comes`() async throws {
        let fixture = try await RoutesFixture()
        let unknown: [String: String?] = ["Content-Length": nil]

        let fits = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1), headers: unknown)
        let tooLong = try await fixture.send(
            "POST",
            "/v1/push",
            [UInt8](repeating: 0x20, count: WireLimits.compressedBytes + 1),
            headers: unknown
        )

        #expect(fits.status == 200)
        #expect(tooLong.status == 413)
        #expect(tooLong.problem == "body-too-large")
        await fixture.server.close()
    }

    @Test func `JSON nested too deep is refused`() async throws {
        let fixture = try await RoutesFixture()
        let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)

        let reply = try await fixture.send("POST", "/v1/push", Array("{\"groups\":\(deep)}".utf8))

        #expect(reply.status == 400)
        #expect(reply.problem == "malformed")
        await fixture.server.close()
    }

    @Test func `a clone's push is told to take a new identity`() async throws {
        let fixture = try await RoutesFixture()
        _ = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1))
        let clone = String(decoding: RoutesFixture.push(2), as: UTF8.self).replacing(
            "\"seq\":2",
            with: "\"seq\":1"
        )

        let reply = try await fixture.send("POST", "/v1/push", Array(clone.utf8))

        #expect(reply.status == 409)
        #expect(reply.problem == "device-reset")
        await fixture.server.close()
    }

    @Test func `the log names the committed operations before the answer, and no payload or token`()
        async throws
    {
        let fixture = try await RoutesFixture()

        let reply = try await fixture.send("POST", "/v1/push?secret=in-query", RoutesFixture.push(1, 2))

        let lines = fixture.lines.objects
        #expect(lines.map { $0["event"] } == ["committed", "request"])
        #expect(lines[0]["operations"] == [.string(RoutesFixture.id(501)), .string(RoutesFixture.id(502))])
        #expect(lines[0]["request"]?.string == reply.headers["fieldpost-request"])
        #expect(lines[1]["operations"] == 2)
        #expect(lines[1]["status"] == 200)
        #expect(lines[1]["device"] == .string(RoutesFixture.device))
        for line in fixture.lines.all {
            #expect(!line.contains("secret") && !line.contains(fixture.token))
        }
        await fixture.server.close()
    }

    @Test func `a store that cannot be written is 503 with a time, and its words stay in the log`()
        async throws
    {
        let fixture = try await RoutesFixture()
        let blocker = try Connection(path: fixture.path)
        try blocker.execute("DROP TABLE fieldpost_devices; CREATE TABLE fieldpost_devices (nonsense)")

        let broken = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1))
        #expect(broken.status == 500)
        #expect(broken.problem == "internal")
        #expect(!String(decoding: broken.bytes, as: UTF8.self).contains("fieldpost_devices"))

        await fixture.server.close()
        let closed = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1))
        #expect(closed.status == 503)
        #expect(closed.problem == "store-unavailable")
        #expect(closed.headers["retry-after"] != nil)
        #expect(fixture.lines.objects.contains { $0["event"] == "failure" })
    }

    @Test func `what became of operations can be asked, and a lost one voided`() async throws {
        let fixture = try await RoutesFixture()
        _ = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1))
        let ids = "[\"\(RoutesFixture.id(501))\",\"\(RoutesFixture.id(502))\"]"

        let asked = try await fixture.send("POST", "/v1/operations/status", Array("{\"ids\":\(ids)}".utf8))
        let voided = try await fixture.send(
            "POST",
            "/v1/operations/status",
            Array("{\"ids\":\(ids),\"void\":true}".utf8)
        )
        let late = try await fixture.send("POST", "/v1/push", RoutesFixture.push(2))

        #expect(try PushResponse(bytes: asked.bytes).results.map(\.status) == [.applied])
        #expect(try PushResponse(bytes: voided.bytes).results.map(\.code) == [nil, "voided"])
        #expect(try PushResponse(bytes: late.bytes).results.map(\.code) == ["voided"])
        #expect(try count(fixture) == 1)
        await fixture.server.close()
    }
}

/// Whose token it is, and whose file asks.
@Suite struct RoutesAccountTests {
    @Test(arguments: ["/v1/push", "/v1/operations/status", "/v1/pull", "/v1/schema"])
    func `a device of another account is refused before anything is read or written`(target: String)
        async throws
    {
        let fixture = try await RoutesFixture()
        let isPost = target.hasSuffix("push") || target.hasSuffix("status")
        let body =
            target.hasSuffix("push")
            ? RoutesFixture.push(1)
            : isPost ? Array(#"{"ids":["\#(RoutesFixture.id(501))"],"void":true}"#.utf8) : []
        func ask(_ account: String?) async throws -> RoutesFixture.Reply {
            try await fixture.send(
                isPost ? "POST" : "GET",
                target,
                body,
                headers: ["Fieldpost-Account": account]
            )
        }

        let refused = try await ask("another")

        #expect(refused.status == 403)
        #expect(refused.problem == "other-account")
        #expect(fixture.lines.objects.allSatisfy { $0["event"]?.string != "committed" })
        let own = try #require(refused.headers["fieldpost-account"])
        let answered = try await ask(own)
        #expect(answered.status == 200)
        #expect(answered.headers["fieldpost-account"] == own)
        #expect(try await ask(nil).status == 200)
        await fixture.server.close()
    }

    @Test func `nobody learns an account without a token`() async throws {
        let fixture = try await RoutesFixture()

        for target in ["/v1/probe?nonce=n", "/healthz"] {
            #expect(try await fixture.send("GET", target).headers["fieldpost-account"] == nil)
        }
        let reply = try await fixture.send("GET", "/v1/pull", headers: ["Authorization": "Bearer wrong"])
        #expect(reply.status == 401)
        #expect(reply.headers["fieldpost-account"] == nil)
        await fixture.server.close()
    }
}
