import FieldpostCore
import FieldpostServer
import Foundation
import Testing

@testable import FieldpostServerHTTP

/// `GET /v1/events`, over real sockets.
@Suite struct RoutesEventsTests {
    /// A server whose heartbeats come when the test says so.
    private final class Served: Sendable {
        let fixture: RoutesFixture
        let http: HTTPServer
        let streams: EventStreams
        let address: HTTPServerAddress
        private let turns = Turns()

        init(scopes: Credential.Scopes = .all, eventStreams: Int = 8_000) async throws {
            fixture = try await RoutesFixture(scopes: scopes)
            var clock = HTTPServerClock.system
            let turns = turns
            clock.sleep = { _ in try await turns.next() }
            let lines = fixture.lines
            let routes = Routes(
                server: fixture.server,
                log: RequestLog { lines.append($0) },
                clock: clock,
                eventStreams: eventStreams
            )
            streams = routes.streams
            http = HTTPServer(service: routes)
            address = try http.listen(host: "127.0.0.1", port: 0)
            http.start()
        }

        /// Lets a whole round of heartbeats pass.
        func beat() { turns.add(Int(EventStreams.ticksPerHeartbeat)) }

        func client(_ query: String = "", token: String? = nil, device: Int = 901) throws -> RawClient {
            let client = try RawClient(address)
            client.send(
                """
                GET /v1/events\(query) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(token ?? fixture.token)\r\n\
                Fieldpost-Device: \(RoutesFixture.id(device))\r\n\r\n
                """
            )
            return client
        }

        /// A client that has all there is, and its answer's head.
        func listener(token: String? = nil, device: Int = 901) async throws -> (RawClient, String) {
            let page = try await fixture.send(
                "GET",
                "/v1/pull",
                headers: token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
            )
            let cursor = page.json["cursor"]?.string ?? ""
            let client = try client("?cursor=\(cursor)", token: token, device: device)
            return (client, try await client.text(through: "retry: 5000\n\n\r\n"))
        }

        func push(_ number: Int, device: Int = 900) async throws {
            let answer = try await fixture.send(
                "POST",
                "/v1/push",
                RoutesFixture.push(number),
                headers: ["Fieldpost-Device": RoutesFixture.id(device)]
            )
            #expect(answer.status == 200)
        }

        func stop(grace: Duration = .zero) async {
            turns.end()
            await http.stop(grace: grace)
            await fixture.server.close()
        }
    }

    /// Hands out the ticks of a clock that stands still between them.
    private final class Turns: Sendable {
        private let state = Guarded(
            (left: 0, isOver: false, waiter: CheckedContinuation<Void, any Error>?.none)
        )

        func add(_ count: Int) {
            let waiter = state.withLock { state in
                state.left += count
                guard let waiter = state.waiter else { return CheckedContinuation<Void, any Error>?.none }
                state.waiter = nil
                state.left -= 1
                return waiter
            }
            waiter?.resume()
        }

        func end() {
            let waiter = state.withLock { state in
                state.isOver = true
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(throwing: CancellationError())
        }

        func next() async throws {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.isOver { return .failure(CancellationError()) }
                    if state.left > 0 {
                        state.left -= 1
                        return .success(())
                    }
                    state.waiter = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        }
    }

    private static let changed = "event: changed\ndata: {}\n\n"

    @Test func `a listener is told at once what another device has pushed`() async throws {
        let served = try await Served()
        let (client, head) = try await served.listener()

        try await served.push(1)
        let told = try await client.text(through: Self.changed)

        #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        for header in ["Fieldpost-Protocol: 1", "Content-Type: text/event-stream", "Cache-Control: no-store"]
        {
            #expect(head.contains("\(header)\r\n"))
        }
        #expect(told.hasSuffix(Self.changed))
        await served.stop()
    }

    @Test func `the device that pushed is not told of its own change, the others are`() async throws {
        let served = try await Served()
        let (own, _) = try await served.listener(device: 900)
        let (other, _) = try await served.listener(device: 901)

        try await served.push(1, device: 900)
        _ = try await other.text(through: Self.changed)
        served.beat()
        let next = try await own.text(through: "\n\n\r\n")

        #expect(next.hasSuffix(":\n\n\r\n"))
        #expect(!next.contains("changed"))
        await served.stop()
    }

    @Test func `a change in another scope is none, a heartbeat is`() async throws {
        let served = try await Served()
        let stranger = try await served.fixture.server.createToken(name: "B2", scopes: .only(["B2"])).token
        let neighbour = try await served.fixture.server.createToken(name: "B1", scopes: .only(["B1"])).token
        let (blind, _) = try await served.listener(token: stranger, device: 902)
        let (seeing, _) = try await served.listener(token: neighbour, device: 903)

        try await served.push(1)
        _ = try await seeing.text(through: Self.changed)
        served.beat()
        let next = try await blind.text(through: "\n\n\r\n")

        #expect(!next.contains("changed"))
        await served.stop()
    }

    @Test func `a cursor that is behind, or none, is told so at once`() async throws {
        let served = try await Served()
        let behind = try await served.fixture.send("GET", "/v1/pull").json["cursor"]?.string ?? ""
        try await served.push(1)

        for query in ["", "?cursor=\(behind)", "?cursor=nonsense"] {
            let client = try served.client(query)
            let text = try await client.text(through: Self.changed)
            #expect(text.contains("retry: 5000"))
            client.leave()
        }
        await served.stop()
    }

    @Test func `a token that is unknown is refused, and one that is revoked ends its stream`() async throws {
        let served = try await Served()
        let stranger = try await served.client(token: "nobody").answer()
        let (token, id) = try await served.fixture.server.createToken(name: "lost", scopes: .all)
        let (client, _) = try await served.listener(token: token)

        try await served.fixture.server.revokeToken(id: id)
        try await served.push(1)
        let rest = try await client.text(through: "0\r\n\r\n")

        #expect(stranger.status == 401)
        #expect(!rest.contains("changed"))
        await served.stop()
    }

    @Test func `a revoked token's stream ends with the next heartbeat where nothing changes`() async throws {
        let served = try await Served()
        let (token, id) = try await served.fixture.server.createToken(name: "lost", scopes: .all)
        let (client, _) = try await served.listener(token: token)

        try await served.fixture.server.revokeToken(id: id)
        served.beat()

        #expect(try await client.text(through: "0\r\n\r\n").hasSuffix("0\r\n\r\n"))
        await served.stop()
    }

    @Test func `one stream too many is told when to come again, and a place is free once a client has gone`()
        async throws
    {
        let served = try await Served(eventStreams: 1)
        let (first, _) = try await served.listener()

        let second = try await served.client().answer()
        first.leave()
        while served.streams.count > 0 { await Task.yield() }
        let (_, head) = try await served.listener()

        #expect(second.status == 503)
        #expect(second.headers["retry-after"] == "60")
        #expect(second.headers["fieldpost-protocol"] == "1")
        #expect(second.body.contains("too-many-streams"))
        #expect(head.hasPrefix("HTTP/1.1 200 OK"))
        await served.stop()
    }

    @Test func `a stop ends the streams cleanly`() async throws {
        let served = try await Served()
        let (client, _) = try await served.listener()

        async let stopped: Void = served.stop(grace: .seconds(5))
        let rest = try await client.textUntilClosed()
        client.leave()
        await stopped

        #expect(rest.hasSuffix("0\r\n\r\n"))
        #expect(served.streams.count == 0)
    }
}
