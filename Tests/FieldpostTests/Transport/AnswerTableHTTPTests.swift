import FieldpostCore
import FieldpostGzip
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// The whole table “what an answer means” over real sockets: what each answer does to one waiting operation, how many
/// requests it costs, and when the next may go.
@Suite struct AnswerTableHTTPTests {
    /// What a server answers, and what must come of it.
    struct Line: Sendable, CustomTestStringConvertible {
        var name: String
        /// The replies of one run; `id` is the waiting operation's, `other` the port of another host.
        var replies: @Sendable (_ id: String, _ other: UInt16) -> [RawServer.Reply]
        /// Requests of the run.
        var requests = 1
        /// Where the operation stands afterwards; `nil` once it is settled.
        var state: OutboxItem.State? = .pending
        var attempts = 0
        /// Milliseconds until the next run may start by itself.
        var due: Int64 = 0
        var status: SyncStatus.State
        /// Whether nothing moves and the device gives up waiting.
        var isStalled = false
        /// What the device calls its token, request by request.
        var tokens: [String] = []

        var testDescription: String { name }
    }

    // MARK: Replies

    private static let page = RawServer.Reply(
        body: Array(#"{"changes":[],"cursor":"c","more":false,"server_time":5}"#.utf8)
    )

    private static func result(_ id: String, _ members: String) -> [UInt8] {
        Array(#"{"results":[{"id":"\#(id)",\#(members)}],"server_time":5}"#.utf8)
    }

    private static func applied(_ id: String, headers: [String] = []) -> RawServer.Reply {
        .init(headers: headers, body: result(id, #""status":"applied","version":1"#))
    }

    /// The answer to the question that follows a dead letter of the device's own.
    private static func voided(_ id: String) -> RawServer.Reply {
        .init(body: result(id, #""status":"rejected","code":"voided""#))
    }

    private static func problem(_ status: String, _ code: String) -> RawServer.Reply {
        let number = Int(status.prefix(3)) ?? 0
        return .init(status, body: Problem(code, status: number, detail: "why").bytes())
    }

    // MARK: Lines

    /// No answer that counts: the network's fault, whatever it is.
    static let unreachable: [Line] = [
        line("silence until the stall time") { _, _ in [.init([], then: .hold)] },
        line("a reset before the answer") { _, _ in [.init([], then: .reset)] },
        line("a reset within the answer") { id, _ in
            let whole = applied(id)
            return [.init(whole.bytes.dropLast(10), then: .reset)]
        },
        line("a close without an answer") { _, _ in [.init([], then: .close)] },
        line("an answer that ends early") { id, _ in
            [.init(applied(id).bytes.dropLast(10), then: .close)]
        },
        line("gzip that ends early") { id, _ in
            let long = Array(repeating: 0x20, count: 9_000) + result(id, #""status":"applied","version":1"#)
            let cut = Array(Gzip.compress(long).dropLast(20))
            return [.init(headers: ["Content-Encoding: gzip"], body: cut)]
        },
        line("JSON that ends early") { id, _ in
            [.init(body: result(id, #""status":"applied","version":1"#).dropLast(1))]
        },
        line("JSON of another shape") { _, _ in [.init(body: Array(#"{"ok":true}"#.utf8))] },
        line("an answer longer than any may be") { id, _ in
            let head = "HTTP/1.1 200 OK\r\nFieldpost-Protocol: 1\r\nContent-Length: 40000000\r\n\r\n"
            return [.init(Array(head.utf8) + [UInt8](repeating: 0x20, count: 34_000_000), then: .close)]
        },
        line("a page of HTML with 200") { _, _ in
            [.init(headers: ["Content-Type: text/html"], body: Array("<html>".utf8), isOurs: false)]
        },
        line("results without our header") { id, _ in
            [.init(body: result(id, #""status":"applied","version":1"#), isOurs: false)]
        },
        line("a redirect to the same origin") { _, _ in [.init("307 T", headers: ["Location: /v1/push"])] },
        line("a redirect to another origin") { _, other in
            [.init("307 T", headers: ["Location: http://127.0.0.1:\(other)/v1/push"])]
        },
        line("a redirect as a GET to another origin") { _, other in
            [.init("302 F", headers: ["Location: http://127.0.0.1:\(other)/"], isOurs: false)]
        },
        line("results that name nothing of ours") { _, _ in
            [applied("0191b2a0-0000-7000-8000-0000000000ff")]
        },
        line("no results at all") { _, _ in
            [.init(body: Array(#"{"results":[],"server_time":5}"#.utf8))]
        },
    ]

    private static func line(
        _ name: String,
        _ replies: @escaping @Sendable (String, UInt16) -> [RawServer.Reply]
    ) -> Line {
        Line(
            name: name,
            replies: replies,
            due: 1_000,
            status: .offline,
            isStalled: name.hasPrefix("silence")
        )
    }

    /// The server is struggling: nothing counts, and it says when to come back.
    static let busy: [Line] =
        [408, 425, 429, 502, 503, 504].flatMap { status in
            [
                Line(
                    name: "\(status)",
                    replies: { _, _ in [.init("\(status) X")] },
                    due: 1_000,
                    status: .waiting
                ),
                Line(
                    name: "\(status) with Retry-After in seconds",
                    replies: { _, _ in [.init("\(status) X", headers: ["Retry-After: 30"], isOurs: false)] },
                    due: 30_000,
                    status: .waiting
                ),
                // The clock of these tests stands at Sun, 30 Nov 2025 00:00:00 GMT.
                Line(
                    name: "\(status) with Retry-After as a date",
                    replies: { _, _ in
                        [.init("\(status) X", headers: ["Retry-After: Sun, 30 Nov 2025 00:02:00 GMT"])]
                    },
                    due: 120_000,
                    status: .waiting
                ),
            ]
        } + [
            Line(
                name: "409 in progress",
                replies: { _, _ in [problem("409 X", "in-progress")] },
                due: 1_000,
                status: .waiting
            )
        ]

    /// Someone has to do something first; nothing fails meanwhile.
    static let paused: [Line] = [
        Line(
            name: "401 twice",
            replies: { _, _ in [.init("401 X"), .init("401 X")] },
            requests: 2,
            status: .needsSignIn,
            tokens: ["stale", "fresh"]
        ),
        Line(
            name: "401 with a challenge, twice",
            replies: { _, _ in
                let reply = RawServer.Reply("401 X", headers: ["WWW-Authenticate: Basic realm=\"x\""])
                return [reply, reply]
            },
            requests: 2,
            status: .needsSignIn
        ),
        Line(
            name: "403 another account",
            replies: { _, _ in [problem("403 X", "other-account")] },
            status: .needsSignIn
        ),
        Line(name: "403", replies: { _, _ in [problem("403 X", "not-a-device")] }, status: .forbidden),
        Line(name: "403 without a reason", replies: { _, _ in [.init("403 X")] }, status: .forbidden),
        Line(name: "404", replies: { _, _ in [.init("404 X", isOurs: false)] }, status: .misconfigured),
        Line(name: "405", replies: { _, _ in [problem("405 X", "method")] }, status: .misconfigured),
        Line(
            name: "409 server behind",
            replies: { _, _ in [problem("409 X", "server-behind")] },
            status: .serverBehind
        ),
        Line(name: "426", replies: { _, _ in [.init("426 X")] }, status: .needsUpgrade),
        Line(
            name: "400 protocol too new",
            replies: { _, _ in [problem("400 X", "protocol-too-new")] },
            status: .needsUpgrade
        ),
        Line(
            name: "results in a newer protocol",
            replies: { id, _ in
                let body = result(id, #""status":"applied","version":1"#)
                return [.init(headers: ["Fieldpost-Protocol: 2"], body: body, isOurs: false)]
            },
            status: .needsUpgrade
        ),
        Line(
            name: "413 in a newer protocol",
            replies: { _, _ in [.init("413 X", headers: ["Fieldpost-Protocol: 2"], isOurs: false)] },
            status: .needsUpgrade
        ),
    ]

    /// The server will never take it: a dead letter, and the run goes on.
    static let refused: [Line] = [
        Line(
            name: "rejected",
            replies: { id, _ in
                [.init(body: result(id, #""status":"rejected","code":"check""#)), page]
            },
            requests: 2,
            state: .failed,
            attempts: 1,
            status: .needsAttention
        ),
        Line(
            name: "the key was used for something else",
            replies: { id, _ in
                [.init(body: result(id, #""status":"rejected","code":"key_reused""#)), page]
            },
            requests: 2,
            state: .failed,
            attempts: 1,
            status: .needsAttention
        ),
        Line(
            name: "413 alone",
            replies: { id, _ in [.init("413 X", isOurs: false), voided(id), page] },
            requests: 3,
            state: .failed,
            attempts: 1,
            status: .needsAttention
        ),
        Line(
            name: "422 alone",
            replies: { id, _ in [problem("422 X", "key-reused"), voided(id), page] },
            requests: 3,
            state: .failed,
            attempts: 1,
            status: .needsAttention
        ),
        Line(
            name: "500 alone",
            replies: { _, _ in [.init("500 X"), page] },
            requests: 2,
            attempts: 1,
            due: 1_000,
            status: .waiting
        ),
        Line(
            name: "retry later",
            replies: { id, _ in
                [.init(body: result(id, #""status":"retry","after_ms":7000"#)), page]
            },
            requests: 2,
            attempts: 1,
            due: 7_000,
            status: .waiting
        ),
    ]

    /// It is settled in the end.
    static let settled: [Line] = [
        Line(
            name: "applied",
            replies: { id, _ in [applied(id), page] },
            requests: 2,
            state: nil,
            status: .allSynced
        ),
        Line(
            name: "applied, and the server asks for calm",
            replies: { id, _ in [applied(id, headers: ["Backoff: 90"]), page] },
            requests: 2,
            state: nil,
            due: 90_000,
            status: .allSynced
        ),
        Line(
            name: "applied, compressed",
            replies: { id, _ in
                let body = Gzip.compress(result(id, #""status":"applied","version":1"#))
                return [.init(headers: ["Content-Encoding: gzip"], body: body), page]
            },
            requests: 2,
            state: nil,
            status: .allSynced
        ),
        Line(
            name: "401, then the fresh token is taken",
            replies: { id, _ in [.init("401 X"), applied(id), page] },
            requests: 3,
            state: nil,
            status: .allSynced,
            tokens: ["stale", "fresh", "fresh"]
        ),
        Line(
            name: "403 because the token expired, then the fresh one is taken",
            replies: { id, _ in [problem("403 X", "token-expired"), applied(id), page] },
            requests: 3,
            state: nil,
            status: .allSynced,
            tokens: ["stale", "fresh", "fresh"]
        ),
        Line(
            name: "409 device reset, then the new identity is taken",
            replies: { id, _ in [problem("409 X", "device-reset"), applied(id), page] },
            requests: 3,
            state: nil,
            status: .allSynced
        ),
        Line(
            name: "a conflict",
            replies: { id, _ in
                [
                    .init(body: result(id, #""status":"conflict","version":4,"row":null,"deleted":true"#)),
                    page,
                ]
            },
            requests: 2,
            state: nil,
            status: .needsAttention
        ),
    ]

    // MARK: The test

    @Test(arguments: unreachable + busy + paused + refused + settled)
    func `each answer does to the operation what its line says, and no more`(line: Line) async throws {
        let shop = try await Shop()
        let id = try await shop.note("a")
        let before = try #require(try await shop.store.outbox().first)
        let other = try RawServer([.init(body: Array("{}".utf8))])
        // What would settle everything, were it asked for.
        let later = [Self.applied(id.text), Self.page]
        let server = try RawServer(line.replies(id.text, other.port) + later)
        let engine = await engine(shop, server, isStalled: line.isStalled)

        let report = await engine.sync()

        #expect(server.requests.count == line.requests)
        #expect(other.connections == 0)
        let after = try await shop.store.outbox().first
        #expect(after?.state == line.state)
        if let after {
            #expect(after.attempts == line.attempts)
            #expect((after.operation, after.seq) == (before.operation, before.seq))
            #expect(after.change == before.change)
        }
        #expect(try await due(shop) == line.due)
        let status = try await shop.store.status()
        #expect(status.state == line.status)
        #expect(status.inFlight == 0)
        let isOver = line.status == .allSynced || line.status == .needsAttention || line.attempts > 0
        #expect(report.reason.isEmpty == isOver)
        if !line.tokens.isEmpty { #expect(server.requests.map(token) == line.tokens) }
        // Every repetition has the same bytes.
        let bodies = Set(server.requests.filter { $0.hasPrefix("POST /v1/push") }.map(body))
        #expect(bodies.count == 1)
        if line.state == .pending {
            #expect(await engine.sync().pushed == 1)
            #expect(try await shop.store.outbox() == [])
            #expect(Set(server.requests.filter { $0.hasPrefix("POST /v1/push") }.map(body)) == bodies)
        }
        await server.stop()
        await other.stop()
    }

    private func engine(_ shop: Shop, _ server: RawServer, isStalled: Bool) async -> SyncEngine {
        var environment = shop.clock.environment
        if isStalled {
            let isFirst = Locked(true)
            environment.sleep = { [sleep = environment.sleep] duration in
                let passes = isFirst.withLock { first in
                    defer { first = false }
                    return first
                }
                // The stall time passes at once, but not before the request has left.
                if passes { await server.untilRequests(1) } else { try await sleep(duration) }
            }
        }
        let transport = HTTPTransport(
            server: URL(string: "http://127.0.0.1:\(server.port)")!,
            environment: environment
        )
        let engine = shop.engine(transport) { refresh in refresh ? "fresh" : "stale" }
        var steady = Backoff()
        steady.jitter = .none
        await engine.setBackoff(steady)
        return engine
    }

    /// Milliseconds until the next run may start by itself, or an operation may go again.
    private func due(_ shop: Shop) async throws -> Int64 {
        try await shop.store.writer.perform { db, now, _ in
            let run = try Schedule(db).due(now: now)
            let operation = try PushPlan.nextDue(db) ?? 0
            return max(0, max(run, operation) - now.milliseconds)
        }
    }

    private func token(_ request: String) -> String {
        request.split(separator: "\r\n").first { $0.lowercased().hasPrefix("authorization:") }
            .map { String($0.split(separator: " ").last ?? "") } ?? ""
    }

    private func body(_ request: String) -> String {
        request.range(of: "\r\n\r\n").map { String(request[$0.upperBound...]) } ?? ""
    }
}
