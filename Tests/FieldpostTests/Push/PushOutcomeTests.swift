import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

@Suite struct PushOutcomeTests {
    let device: Device

    init() throws { device = try Device() }

    private func note(_ row: String, _ title: String = "t") throws -> OperationID {
        try device.write("INSERT INTO notes (id, title) VALUES ('\(row)', '\(title)')")[0]
    }

    private func rename(_ row: String, _ title: String = "x") throws -> OperationID {
        try device.write("UPDATE notes SET title = '\(title)' WHERE id = '\(row)'")[0]
    }

    static func row(_ id: String, _ title: String, likes: Int64 = 0) -> JSONObject {
        [
            "id": .string(id), "title": .string(title), "body": .null, "score": .null, "done": false,
            "photo": .null,
            "meta": .null, "tags": [], "likes": .integer(likes),
        ]
    }

    private func known(_ row: String) throws -> RowState.Known {
        try RowState(db: device.db, table: Samples.shop.table("notes")!, row: row).known()
    }

    // MARK: Applied

    @Test func `applied: the operation leaves, its outcome and the version stay`() throws {
        let id = try note("a")

        let summary = try device.push(OperationResult.applied(7))

        #expect(summary.applied == 1)
        #expect(try device.outboxCount == 0)
        #expect(
            try device.scalar("SELECT status FROM fieldpost_outcomes WHERE id = ?", .text(id.text))
                == "applied"
        )
        #expect(try known("a").version == 7)
        #expect(try known("a").base == nil)
        #expect(try device.title("a") == "t")
    }

    @Test func `applied with a row: the row is the server's`() throws {
        _ = try note("a")

        try device.push(OperationResult.applied(7, row: Self.row("a", "merged", likes: 4)))

        #expect(try device.title("a") == "merged")
        #expect(try device.scalar("SELECT likes FROM notes") == 4)
    }

    @Test func `applied with a row while a later edit waits: the edit stays on top`() throws {
        _ = try note("a")
        let batch = try device.plan()!
        _ = try rename("a", "mine")
        try device.write("UPDATE notes SET likes = likes + 2")

        try device.settle(batch, OperationResult.applied(7, row: Self.row("a", "merged", likes: 4)))

        #expect(try device.title("a") == "mine")
        #expect(try device.scalar("SELECT likes FROM notes") == 6)
        #expect(try known("a").base?["title"] == "merged")
    }

    @Test func `a row of sets and JSON takes the server's spelling`() throws {
        try device.write(
            "INSERT INTO notes (id, title, meta, tags) VALUES ('a', 't', '{ \"x\" : 1 }', '[\"b\",\"a\",\"b\"]')"
        )

        try device.push(OperationResult.applied(7))

        #expect(try device.scalar("SELECT tags FROM notes") == #"["a","b"]"#)
        #expect(try device.scalar("SELECT meta FROM notes") == #"{"x":1}"#)
        #expect(try device.outboxCount == 0)
    }

    @Test func `an answer later than a page of a newer state changes nothing`() throws {
        _ = try note("a")
        let batch = try device.plan()!
        try device.pull([PulledChange(table: "notes", row: "a", version: 9, set: Self.row("a", "newer"))])

        try device.settle(batch, OperationResult.applied(7, row: Self.row("a", "older")))

        #expect(try device.title("a") == "newer")
        #expect(try known("a").version == 9)
        #expect(try device.outboxCount == 0)
    }

    @Test func `an applied delete without a version leaves no row and no base`() throws {
        _ = try note("a")
        try device.push(OperationResult.applied(7))
        try device.write("DELETE FROM notes")

        try device.push { OperationResult(id: $0.id, status: .applied) }

        #expect(try device.outboxCount == 0)
        #expect(try known("a").base == nil)
        #expect(try known("a").isDeleted)
    }

    @Test func `an applied operation frees what waits for it, even without a version`() throws {
        let first = try note("a")
        let second = try rename("a")
        try device.push {
            $0.id == first ? OperationResult.retry(1_000)($0) : OperationResult.blocked(by: first)($0)
        }
        #expect(try device.states() == [.waiting, .held])
        device.advance(2_000)

        try device.push { OperationResult(id: $0.id, status: .applied) }

        #expect(try device.plan()?.entries.map(\.id) == [second])
    }

    @Test func `a chain that was held is freed as one`() throws {
        let first = try note("a")
        _ = try rename("a", "1")
        _ = try rename("a", "2")
        let chain = try rename("a", "3")
        try device.push {
            $0.id == first ? OperationResult.retry(1_000)($0) : OperationResult.blocked(by: first)($0)
        }
        device.advance(2_000)

        try device.push(OperationResult.applied(1))

        #expect(try device.states() == [.pending, .pending, .pending])
        #expect(try device.plan()?.entries.last?.id == chain)
    }

    @Test func `a row that this app's schema refuses does not stop the answer`() throws {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        try device.write("INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)")
        _ = try note("a")
        let refused: JSONObject = [
            "id": .string(order), "branch_id": "B1", "plate": .null, "total_idr": -1, "status": "open",
        ]

        let summary = try device.push {
            $0.table == "orders"
                ? OperationResult.applied(3, row: refused)($0) : OperationResult.applied(4)($0)
        }

        #expect(summary.applied == 2)
        #expect(try device.outboxCount == 0)
        #expect(try device.scalar("SELECT total_idr FROM orders") == 5)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_parked") == 1)
    }

    // MARK: Missing results

    @Test func `a result that is missing leaves the operation in doubt, and its whole group`() throws {
        let group = try device.write("INSERT INTO notes (id, title) VALUES ('a', '1'), ('b', '2')")
        let alone = try note("c")

        let summary = try device.push {
            $0.id == group[0] || $0.id == alone ? OperationResult.applied(1)($0) : nil
        }

        #expect(summary.applied == 1)
        #expect(try device.plan()?.entries.map(\.id) == group)
    }

    @Test func `applied before what it builds on has an answer: both are asked for again, and both count`()
        throws
    {
        _ = try note("a")
        try device.push(OperationResult.applied(7))
        let first = try device.write("UPDATE notes SET likes = likes + 5 WHERE id = 'a'")[0]
        try device.write("UPDATE notes SET likes = likes + 1 WHERE id = 'a'")

        try device.push { $0.id == first ? OperationResult.retry(0)($0) : OperationResult.applied(9)($0) }
        let left = try device.outboxCount
        device.advance(60_000)
        try device.push { OperationResult.applied($0.id == first ? 8 : 9)($0) }

        #expect(left == 2)
        #expect(try device.outboxCount == 0)
        #expect(try device.scalar("SELECT likes FROM notes") == 6)
    }

    @Test func `results of operations nobody sent change nothing`() throws {
        _ = try note("a")
        let batch = try device.plan()!
        let later = try note("b")

        let summary = try device.settle(batch) { _ in OperationResult(id: later, status: .applied) }

        #expect(summary == PushOutcome.Summary())
        #expect(try device.outboxCount == 2)
    }

    // MARK: Rejected

    @Test func `rejected: a dead letter with code and words, and the row keeps the user's value`() throws {
        let id = try note("a", "mine")

        let summary = try device.push(OperationResult.rejected("total_negative"))

        let item = OutboxItem(try device.entry(id)!, isOnWire: false, schema: Samples.shop)
        #expect(summary.rejected == 1)
        #expect(item.state == .failed)
        #expect(item.failure?.code == "total_negative")
        #expect(item.failure?.message == "the test says so")
        #expect(item.attempts == 1)
        #expect(try device.title("a") == "mine")
        #expect(try device.plan() == nil)
    }

    @Test func `rejected: the row keeps the user's value through a pull`() throws {
        _ = try note("a", "mine")
        try device.push(OperationResult.applied(1))
        _ = try rename("a", "refused")
        try device.push(OperationResult.rejected("no"))

        try device.pull([
            PulledChange(table: "notes", row: "a", version: 5, set: Self.row("a", "theirs", likes: 2))
        ])

        #expect(try device.title("a") == "refused")
        #expect(try device.scalar("SELECT likes FROM notes") == 2)
    }

    @Test func `rejected: what depends on it is held, on its row, by reference, in its group, and on those`()
        throws
    {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        let payment = "0191b2a0-0000-7000-8000-00000000000b"
        let bad = try device.write(
            "INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)"
        )[0]
        let sameRow = try device.write("UPDATE orders SET status = 'paid' WHERE id = '\(order)'")[0]
        let group = try device.write(
            "INSERT INTO payments (id, branch_id, order_id, amount_idr) VALUES ('\(payment)', 'B1', '\(order)', 5)",
            "INSERT INTO notes (id, title) VALUES ('n', 'paid')"
        )
        let onTheMate = try rename("n")
        let other = try note("other")

        let summary = try device.push {
            switch $0.id {
            case bad: OperationResult.rejected("no")($0)
            case other: OperationResult.applied(1)($0)
            default: nil
            }
        }

        #expect(summary.rejected == 1 && summary.applied == 1 && summary.held == 4)
        #expect(try device.entry(sameRow)?.heldBy == bad)
        #expect(try group.map { try device.entry($0)?.heldBy } == [bad, bad])
        #expect(try device.entry(onTheMate)?.heldBy == group[1])
        #expect(try device.states() == [.failed, .held, .held, .held, .held])
    }

    @Test func `rejected: the whole group is set aside, its mates as mates`() throws {
        let group = try device.write(
            "INSERT INTO notes (id, title) VALUES ('a', '1'), ('b', '2'), ('c', '3')"
        )

        let summary = try device.push {
            $0.id == group[1]
                ? OperationResult.rejected("no")($0) : OperationResult.mate(.rejected, of: group[1])($0)
        }

        #expect(summary.rejected == 3)
        #expect(try device.states() == [.failed, .failed, .failed])
        let codes = try group.map {
            OutboxItem(try device.entry($0)!, isOnWire: false, schema: Samples.shop).failure?.code
        }
        #expect(codes == ["group", "no", "group"])
    }

    // MARK: Retry

    @Test func `retry: the group waits as long as it is told, and at least as long as the backoff says`()
        throws
    {
        let group = try device.write("INSERT INTO notes (id, title) VALUES ('a', '1'), ('b', '2')")

        let summary = try device.push {
            $0.id == group[0]
                ? OperationResult.retry(7_000)($0) : OperationResult.mate(.retry, of: group[0])($0)
        }

        #expect(summary.waiting == 2)
        #expect(try device.states() == [.waiting, .waiting])
        #expect(try PushPlan.nextDue(device.db) == device.now.milliseconds + 7_000)
        #expect(try device.entry(group[0])?.attempts == 1)
    }

    @Test(arguments: [0, -5_000, nil] as [Int64?])
    func `retry at once is not at once`(_ asked: Int64?) throws {
        var backoff = Backoff()
        backoff.jitter = .none
        _ = try note("a")

        try device.settle(try device.plan()!, backoff: backoff, OperationResult.retry(asked))

        #expect(try PushPlan.nextDue(device.db) == device.now.milliseconds + 1_000)
    }

    @Test func `retry: the eighth time it is a dead letter, and its id is kept for good`() throws {
        let id = try note("a")
        for _ in 0..<7 {
            try device.push(OperationResult.retry(nil))
            device.advance(600_000)
        }
        #expect(try device.states() == [.waiting])

        let summary = try device.push(OperationResult.retry(nil))

        #expect(summary.rejected == 1)
        #expect(try device.states() == [.failed])
        var random = device.random
        #expect(try Repair(device.db).retry(id, now: device.now, random: &random) == [id])
    }

    // MARK: Blocked

    @Test func `blocked: held, naming what stands in the way`() throws {
        let first = try note("a")
        let second = try rename("a")

        let summary = try device.push { $0.id == first ? nil : OperationResult.blocked(by: first)($0) }

        #expect(summary.held == 1)
        #expect(try device.entry(second)?.heldBy == first)
        #expect(try device.entry(second)?.attempts == 0)
    }

    @Test func `blocked: a group is held by what blocks it, not by its own member`() throws {
        let first = try note("a")
        let group = try device.write(
            "INSERT INTO notes (id, title) VALUES ('b', '1')",
            "UPDATE notes SET title = '2' WHERE id = 'a'"
        )

        try device.push {
            switch $0.id {
            case first: nil
            case group[0]: OperationResult.mate(.blocked, of: group[1])($0)
            default: OperationResult.blocked(by: first)($0)
            }
        }
        #expect(try group.map { try device.entry($0)?.heldBy } == [first, first])

        try device.push(OperationResult.applied(1))
        #expect(try device.plan()?.entries.map(\.id) == group)
    }

    @Test func `blocked by something that is not here: tried again, then a dead letter, never held for ever`()
        throws
    {
        let gone = OperationID(stored: "0191b2a0-0000-7000-8000-0000000000ff")
        let id = try note("a")

        try device.push(OperationResult.blocked(by: gone))
        #expect(try device.states() == [.waiting])
        for _ in 0..<7 {
            device.advance(600_000)
            try device.push(OperationResult.blocked(by: gone))
        }

        #expect(try device.states() == [.failed])
        let item = OutboxItem(try device.entry(id)!, isOnWire: false, schema: Samples.shop)
        #expect(item.failure?.code == "blocked")
    }

    // MARK: One transaction

    @Test func `a dead letter of the device's own keeps its id: the server may have it`() throws {
        let id = try note("a")
        let batch = try device.plan()!

        _ = try PushOutcome.reject(
            device.db,
            lease: device.lease,
            batch: batch,
            code: "too_large",
            message: "",
            now: device.now,
            random: &device.random
        )

        var random = device.random
        #expect(try device.states() == [.failed])
        #expect(try Repair(device.db).retry(id, now: device.now, random: &random) == [id])
    }

    @Test func `a kill at any statement leaves the answer to be taken in again`() throws {
        for statement in 0..<60 {
            let device = try Device()
            let ids =
                try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
                + device.write("UPDATE notes SET title = '2'")
                + device.write("INSERT INTO notes (id, title) VALUES ('b', '1')")
            let batch = try device.plan()!
            let answer = { (operation: Operation) -> OperationResult in
                operation.id == ids[2]
                    ? OperationResult.rejected("no")(operation) : OperationResult.applied(3)(operation)
            }

            let wasKilled = try device.killed(after: statement) { try device.settle(batch, answer) }
            if !wasKilled { return #expect(statement > 5) }
            let isUnchanged = try device.outboxCount == 3
            if isUnchanged { try device.settle(try device.plan()!, answer) }

            #expect(try device.states() == [.failed])
            #expect(try device.scalar("SELECT count(*) FROM fieldpost_outcomes") == 2)
            #expect(try device.scalar("SELECT applying FROM fieldpost_session") == 0)
        }
        Issue.record("the answer takes more statements than expected")
    }
}
