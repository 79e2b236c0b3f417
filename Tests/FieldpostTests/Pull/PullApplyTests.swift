import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

@Suite struct PullApplyTests {
    let device: Device

    init() throws { device = try Device() }

    private func change(_ row: String, _ version: Int64, _ title: String, likes: Int64 = 0, tags: [JSON] = [])
        -> PulledChange
    {
        var set = PushOutcomeTests.row(row, title, likes: likes)
        set["tags"] = .array(tags)
        return PulledChange(table: "notes", row: row, version: version, set: set)
    }

    private func gone(_ row: String, _ version: Int64) -> PulledChange {
        PulledChange(table: "notes", row: row, version: version, set: nil)
    }

    private func version(_ row: String) throws -> Int64? {
        try RowState(db: device.db, table: Samples.shop.table("notes")!, row: row).known().version
    }

    @Test func `rows come, change and go, and the cursor with them`() throws {
        let first = try device.pull([change("a", 1, "1"), change("b", 2, "2")], cursor: "c2")
        let second = try device.pull([change("a", 3, "3"), gone("b", 4)], cursor: "c4")

        #expect(first.pulled == 2 && second.pulled == 2)
        #expect(try device.title("a") == "3")
        #expect(try device.title("b") == nil)
        #expect(try PullApply.cursor(device.db) == "c4")
        #expect(try device.outboxCount == 0)
    }

    @Test func `a page asked for with another cursor than the stored one changes nothing`() throws {
        try device.pull([change("a", 1, "1")], cursor: "c1")
        let page = PullPage(changes: [change("a", 2, "2")], cursor: "c2", more: false, serverTime: device.now)

        #expect(try PullApply.page(device.db, page, askedWith: nil, now: device.now) == nil)
        #expect(try PullApply.page(device.db, page, askedWith: "c0", now: device.now) == nil)

        #expect(try device.title("a") == "1")
        #expect(try PullApply.cursor(device.db) == "c1")
    }

    @Test func `an older or equal version is ignored, a tombstone's too`() throws {
        try device.pull([change("a", 5, "5"), gone("b", 5)])

        let again = try device.pull([change("a", 5, "again"), change("a", 4, "4"), change("b", 4, "back")])

        #expect(again.pulled == 0)
        #expect(try device.title("a") == "5")
        #expect(try device.title("b") == nil)
    }

    @Test func `an unsent value stays, the other columns come`() throws {
        try device.pull([change("a", 1, "1")])
        try device.write("UPDATE notes SET title = 'mine'")

        var theirs = change("a", 2, "theirs")
        theirs.set?["body"] = "theirs"
        try device.pull([theirs])

        #expect(try device.title("a") == "mine")
        #expect(try device.scalar("SELECT body FROM notes") == "theirs")
    }

    @Test func `an unsent count and unsent elements are added to what comes`() throws {
        try device.pull([change("a", 1, "1", likes: 10, tags: ["a", "b"])])
        try device.write("UPDATE notes SET likes = likes + 3, tags = '[\"a\",\"c\"]'")

        try device.pull([change("a", 2, "1", likes: 20, tags: ["b", "d"])])

        #expect(try device.scalar("SELECT likes FROM notes") == 23)
        #expect(
            try device.scalar("SELECT tags FROM notes") == #"["a","c","d"]"#
                || device.scalar("SELECT tags FROM notes") == #"["c","d"]"#
        )
    }

    @Test func `after a resync the server's rows count, whatever number they have`() throws {
        try device.pull([change("a", 9, "before")], cursor: "c1")

        try PullApply.restart(device.db)
        try device.pull([change("a", 2, "after")], cursor: "c2")

        #expect(try device.title("a") == "after")
        try device.pull([change("a", 1, "older")], cursor: "c3")
        #expect(try device.title("a") == "after")
    }

    @Test func `an unsent delete stays deleted`() throws {
        try device.pull([change("a", 1, "1")])
        try device.write("DELETE FROM notes")

        let summary = try device.pull([change("a", 2, "2")])

        #expect(summary.pulled == 0)
        #expect(try device.title("a") == nil)
        #expect(try device.states() == [.pending])
    }

    @Test func `a remote delete takes the row and leaves the edit to be answered`() throws {
        try device.pull([change("a", 1, "1")])
        try device.write("UPDATE notes SET title = 'mine'")

        try device.pull([gone("a", 2)])
        #expect(try device.title("a") == nil)
        #expect(try device.states() == [.pending])

        try device.push(OperationResult.conflict(2, row: nil))
        #expect(
            try device.scalar("SELECT json_extract(mine, '$.set.title') FROM fieldpost_conflicts") == "mine"
        )
        #expect(try device.outboxCount == 0)
    }

    @Test func `a child may come before its parent, and neither waits`() throws {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        let payment = "0191b2a0-0000-7000-8000-00000000000b"
        try device.pull([
            PulledChange(
                table: "payments",
                row: payment,
                version: 1,
                set: ["id": .string(payment), "branch_id": "B1", "order_id": .string(order), "amount_idr": 5]
            )
        ])
        try device.pull([
            PulledChange(
                table: "orders",
                row: order,
                version: 2,
                set: [
                    "id": .string(order), "branch_id": "B1", "plate": .null, "total_idr": 5, "status": "open",
                ]
            )
        ])

        #expect(try device.scalar("SELECT count(*) FROM payments JOIN orders ON orders.id = order_id") == 1)
        #expect(try device.scalar("PRAGMA foreign_keys") == 1)
    }

    // MARK: What cannot be applied

    @Test
    func `an unknown table, an unreadable value and a refused row are parked, first, in the middle and last`()
        throws
    {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        var wrongType = change("bad", 3, "1")
        wrongType.set?["likes"] = "many"
        let refused: JSONObject = [
            "id": .string(order), "branch_id": "B1", "plate": .null, "total_idr": -1, "status": "open",
        ]

        let summary = try device.pull([
            PulledChange(table: "later", row: "x", version: 1, set: ["id": "x"]), change("a", 2, "1"),
            wrongType,
            change("b", 4, "1"), PulledChange(table: "orders", row: order, version: 5, set: refused),
        ])

        #expect(summary.pulled == 2 && summary.parked == 3)
        #expect(try device.scalar("SELECT count(*) FROM notes") == 2)
        let parked = try device.db.connection.query("SELECT tbl, row FROM fieldpost_parked ORDER BY version")
        #expect(parked == [["later", "x"], ["notes", "bad"], ["orders", .text(order)]])
        #expect(try PullApply.cursor(device.db) == "c1")
    }

    @Test func `a parked state is not known: the same version is taken once it fits, and forgotten then`()
        throws
    {
        var wrongType = change("a", 3, "1")
        wrongType.set?["likes"] = "many"
        try device.pull([wrongType])
        #expect(try version("a") == nil)

        try device.pull([change("a", 3, "fits")], cursor: "c2")

        #expect(try device.title("a") == "fits")
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_parked") == 0)
    }

    @Test func `a change that cannot be read is set aside with its reason, and the page goes on`() throws {
        let bytes = Array(
            #"{"changes":[{"table":"notes"},{"table":"notes","row":"a","version":2,"deleted":true},7],"cursor":"c2","more":false,"server_time":1}"#
                .utf8
        )

        let page = try PullPage(bytes: bytes)
        let summary = try #require(try PullApply.page(device.db, page, askedWith: nil, now: device.now))

        #expect(summary.parked == 2)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_parked WHERE reason <> ''") == 2)
        #expect(try version("a") == 2)
    }

    // MARK: Settled

    @Test func `a page settles what it names before its rows, so that an echo is no change`() throws {
        let id = try device.write("INSERT INTO notes (id, title) VALUES ('a', 'mine')")[0]
        _ = try device.plan()
        var result = OperationResult(id: id, status: .applied)
        result.version = 6

        let summary = try device.pull([change("a", 6, "mine")], settled: [result])

        #expect(summary.settled == 1 && summary.pulled == 0)
        #expect(try device.outboxCount == 0)
        #expect(try version("a") == 6)
    }

    @Test func `a settled operation does not hide what others changed in its row`() throws {
        try device.pull([change("a", 1, "1")])
        let id = try device.write("UPDATE notes SET title = 'mine'")[0]
        _ = try device.plan()
        var result = OperationResult(id: id, status: .applied)
        result.version = 6
        var row = change("a", 6, "mine")
        row.set?["body"] = "theirs, version 5"

        try device.pull([row], settled: [result], cursor: "c6")

        #expect(try device.scalar("SELECT body FROM notes") == "theirs, version 5")
        #expect(try version("a") == 6)
    }

    @Test func `a settled operation with a later edit of its row: the base moves on, the edit stays on top`()
        throws
    {
        try device.pull([change("a", 1, "1", likes: 10)])
        let id = try device.write("UPDATE notes SET likes = likes + 1")[0]
        _ = try device.plan()
        try device.write("UPDATE notes SET likes = likes + 5")
        var result = OperationResult(id: id, status: .applied)
        result.version = 6

        try device.pull([], settled: [result], cursor: "c5")
        #expect(try device.scalar("SELECT likes FROM notes") == 16)
        try device.pull([change("a", 7, "1", likes: 31)], cursor: "c7")

        #expect(try device.scalar("SELECT likes FROM notes") == 36)
        #expect(try device.states() == [.pending])
    }

    @Test func `a page settles a dead letter that the server did apply, and frees what it held`() throws {
        let id = try device.write("INSERT INTO notes (id, title) VALUES ('a', 'mine')")[0]
        let later = try device.write("UPDATE notes SET title = 'later'")[0]
        for _ in 0..<8 {
            try device.push { $0.id == id ? OperationResult.retry(nil)($0) : nil }
            device.advance(600_000)
        }
        #expect(try device.states() == [.failed, .held])
        var result = OperationResult(id: id, status: .applied)
        result.version = 6

        try device.pull([change("a", 6, "mine")], settled: [result])

        #expect(try device.plan()?.entries.map(\.id) == [later])
        #expect(try device.title("a") == "later")
    }

    @Test func `what was never sent cannot be settled`() throws {
        let id = try device.write("INSERT INTO notes (id, title) VALUES ('a', 'mine')")[0]

        try device.pull([], settled: [OperationResult(id: id, status: .applied)])

        #expect(try device.states() == [.pending])
    }

    // MARK: One transaction

    @Test func `a kill at any statement fetches the page again and never skips it`() throws {
        for statement in 0..<200 {
            let device = try Device()
            try device.write("INSERT INTO notes (id, title) VALUES ('a', 'mine')")
            let page = PullPage(
                changes: [change("a", 1, "theirs"), change("b", 2, "2"), gone("c", 3)],
                cursor: "c3",
                more: false,
                serverTime: device.now
            )

            let wasKilled = try device.killed(after: statement) {
                _ = try PullApply.page(device.db, page, askedWith: nil, now: device.now)
            }
            if !wasKilled { return #expect(statement > 10) }
            let cursor = try PullApply.cursor(device.db)
            #expect(try device.title("b") == (cursor == nil ? nil : "2"))
            if cursor == nil { _ = try PullApply.page(device.db, page, askedWith: nil, now: device.now) }

            #expect(try device.title("a") == "mine")
            #expect(try device.title("b") == "2")
            #expect(try device.states() == [.pending])
            #expect(try device.scalar("SELECT applying FROM fieldpost_session") == 0)
        }
        Issue.record("the page takes more statements than expected")
    }
}
