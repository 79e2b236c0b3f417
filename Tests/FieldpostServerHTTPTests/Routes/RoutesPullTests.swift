import FieldpostCore
import FieldpostGzip
import FieldpostServer
import Testing

@testable import FieldpostServerHTTP

@Suite struct RoutesPullTests {
    @Test func `pages follow the cursor of the one before`() async throws {
        let fixture = try await RoutesFixture()
        _ = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1, 2, 3))

        let first = try await fixture.send("GET", "/v1/pull?limit=2")
        let page = try PullPage(bytes: first.bytes)
        let second = try PullPage(
            bytes: try await fixture.send("GET", "/v1/pull?limit=2&cursor=\(page.cursor)").bytes
        )

        #expect(page.changes.map(\.row) == [RoutesFixture.id(1), RoutesFixture.id(2)])
        #expect(page.more && !second.more)
        #expect(second.changes.map(\.row) == [RoutesFixture.id(3)])
        #expect(page.settled.map(\.id.text) == [RoutesFixture.id(501), RoutesFixture.id(502)])
        await fixture.server.close()
    }

    @Test func `a cursor of somewhere else is 410`() async throws {
        let fixture = try await RoutesFixture()

        let reply = try await fixture.send("GET", "/v1/pull?cursor=made-up")

        #expect(reply.status == 410)
        #expect(reply.problem == "resync-required")
        await fixture.server.close()
    }

    @Test(arguments: ["0", "-1", "many"])
    func `a limit that is none is refused`(limit: String) async throws {
        let fixture = try await RoutesFixture()

        #expect(try await fixture.send("GET", "/v1/pull?limit=\(limit)").status == 400)
        await fixture.server.close()
    }

    @Test func `rows of foreign scopes stay out`() async throws {
        let fixture = try await RoutesFixture()
        _ = try await fixture.send("POST", "/v1/push", RoutesFixture.push(1))
        let other = try await fixture.server.createToken(name: "other", scopes: .only(["B2"]))

        let reply = try await fixture.send(
            "GET",
            "/v1/pull",
            headers: ["Authorization": "Bearer \(other.token)"]
        )

        #expect(try PullPage(bytes: reply.bytes).changes.isEmpty)
        await fixture.server.close()
    }

    @Test func `a large answer is packed for who takes it`() async throws {
        let fixture = try await RoutesFixture()
        _ = try await fixture.send(
            "POST",
            "/v1/push",
            RoutesFixture.push(1, title: String(repeating: "long ", count: 500))
        )

        let plain = try await fixture.send("GET", "/v1/pull")
        let packed = try await fixture.send(
            "GET",
            "/v1/pull",
            headers: ["Accept-Encoding": "deflate, gzip;q=0.5"]
        )

        #expect(plain.headers["content-encoding"] == nil)
        #expect(packed.headers["content-encoding"] == "gzip")
        #expect(packed.headers["vary"] == "Accept-Encoding")
        let unpacked = try Gzip.decompress(packed.bytes, limit: 1 << 20)
        #expect(try PullPage(bytes: unpacked).changes == PullPage(bytes: plain.bytes).changes)
        await fixture.server.close()
    }

    @Test(
        arguments: [
            (nil, false), ("", false), ("gzip", true), ("GZIP", true), ("*", true), ("gzip;q=0", false),
            ("br, gzip; q=0.001", true), ("identity", false), ("xgzip", false),
        ] as [(String?, Bool)]
    )
    func `Accept-Encoding is read with its weights`(header: String?, accepts: Bool) {
        #expect(Answer.acceptsGzip(header) == accepts)
    }

    @Test func `the schema is served as its file`() async throws {
        let fixture = try await RoutesFixture()

        let reply = try await fixture.send("GET", "/v1/schema")

        #expect(try Schema(json: reply.bytes) == RoutesFixture.schema)
        await fixture.server.close()
    }

    @Test func `a server that closed its store is alive but not ready`() async throws {
        let fixture = try await RoutesFixture()
        await fixture.server.close()

        #expect(try await fixture.send("GET", "/healthz").status == 200)
        #expect(try await fixture.send("GET", "/readyz").status == 503)
    }
}
