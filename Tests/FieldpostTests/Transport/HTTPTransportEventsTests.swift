import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// Listening to a server over real sockets.
@Suite struct HTTPTransportEventsTests {
    private let clock = ManualClock()
    private let probed = RawServer.Reply("204 No Content", headers: ["Fieldpost-Probe: 7f"])
    private let head = """
        HTTP/1.1 200 OK\r\nFieldpost-Protocol: 1\r\nContent-Type: text/event-stream\r\n\
        Transfer-Encoding: chunked\r\n\r\n
        """

    private func chunk(_ text: String) -> String {
        String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n"
    }

    private func events(_ server: RawServer) throws -> ServerEvents {
        let context = RequestContext(
            token: "secret",
            device: "0191b2a0-0000-7000-8000-00000000000d",
            schema: 3,
            now: clock.now,
            nonce: 0x7f
        )
        let transport = HTTPTransport(
            server: try #require(URL(string: "http://127.0.0.1:\(server.port)")),
            environment: clock.environment
        )
        return try #require(transport.events(cursor: "a+b", context))
    }

    /// What listening to one reply brings, and why it ends.
    private func heard(_ replies: RawServer.Reply...) async throws -> (
        events: [ServerEvent], end: ExchangeFailure?
    ) {
        let server = try RawServer(replies)
        var heard: [ServerEvent] = []
        var end: ExchangeFailure?
        do {
            for try await event in try events(server) { heard.append(event) }
        } catch let failure as ExchangeFailure {
            end = failure
        }
        await server.stop()
        return (heard, end)
    }

    @Test func `the server is probed without the token, then listened to on the same connection`()
        async throws
    {
        let text = head + chunk("retry: 700\n\n") + chunk(": \n\nevent: chan") + chunk("ged\ndata: {}\n\n")
        let server = try RawServer([probed, .init(Array((text + "0\r\n\r\n").utf8))])

        var heard: [ServerEvent] = []
        for try await event in try events(server) { heard.append(event) }

        #expect(heard == [.opened, .retry(milliseconds: 700), .changed])
        #expect(server.requests[0].hasPrefix("GET /v1/probe?nonce=7f "))
        #expect(!server.requests[0].contains("secret"))
        #expect(server.requests[1].hasPrefix("GET /v1/events?cursor=a%2Bb "))
        #expect(server.requests[1].contains("Bearer secret"))
        #expect(server.connections == 1)
        await server.stop()
    }

    @Test func `a portal never sees the token`() async throws {
        let server = try RawServer([
            .init(headers: ["Content-Type: text/html"], body: Array("<h1>Hello</h1>".utf8), isOurs: false)
        ])

        await #expect(throws: ExchangeFailure.self) { for try await _ in try events(server) {} }

        #expect(server.requests.count == 1)
        #expect(!server.requests[0].contains("secret"))
        await server.stop()
    }

    @Test func `a refusal says why`() async throws {
        let unknown = try await heard(probed, .init("401 Unauthorized"))
        let full = try await heard(probed, .init("503 Service Unavailable", headers: ["Retry-After: 60"]))
        let older = try await heard(probed, .init("404 Not Found"))

        #expect(unknown.end == .unauthenticated)
        #expect(full.end == .busy(retryAfterSeconds: 60))
        guard case .misconfigured? = older.end else {
            Issue.record("\(String(describing: older.end))"); return
        }
        #expect(unknown.events.isEmpty && full.events.isEmpty && older.events.isEmpty)
    }

    @Test func `an answer that is no stream of events is none`() async throws {
        let page = try await heard(
            probed,
            .init(headers: ["Content-Type: application/json"], body: Array("{}".utf8))
        )

        guard case .unreachable? = page.end else { Issue.record("\(String(describing: page.end))"); return }
        #expect(page.events.isEmpty)
    }

    @Test func `a line without a heartbeat for 45 seconds is dead`() async throws {
        let server = try RawServer([probed, .init(Array((head + chunk("retry: 700\n\n")).utf8), then: .hold)])
        var iterator = try events(server).makeAsyncIterator()
        #expect(try await iterator.next() == .opened)
        #expect(try await iterator.next() == .retry(milliseconds: 700))
        let looks = clock.sleeps.count
        let isOver = Locked(false)
        let time = Task { [clock] in
            while !isOver.withLock({ $0 }) {
                clock.advance(by: .seconds(15))
                await Task.yield()
            }
        }

        await #expect(throws: ExchangeFailure.unreachable("no byte moved for 45.0 seconds")) {
            _ = try await iterator.next()
        }

        // Looked at every 15 seconds: three looks that found nothing, and one that may have found the last byte.
        #expect((2...4).contains(clock.sleeps.count - looks))
        isOver.withLock { $0 = true }
        await time.value
        await server.stop()
    }

    @Test func `who stops listening closes the line`() async throws {
        let server = try RawServer([probed, .init(Array((head + chunk("retry: 700\n\n")).utf8), then: .hold)])
        let listening = Task { for try await event in try events(server) where event == .opened { return } }

        try await listening.value

        // Waits for the thread that serves the connection, which ends when the client has closed it.
        await server.stop()
    }
}
