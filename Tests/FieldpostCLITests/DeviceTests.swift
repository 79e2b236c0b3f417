import Fieldpost
import FieldpostCore
import Foundation
import Testing

@testable import FieldpostCLI

@Suite struct DeviceTests {
    private func write(_ operations: String) -> String { #"{"do":"write","ops":[\#(operations)]}"# }

    @Test(arguments: [
        (
            #"{"table":"orders","action":"create","row":"\#(Samples.id(1))","set":{"branch_id":"B1","total_idr":1}}"#,
            "row_exists"
        ),
        (
            #"{"table":"orders","action":"update","row":"\#(Samples.id(9))","set":{"total_idr":1}}"#,
            "row_missing"
        ),
        (#"{"table":"orders","action":"delete","row":"\#(Samples.id(9))"}"#, "row_missing"),
        (#"{"table":"order","action":"create","set":{}}"#, "unknown_table"),
        (#"{"table":"orders","action":"create","set":{"branch":"B1"}}"#, "unknown_column"),
        (#"{"table":"orders","action":"create","set":{"branch_id":"B1","total_idr":"1"}}"#, "type"),
        (#"{"table":"orders","action":"create","set":{"branch_id":"B1"}}"#, "type"),
        (#"{"table":"notes","action":"create","set":{"title":"a","done":1}}"#, "type"),
        (#"{"table":"orders","action":"create","set":{"branch_id":"B1","total_idr":-1}}"#, "check"),
        (
            #"{"table":"payments","action":"create","set":{"branch_id":"B1","order_id":"\#(Samples.id(9))","amount_idr":1}}"#,
            "check"
        ),
        (#"{"table":"fieldpost_meta","action":"create","set":{}}"#, "reserved_table"),
        (#"{"table":"orders","action":"replace","set":{}}"#, "usage"),
        (#"{"table":"orders","action":"update","row":"\#(Samples.id(1))"}"#, "usage"),
    ])
    func `a write that is refused says why by its code`(operation: String, code: String) async throws {
        let folder = try TemporaryFolder()

        let replies = try await CommandRun.device(
            folder,
            Samples.order(1),
            write(operation),
            #"{"do":"outbox"}"#
        )

        #expect(replies[0].isOK)
        #expect(replies[1].code == code)
        #expect(replies[1].message?.isEmpty == false)
        #expect(replies[2].objects("entries").count == 1)
    }

    @Test(arguments: [
        ("nonsense", "usage"), ("{}", "usage"), ("", "usage"), (#"{"do":"synk"}"#, "usage"),
        (#"{"do":"sync","now":true}"#, "usage"), (#"{"do":"query","sql":"SELEC 1"}"#, "usage"),
        (#"{"do":"query","sql":"DELETE FROM orders"}"#, "not_read_only"),
        (
            #"{"do":"query","sql":"INSERT INTO notes (id, title) VALUES ('n', 't') RETURNING id"}"#,
            "not_read_only"
        ),
        (#"{"do":"query","sql":"SELECT ?","args":[[1]]}"#, "type"),
        (#"{"do":"exec","sql":"DELETE FROM fieldpost_outbox"}"#, "reserved_table"),
        (
            #"{"do":"exec","sql":"INSERT INTO notes (id, title) VALUES ('n', 't'); COMMIT; SELECT 1"}"#,
            "usage"
        ),
        (
            #"{"do":"exec","sql":"INSERT INTO orders (id, branch_id, total_idr) VALUES ('A', 'B1', 1)"}"#,
            "type"
        ),
        (#"{"do":"exec","sql":"SELECT 1; SELECT 2","args":[1]}"#, "usage"),
        (#"{"do":"status","table":"orders","row":"\#(Samples.id(9))"}"#, "row_missing"),
        (#"{"do":"status","table":"orders"}"#, "usage"),
        (#"{"do":"retry","operation":"\#(Samples.id(9))"}"#, "operation_missing"),
        (#"{"do":"discard","operation":"x"}"#, "operation_missing"),
        (#"{"do":"undo","operation":"x"}"#, "operation_missing"),
        (#"{"do":"discard","operation":"x","dependants":true}"#, "operation_missing"),
        (#"{"do":"intent","name":"x","payload":{}}"#, "unsupported"),
        (#"{"do":"settle","conflict":1,"keep":"mine"}"#, "row_missing"),
        (#"{"do":"edit","operation":"x","set":{}}"#, "operation_missing"),
        (#"{"do":"edit","operation":"x"}"#, "usage"),
        (#"{"do":"clock","offset_ms":"1"}"#, "usage"), (#"{"do":"network","up":1}"#, "usage"),
    ])
    func `a bad command gets an error, and the device goes on`(line: String, code: String) async throws {
        let folder = try TemporaryFolder()

        let replies = try await CommandRun.device(
            folder,
            line,
            #"{"do":"query","sql":"SELECT count(*) AS n FROM notes"}"#
        )

        #expect(replies.map(\.isOK) == [false, true])
        #expect(replies[0].code == code)
        #expect(replies[1].objects("rows") == [["n": 0]])
    }

    @Test func `an operation that others depend on is not discarded, and the error names them`() async throws
    {
        let folder = try TemporaryFolder()
        let payment = write(
            #"{"table":"payments","action":"create","set":{"branch_id":"B1","order_id":"\#(Samples.id(1))","amount_idr":1}}"#
        )
        let made = try await CommandRun.device(folder, Samples.order(1), payment)
        let first = made[0].strings("operations")[0]
        let second = made[1].strings("operations")[0]

        let replies = try await CommandRun.device(
            folder,
            #"{"do":"discard","operation":"\#(first)"}"#,
            #"{"do":"discard","operation":"\#(second)"}"#,
            #"{"do":"discard","operation":"\#(first.uppercased())"}"#,
            #"{"do":"query","sql":"SELECT id FROM orders"}"#
        )

        #expect(replies[0].code == "has_dependants")
        #expect(replies[0].message?.contains(second) == true)
        #expect(replies[1].strings("operations") == [second])
        #expect(replies[2].strings("operations") == [first])
        #expect(replies[3].objects("rows").isEmpty)
    }

    @Test func `a transaction of too many operations is refused whole`() async throws {
        let folder = try TemporaryFolder()
        let sql =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) "
            + "INSERT INTO notes (id, title) SELECT 'n' || i, 't' FROM n"

        let replies = try await CommandRun.device(
            folder,
            #"{"do":"exec","sql":"\#(sql)"}"#,
            #"{"do":"status"}"#
        )

        #expect(replies[0].code == "transaction_too_large")
        #expect(replies[1]["status"]?.object?["state"] == "allSynced")
    }

    @Test func `exec counts the rows of all its statements, without those of triggers`() async throws {
        let folder = try TemporaryFolder()
        let sql =
            "INSERT INTO notes (id, title) VALUES ('a', 't'), ('b', 't'); UPDATE notes SET done = 1; SELECT 1; DELETE FROM notes WHERE id = 'a'"

        let replies = try await CommandRun.device(folder, #"{"do":"exec","sql":"\#(sql)"}"#)

        #expect(replies[0] == ["ok": true, "changes": 5])
    }

    @Test func `a write is all or nothing, and names rows and operations in order`() async throws {
        let folder = try TemporaryFolder()
        let row = Samples.id(1)
        let good = write(
            #"{"table":"orders","action":"create","row":"0190000A-0000-7000-8000-000000000001","set":{"branch_id":"B1","total_idr":1}},"#
                + #"{"table":"notes","action":"create","set":{"title":"n"}}"#
        )
        let bad = write(
            #"{"table":"orders","action":"create","row":"\#(row)","set":{"branch_id":"B1","total_idr":1}},{"table":"x","action":"create","set":{}}"#
        )

        let replies = try await CommandRun.device(folder, good, bad, #"{"do":"outbox"}"#)

        let entries = replies[2].objects("entries")
        #expect(replies[0].strings("rows").first == "0190000a-0000-7000-8000-000000000001")
        #expect(replies[0].strings("rows").count == 2)
        #expect(replies[0].strings("operations") == entries.compactMap { $0["operation"]?.string })
        #expect(entries.map { $0["seq"] } == [1, 2])
        #expect(Set(entries.map { $0["group"] }) == [1])
        #expect(
            entries[0].names == [
                "operation", "group", "seq", "table", "row", "action", "change", "state", "attempts",
                "created_at",
                "next_attempt_at", "last_attempt_at", "held_by", "error",
            ]
        )
    }

    @Test func `blobs travel as base64 in queries and arguments`() async throws {
        let folder = try TemporaryFolder()

        let replies = try await CommandRun.device(
            folder,
            #"{"do":"exec","sql":"INSERT INTO notes (id, title, picture, score) VALUES ('n', 't', ?, ?)","args":[{"base64":"AAH/"},0.1]}"#,
            #"{"do":"query","sql":"SELECT picture, score, done, 9223372036854775807 AS big, 1, 1 FROM notes WHERE picture = ?","args":[{"base64":"AAH/"}]}"#
        )

        #expect(replies[0]["changes"] == 1)
        #expect(
            replies[1].objects("rows") == [
                [
                    "picture": ["base64": "AAH/"], "score": 0.1, "done": 0, "big": .integer(.max), "1": 1,
                    "1_2": 1,
                ]
            ]
        )
    }

    @Test func `the status object has its members, and a row one word`() async throws {
        let folder = try TemporaryFolder()

        let replies = try await CommandRun.device(
            folder,
            #"{"do":"status"}"#,
            Samples.order(1),
            #"{"do":"status"}"#,
            #"{"do":"status","table":"orders","row":"\#(Samples.id(1))"}"#,
            #"{"do":"settled","operation":"\#(Samples.id(1))"}"#
        )

        #expect(
            replies[0]["status"]
                == [
                    "state": "allSynced", "local": 0, "pending": 0, "inFlight": 0, "held": 0, "failed": 0,
                    "conflicts": 0,
                    "sentence": "All changes synced", "last_sync_ms": nil, "last_error": nil,
                ]
        )
        #expect(replies[2]["status"]?.object?["pending"] == 1)
        #expect(replies[2]["status"]?.object?["state"] == "waiting")
        #expect(replies[3] == ["ok": true, "status": "pending"])
        #expect(replies[4] == ["ok": true, "outcome": nil])
    }

    @Test func `rows are local until somebody signs in`() async throws {
        let folder = try TemporaryFolder()
        let run = await CommandRun.of(
            "device",
            "--schema",
            folder.schema,
            "--db",
            folder.file("a.db"),
            input: [
                Samples.order(1), #"{"do":"status","table":"orders","row":"\#(Samples.id(1))"}"#,
                #"{"do":"sync"}"#,
            ]
        )

        let replies = try run.replies
        #expect(replies[1]["status"] == "local")
        #expect(replies[2]["online"] == false)
        #expect(replies[2]["reason"]?.string?.contains("--server") == true)
    }

    @Test func `the clock moves what is recorded`() async throws {
        let folder = try TemporaryFolder()
        let before = Int64(Date().timeIntervalSince1970 * 1_000)

        let replies = try await CommandRun.device(
            folder,
            #"{"do":"clock","offset_ms":86400000}"#,
            Samples.order(1),
            #"{"do":"outbox"}"#
        )

        let time = replies[2].objects("entries").first?["created_at"]?.integer ?? 0
        let after = Int64(Date().timeIntervalSince1970 * 1_000)
        #expect(replies[0] == ["ok": true])
        #expect((before...after).contains(time - 86_400_000))
    }

    @Test func `a network that goes down cuts the exchange that is open, and its reply waits its turn`()
        async throws
    {
        let folder = try TemporaryFolder()
        let schema = try Schema(json: Array(Samples.schema.utf8))
        let store = try await Store.open(at: folder.file("a.db"), schema: schema)
        let stuck = StuckTransport()
        let network = SwitchedTransport(stuck)
        let engine = SyncEngine(store: store, transport: network) { _ in "t" }
        let output = Collected()
        let (lines, feed) = AsyncStream<String>.makeStream()
        let source = LineFeed(lines)
        let console = Console(
            write: { output.append($0) },
            writeError: { _ in },
            nextLine: { await source.next() }
        )
        let session = DeviceSession(
            store: store,
            engine: engine,
            network: network,
            connectivity: SwitchedConnectivity(ManualConnectivity()),
            clock: AdjustableClock(),
            console: console
        )

        let run = Task { await session.run() }
        for line in [Samples.order(1), #"{"do":"sync"}"#] { feed.yield(line) }
        for await _ in stuck.reached { break }
        feed.yield(#"{"do":"network","up":false}"#)
        feed.finish()
        await run.value

        let replies = try output.text.split(separator: "\n").map { try JSON(text: String($0)).object ?? [:] }
        #expect(replies.count == 3)
        #expect(replies[1]["online"] == false)
        #expect(replies[1]["reason"] == "the network is down")
        #expect(replies[1]["status"]?.object?["state"] == "offline")
        #expect(replies[2] == ["ok": true])
    }
}

/// A transport whose exchanges end only when they are cancelled.
private struct StuckTransport: Transport {
    /// Gives one element for each exchange that has begun.
    let reached: AsyncStream<Void>
    private let reach: AsyncStream<Void>.Continuation

    init() { (reached, reach) = AsyncStream<Void>.makeStream() }

    private func wait() async {
        reach.yield()
        let (never, continuation) = AsyncStream<Void>.makeStream()
        for await _ in never {}
        continuation.finish()
    }

    func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure) -> PushResponse {
        await wait()
        throw .unreachable("cancelled")
    }

    func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        await wait()
        throw .unreachable("cancelled")
    }

    func probe(_ context: RequestContext) async -> Bool { false }
}

/// Lines as they are fed.
private actor LineFeed {
    private var iterator: AsyncStream<String>.Iterator

    init(_ stream: AsyncStream<String>) { iterator = stream.makeAsyncIterator() }

    func next() async -> [UInt8]? {
        var iterator = iterator
        let line = await iterator.next(isolation: self)
        self.iterator = iterator
        return line.map { Array($0.utf8) }
    }
}
