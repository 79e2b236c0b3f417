import FieldpostCore
import FieldpostGzip
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// What real answers over real sockets mean, right ones and wrong ones.
@Suite struct HTTPTransportTests {
    private static let results = Array(#"{"results":[],"server_time":5}"#.utf8)
    private static let page = Array(#"{"changes":[],"cursor":"c","more":false,"server_time":5}"#.utf8)
    private let push = OutgoingPush(body: Array(#"{"groups":[]}"#.utf8))
    private let clock = ManualClock()

    private var context: RequestContext {
        RequestContext(
            token: "secret",
            device: "0191b2a0-0000-7000-8000-00000000000d",
            schema: 3,
            now: clock.now,
            nonce: 0x7f
        )
    }

    private func transport(_ port: UInt16) -> HTTPTransport {
        HTTPTransport(server: URL(string: "http://127.0.0.1:\(port)")!, environment: clock.environment)
    }

    /// What one push against one reply fails with.
    private func failure(_ replies: RawServer.Reply...) async throws -> ExchangeFailure? {
        let server = try RawServer(replies)
        let transport = transport(server.port)
        var failure: ExchangeFailure?
        do throws(ExchangeFailure) { _ = try await transport.push(push, context) } catch { failure = error }
        #expect(server.requests.count == 1)
        await server.stop()
        return failure
    }

    private func isUnreachable(_ failure: ExchangeFailure?) -> Bool {
        if case .unreachable? = failure { true } else { false }
    }

    // MARK: Right answers

    @Test func `a push carries its headers, and its answer is read`() async throws {
        let server = try RawServer([.init(headers: ["Backoff: 12"], body: Self.results)])

        let response = try await transport(server.port).push(push, context)

        #expect(response.results.isEmpty)
        #expect(response.calmSeconds == 12)
        let request = server.requests[0]
        #expect(request.hasPrefix("POST /v1/push HTTP/1.1"))
        for line in [
            "Authorization: Bearer secret", "Fieldpost-Device: 0191b2a0-0000-7000-8000-00000000000d",
            "Fieldpost-Schema: 3", "Fieldpost-Protocol: 1",
        ] { #expect(request.lowercased().contains(line.lowercased())) }
        #expect(request.hasSuffix(#"{"groups":[]}"#))
        await server.stop()
    }

    @Test func `a cursor arrives as it was given, whatever is in it`() async throws {
        let server = try RawServer([.init(body: Self.page)])

        _ = try await transport(server.port).pull(cursor: "a+b/c=d&e%20f #ü", context)

        let target = server.requests[0].split(separator: " ")[1]
        #expect(
            target.contains("cursor=a%2Bb/c%3Dd%26e%2520f%20%23%C3%BC")
                || target.contains("cursor=a%2Bb/c=d%26e%2520f%20%23%C3%BC")
        )
        await server.stop()
    }

    @Test func `a long body is compressed, and a compressed answer is read`() async throws {
        let long = OutgoingPush(
            body: Array(("{\"groups\":[]" + String(repeating: " ", count: 5_000) + "}").utf8)
        )
        let server = try RawServer([
            .init(headers: ["Content-Encoding: gzip"], body: Gzip.compress(Self.results))
        ])

        let response = try await transport(server.port).push(long, context)

        #expect(response.serverTime == Timestamp(milliseconds: 5))
        #expect(server.requests[0].lowercased().contains("content-encoding: gzip"))
        #expect(server.requests[0].utf8.count < 2_000)
        await server.stop()
    }

    @Test func `a probe is believed only with its own nonce, and carries no token`() async throws {
        let server = try RawServer([
            .init("204 No Content", headers: ["Fieldpost-Probe: 7f"]), .init("204 No Content"),
            .init(body: Array("<html>".utf8), isOurs: false),
        ])
        let transport = transport(server.port)

        let answers = [
            await transport.probe(context), await transport.probe(context), await transport.probe(context),
        ]

        #expect(answers == [true, false, false])
        #expect(server.requests.allSatisfy { !$0.lowercased().contains("authorization") })
        await server.stop()
    }

    // MARK: Portals and redirects

    @Test(arguments: ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
    func `a redirect to another origin is offline, and the other host sees no byte`(_ status: String)
        async throws
    {
        let other = try RawServer([.init(body: Self.results)])

        let failure = try await failure(
            .init(status, headers: ["Location: http://127.0.0.1:\(other.port)/v1/push"])
        )

        #expect(isUnreachable(failure))
        #expect(other.connections == 0)
        await other.stop()
    }

    @Test(arguments: ["302 Found", "307 Temporary"])
    func `a redirect to the same origin is offline too, and is not followed`(_ status: String) async throws {
        #expect(
            isUnreachable(
                try await failure(.init(status, headers: ["Location: /v1/push"]), .init(body: Self.results))
            )
        )
    }

    @Test func `a page of HTML with 200 is offline`() async throws {
        let failure = try await failure(
            .init(
                headers: ["Content-Type: text/html"],
                body: Array("<html>Welcome</html>".utf8),
                isOurs: false
            )
        )

        #expect(isUnreachable(failure))
    }

    // MARK: Broken answers

    @Test func `an answer that ends early is no answer`() async throws {
        var reply = RawServer.Reply(body: Self.results, then: .close)
        reply.bytes.removeLast(5)

        #expect(isUnreachable(try await failure(reply)))
    }

    @Test func `JSON that ends early is no answer, though its length is right`() async throws {
        #expect(isUnreachable(try await failure(.init(body: Self.results.dropLast(1)))))
    }

    @Test func `gzip that ends early is no answer`() async throws {
        let long = Array(
            (#"{"results":["# + String(repeating: " ", count: 10_000) + #"],"server_time":5}"#).utf8
        )
        let cut = Array(Gzip.compress(long).dropLast(12))

        #expect(isUnreachable(try await failure(.init(headers: ["Content-Encoding: gzip"], body: cut))))
    }

    @Test func `a reset in the middle is no answer`() async throws {
        var reply = RawServer.Reply(body: Self.results, then: .reset)
        reply.bytes.removeLast(10)

        #expect(isUnreachable(try await failure(reply)))
        #expect(isUnreachable(try await failure(RawServer.Reply([], then: .reset))))
    }

    @Test func `what is not HTTP is no answer`() async throws {
        #expect(
            isUnreachable(try await failure(RawServer.Reply(Array("220 smtp ready\r\n".utf8), then: .close)))
        )
    }

    @Test func `nobody there is offline`() async throws {
        let server = try RawServer([])
        await server.stop()

        do throws(ExchangeFailure) {
            _ = try await transport(server.port).push(push, context)
            Issue.record("someone answered")
        } catch { #expect(isUnreachable(error)) }
    }

    @Test func `an answer longer than any may be is cut off`() async throws {
        let head = Array("HTTP/1.1 200 OK\r\nFieldpost-Protocol: 1\r\nContent-Length: 40000000\r\n\r\n".utf8)
        let reply = RawServer.Reply(head + [UInt8](repeating: 0x20, count: 34_000_000), then: .hold)

        #expect(isUnreachable(try await failure(reply)))
    }

    // MARK: Statuses

    @Test func `401 with a Basic challenge is an answer and does not hang`() async throws {
        let failure = try await failure(
            .init("401 Unauthorized", headers: ["WWW-Authenticate: Basic realm=\"x\""])
        )

        #expect(failure == .unauthenticated)
    }

    @Test(
        arguments: [
            ("503 Busy", .busy(retryAfterSeconds: 3)), ("500 Failed", .serverError(500)),
            ("413 Long", .tooLarge),
            ("401 Unauthorized", .unauthenticated), ("410 Gone", .resyncRequired),
            ("409 Conflict", .inProgress),
        ] as [(String, ExchangeFailure)]
    )
    func `a status means over the wire what the table says`(_ status: String, _ expected: ExchangeFailure)
        async throws
    {
        #expect(try await failure(.init(status, headers: ["Retry-After: 3"])) == expected)
    }

    // MARK: Stalls and cancellation

    @Test func `a server that stays silent is given up after the stall time`() async throws {
        let server = try RawServer([.init([], then: .hold)])
        var environment = clock.environment
        // The stall time passes at once, but not before the request has left.
        environment.sleep = { duration in
            #expect(duration == .seconds(8))
            await server.untilRequests(1)
        }
        let transport = HTTPTransport(
            server: URL(string: "http://127.0.0.1:\(server.port)")!,
            environment: environment
        )

        do throws(ExchangeFailure) {
            _ = try await transport.push(push, context)
            Issue.record("someone answered")
        } catch { #expect(error == .unreachable("no byte moved for 8.0 seconds")) }
        await server.stop()
    }

    @Test func `a request that is cancelled before it starts is never sent`() async throws {
        let server = try RawServer([.init(body: Self.results)])
        let transport = transport(server.port)
        let (push, context) = (push, context)

        let pushing = Task { () -> ExchangeFailure? in
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(ExchangeFailure) { _ = try await transport.push(push, context) } catch { return error }
            return nil
        }

        #expect(isUnreachable(await pushing.value))
        #expect(server.requests.isEmpty)
        await server.stop()
    }

    @Test(arguments: [0, 40, 80])
    func `a request that is cancelled while the answer is silent or half here returns at once`(_ sent: Int)
        async throws
    {
        let whole = RawServer.Reply(body: Self.results)
        let server = try RawServer([.init(Array(whole.bytes.prefix(sent)), then: .hold)])
        let transport = transport(server.port)
        let (push, context) = (push, context)
        let pushing = Task { () -> ExchangeFailure? in
            do throws(ExchangeFailure) { _ = try await transport.push(push, context) } catch { return error }
            return nil
        }
        await server.untilRequests(1)

        pushing.cancel()

        // The clock stands still: nothing but the cancellation can end it.
        #expect(isUnreachable(await pushing.value))
        await server.stop()
    }
}
