import FieldpostCore
import FieldpostServer
import Testing

@testable import FieldpostServerHTTP

/// What the head alone decides, before a byte of the body is read.
@Suite struct RoutesHeadTests {
    @Test(
        arguments: [
            ("GET", "/v1/probe?nonce=n", 204), ("GET", "/healthz", 200), ("GET", "/readyz", 200),
            ("GET", "/v1/schema", 200),
            ("GET", "/v1/pull", 200), ("HEAD", "/v1/schema", 200), ("GET", "/nowhere", 404),
            ("GET", "/v1/push", 405),
            ("POST", "/v1/pull", 405), ("DELETE", "/healthz", 405), ("POST", "/v1/push", 400),
            ("GET", "/v1/push/", 404),
        ])
    func `every answer names the protocol, errors too`(method: String, target: String, status: Int)
        async throws
    {
        let fixture = try await RoutesFixture()

        let reply = try await fixture.send(method, target)

        #expect(reply.status == status)
        #expect(reply.headers["fieldpost-protocol"] == "1")
        #expect((reply.problem != nil) == (status >= 400))
        #expect(
            reply.headers["content-type"]
                == (status >= 400 ? "application/problem+json" : status == 204 ? nil : "application/json")
        )
        await fixture.server.close()
    }

    @Test func `a wrong method is told the right ones`() async throws {
        let fixture = try await RoutesFixture()

        #expect(try await fixture.send("GET", "/v1/push").headers["allow"] == "POST")
        #expect(try await fixture.send("POST", "/v1/pull").headers["allow"] == "GET, HEAD")
        await fixture.server.close()
    }

    @Test(arguments: ["/v1/push", "/v1/operations/status", "/v1/pull", "/v1/schema"])
    func `nobody without a valid token gets in, and nobody is challenged`(target: String) async throws {
        let fixture = try await RoutesFixture()
        let method = target.hasSuffix("push") || target.hasSuffix("status") ? "POST" : "GET"
        let body = method == "POST" ? RoutesFixture.push(1) : []
        for header in [
            nil, "", "Bearer", "Bearer wrong", "Basic \(fixture.token)", "Bearer \(fixture.token) x",
            fixture.token,
        ] {
            let reply = try await fixture.send(method, target, body, headers: ["Authorization": header])

            #expect(reply.status == 401)
            #expect(reply.problem == "unauthenticated")
            #expect(reply.headers["www-authenticate"] == nil)
        }
        await fixture.server.close()
    }

    @Test func `a token is good until it is revoked`() async throws {
        let fixture = try await RoutesFixture()
        let made = try await fixture.server.createToken(name: "x", scopes: .all)
        let header = ["Authorization": "bearer \(made.token)"]
        #expect(try await fixture.send("GET", "/v1/schema", headers: header).status == 200)

        try await fixture.server.revokeToken(id: made.id)

        #expect(try await fixture.send("GET", "/v1/schema", headers: header).status == 401)
        await fixture.server.close()
    }

    @Test(
        arguments: [
            ("Fieldpost-Protocol", "2", 400, "protocol-too-new"),
            ("Fieldpost-Protocol", "x", 400, "malformed"),
            ("Fieldpost-Device", "tablet", 400, "malformed"), ("Fieldpost-Schema", "0", 400, "malformed"),
            ("Content-Encoding", "br", 415, "unsupported-encoding"),
            ("Content-Length", "1048577", 413, "body-too-large"),
            ("Content-Length", "99999999999999", 413, "body-too-large"),
        ])
    func `a head that cannot be served is refused without its body`(
        name: String,
        value: String,
        status: Int,
        problem: String
    ) async throws {
        let fixture = try await RoutesFixture()

        let reply = try await fixture.send("POST", "/v1/push", headers: [name: value])

        #expect(reply.status == status)
        #expect(reply.problem == problem)
        #expect(fixture.lines.objects.last?["status"] == .integer(Int64(status)))
        await fixture.server.close()
    }

    @Test func `the probe gives back its nonce, without a token, and nothing that could be a header`()
        async throws
    {
        let fixture = try await RoutesFixture()
        let nobody: [String: String?] = ["Authorization": nil]

        #expect(
            try await fixture.send("GET", "/v1/probe?nonce=a-B_9", headers: nobody).headers["fieldpost-probe"]
                == "a-B_9"
        )
        for query in [
            "", "?nonce=", "?nonce=a%0D%0Ab", "?nonce=a+b", "?nonce=" + String(repeating: "x", count: 129),
        ] {
            #expect(try await fixture.send("GET", "/v1/probe" + query, headers: nobody).status == 400)
        }
        await fixture.server.close()
    }
}
