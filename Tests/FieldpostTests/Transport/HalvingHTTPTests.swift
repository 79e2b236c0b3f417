import FieldpostCore
import FieldpostTesting
import Foundation
import Testing

@testable import Fieldpost

/// One change that a server cannot take among many that it can, over real sockets.
@Suite struct HalvingHTTPTests {
    /// How a server, or what stands before it, treats a request that it cannot take.
    enum Refusal: CaseIterable {
        case tooLarge, malformed, failure, reset

        var reply: RawServer.Reply {
            switch self {
            case .tooLarge: .init("413 X", headers: ["Content-Type: text/html"], isOurs: false)
            case .malformed: .init("400 X", body: Problem("malformed", status: 400, detail: "why").bytes())
            case .failure: .init("500 X")
            case .reset: .init([], then: .reset)
            }
        }
    }

    /// The ids in a push, in order.
    private static func ids(_ request: String) -> [String] {
        let body = request.range(of: "\r\n\r\n").map { String(request[$0.upperBound...]) } ?? ""
        return (try? PushRequest(bytes: Array(body.utf8)))?.groups.flatMap(\.operations).map(\.id.text) ?? []
    }

    /// A server that applies every push that `isRefused` lets through.
    private static func server(_ refusal: Refusal, _ isRefused: @escaping @Sendable ([String]) -> Bool) throws
        -> RawServer
    {
        try RawServer(answering: { request in
            guard request.hasPrefix("POST") else {
                return .init(body: Array(#"{"changes":[],"cursor":"c","more":false,"server_time":5}"#.utf8))
            }
            let ids = ids(request)
            if isRefused(ids) { return refusal.reply }
            let results = ids.map { #"{"id":"\#($0)","status":"applied","version":1}"# }
            return .init(
                body: Array(#"{"results":[\#(results.joined(separator: ","))],"server_time":5}"#.utf8)
            )
        })
    }

    private func engine(_ shop: Shop, _ server: RawServer, _ refusal: Refusal) -> SyncEngine {
        let url = URL(string: "http://127.0.0.1:\(server.port)")!
        // Bodies as they are, so that the server of this test can read them.
        var settings = HTTPTransport.Settings()
        settings.compressAbove = .max
        // Foundation loses some resets of a connection that was used before: only the stall time ends those requests.
        if refusal == .reset { settings.stall = .seconds(1) }
        let environment = refusal == .reset ? Environment.live : shop.clock.environment
        return shop.engine(HTTPTransport(server: url, settings: settings, environment: environment))
    }

    private func shop() async throws -> (Shop, [OperationID]) {
        let shop = try await Shop()
        var ids: [OperationID] = []
        for number in 0..<8 { ids.append(try await shop.note("n\(number)")) }
        return (shop, ids)
    }

    @Test(arguments: [Refusal.tooLarge, .malformed])
    func `one change that is refused is a dead letter, and the others get through`(refusal: Refusal)
        async throws
    {
        let (shop, ids) = try await shop()
        let bad = ids[5]
        let server = try Self.server(refusal) { $0.contains(bad.text) }

        let report = await engine(shop, server, refusal).sync()

        #expect(report.reason == "")
        #expect(report.pushed == 7 && report.rejected == 1)
        let left = try await shop.store.outbox()
        #expect(left.map(\.operation) == [bad])
        #expect(left.map(\.state) == [.failed])
        #expect(left.map(\.attempts) == [1])
        let sent = server.requests.map(Self.ids).filter { !$0.isEmpty }
        #expect(sent.first?.count == 8)
        #expect(sent.contains([bad.text]))
        await server.stop()
    }

    @Test(arguments: Refusal.allCases)
    func `requests that are too large as a whole become smaller until they get through`(refusal: Refusal)
        async throws
    {
        let (shop, ids) = try await shop()
        let server = try Self.server(refusal) { $0.count > 2 }
        let engine = engine(shop, server, refusal)

        var runs = 0
        while try await !shop.store.outbox().isEmpty, runs < 60 {
            _ = await engine.sync()
            let left = try await shop.store.outbox()
            // Whoever is to blame, it is none of them.
            #expect(left.allSatisfy { $0.attempts == 0 && $0.state == .pending })
            runs += 1
        }

        #expect(try await shop.store.outbox() == [])
        let sent = server.requests.map(Self.ids)
        let small = sent.filter { (1...2).contains($0.count) }.flatMap { $0 }
        // A request that stalled on a slow machine goes twice; what was sent first was sent in order.
        var seen: Set<String> = []
        #expect(small.filter { seen.insert($0).inserted } == ids.map(\.text))
        #expect(sent.first?.count == 8)
        await server.stop()
    }

    @Test func `a change that makes the server fail uses up its own attempts and no other's`() async throws {
        let (shop, ids) = try await shop()
        let bad = ids[2]
        let server = try Self.server(.failure) { $0.contains(bad.text) }
        let engine = engine(shop, server, .failure)

        var runs = 0
        while try await shop.store.outbox(.failed).isEmpty, runs < 40 {
            _ = await engine.sync()
            #expect(try await shop.store.outbox().allSatisfy { $0.attempts == 0 || $0.operation == bad })
            shop.clock.advance(by: .seconds(600))
            runs += 1
        }

        let left = try await shop.store.outbox()
        #expect(left.map(\.operation) == [bad])
        #expect(left.map(\.attempts) == [8])
        #expect(left.map(\.failure?.code) == ["server_error"])
        #expect(server.requests.map(Self.ids).filter { $0 == [bad.text] }.count == 8)
        await server.stop()
    }
}
