import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

@Suite struct PushPlanTests {
    let device: Device

    init() throws { device = try Device() }

    private func note(_ row: String) throws -> OperationID {
        try device.write("INSERT INTO notes (id, title) VALUES ('\(row)', 't')")[0]
    }

    private func rename(_ row: String, _ title: String = "x") throws -> OperationID {
        try device.write("UPDATE notes SET title = '\(title)' WHERE id = '\(row)'")[0]
    }

    private func ids(_ batch: PushBatch?) -> [OperationID] { batch?.entries.map(\.id) ?? [] }

    @Test func `nothing to send is nothing`() throws {
        #expect(try device.plan() == nil)
    }

    @Test func `operations go in the order they were made`() throws {
        let made = [try note("b"), try note("a"), try rename("b"), try note("c")]

        let batch = try device.plan()

        #expect(ids(batch) == made)
        #expect(try PushRequest(bytes: batch!.body).groups.flatMap(\.operations).map(\.id) == made)
    }

    @Test func `a transaction is one group and is never split`() throws {
        let first = try device.write(
            "INSERT INTO notes (id, title) VALUES ('a', '1')",
            "INSERT INTO notes (id, title) VALUES ('b', '2')",
            "UPDATE notes SET title = '3' WHERE id = 'a'"
        )
        let second = try device.write("INSERT INTO notes (id, title) VALUES ('c', '1'), ('d', '2')")

        let one = try device.plan(operations: 1)
        let four = try device.plan(operations: 4)
        let five = try device.plan(operations: 5)

        #expect(ids(one) == first)
        #expect(ids(four) == first)
        #expect(ids(five) == first + second)
        #expect(try PushRequest(bytes: five!.body).groups.map(\.operations.count) == [3, 2])
    }

    @Test func `bytes limit a request, but for the first group`() throws {
        let long = String(repeating: "x", count: 5_000)
        let ids = try (0..<4).map {
            try device.write("INSERT INTO notes (id, title) VALUES ('\($0)', '\(long)')")[0]
        }

        #expect(self.ids(try device.plan(bytes: 12_000)) == Array(ids[..<2]))
        #expect(self.ids(try device.plan(bytes: 10)) == Array(ids[..<1]))
    }

    @Test func `what waits for a dead letter is passed over and held, and the rest goes`() throws {
        let bad = try note("a")
        try device.push(OperationResult.rejected("no"))
        let onTop = try rename("a")
        let onTopOfThat = try rename("a", "y")
        let other = try note("b")

        let batch = try device.plan()

        #expect(ids(batch) == [other])
        #expect(try device.entry(onTop)?.state == .held)
        #expect(try device.entry(onTop)?.heldBy == bad)
        #expect(try device.entry(onTopOfThat)?.state == .held)
    }

    @Test func `what waits for a waiting operation is passed over, and goes with it later`() throws {
        let slow = try note("a")
        try device.push(OperationResult.retry(10_000))
        let onTop = try rename("a")
        let other = try note("b")
        #expect(ids(try device.plan()) == [other])
        try device.push(OperationResult.applied(1))
        #expect(try device.plan() == nil)
        #expect(try device.states() == [.waiting, .pending])

        device.advance(10_000)

        #expect(ids(try device.plan()) == [slow, onTop])
    }

    @Test func `a group is passed over whole when one of its operations waits`() throws {
        _ = try note("a")
        try device.push(OperationResult.rejected("no"))
        let group = try device.write(
            "INSERT INTO notes (id, title) VALUES ('b', '1')",
            "UPDATE notes SET title = '2' WHERE id = 'a'"
        )
        let onGroup = try rename("b")

        #expect(try device.plan() == nil)

        #expect(try group.map { try device.entry($0)?.state } == [.held, .held])
        #expect(try device.entry(onGroup)?.state == .held)
    }

    @Test func `a child waits for the create it refers to`() throws {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        _ = try device.write("INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)")
        try device.push(OperationResult.rejected("no"))
        let payment = try device.write(
            """
            INSERT INTO payments (id, branch_id, order_id, amount_idr)
            VALUES ('0191b2a0-0000-7000-8000-00000000000b', 'B1', '\(order)', 5)
            """
        )[0]

        #expect(try device.plan() == nil)
        #expect(try device.entry(payment)?.state == .held)
    }

    @Test func `a waiting operation whose time lies beyond its delay was set by a clock since set back`()
        throws
    {
        let id = try note("a")
        try device.push(OperationResult.retry(10_000))

        device.advance(-86_400_000)
        let early = try device.plan()
        device.advance(10_000)

        #expect(early == nil)
        #expect(ids(try device.plan()) == [id])
    }

    @Test func `a delay longer than the default cap is kept`() throws {
        var slow = Backoff()
        (slow.baseMilliseconds, slow.capMilliseconds, slow.jitter) = (3_600_000, 3_600_000, .none)
        let id = try note("a")
        try device.settle(try device.plan()!, backoff: slow, OperationResult.retry(nil))

        device.advance(3_599_999)
        #expect(try device.plan() == nil)
        device.advance(1)

        #expect(ids(try device.plan()) == [id])
    }

    // MARK: In doubt

    @Test func `the mark of what was sent is on the disk before the request leaves`() throws {
        _ = try note("a")
        _ = try device.plan()

        try device.reopen()

        #expect(try device.scalar("SELECT sent_upto FROM fieldpost_lease") == 1)
        #expect(try device.scalar("SELECT on_wire FROM fieldpost_lease") == "[]")
    }

    @Test func `an operation in doubt is sent again in the same bytes, whatever was settled around it`()
        throws
    {
        let all = [try note("a"), try note("b"), try rename("b"), try note("c")]
        func wire(_ batch: PushBatch) throws -> [OperationID: [UInt8]] {
            var bytes: [OperationID: [UInt8]] = [:]
            for operation in try PushRequest(bytes: batch.body).groups.flatMap(\.operations) {
                operation.write(to: &bytes[operation.id, default: []])
            }
            return bytes
        }
        let first = try device.plan()!
        let firstBytes = try wire(first)

        try device.settle(first) { $0.id == all[0] || $0.id == all[1] ? OperationResult.applied(5)($0) : nil }
        try device.reopen()
        let second = try device.plan()!

        #expect(ids(second) == Array(all[2...]))
        #expect(try wire(second) == firstBytes.filter { all[2...].contains($0.key) })
        #expect(try device.plan() == second)
    }

    @Test func `the spliced body is what the operations say, for every type of column`() throws {
        try device.write(
            """
            INSERT INTO notes (id, title, score, done, photo, meta, tags, likes)
            VALUES ('n"1', 'hé\n"', 0.1, 1, x'00ff', '{"a": [1]}', '["b", 1]', 9223372036854775807)
            """
        )
        try device.write(
            "UPDATE notes SET likes = 3, tags = '[\"c\"]', photo = NULL, body = '' WHERE id = 'n\"1'"
        )
        let batch = try device.plan()!

        let sent = try PushRequest(bytes: batch.body).groups.flatMap(\.operations)

        let table = Samples.shop.table("notes")!
        #expect(try sent == batch.entries.map { try $0.operation(table) })
        #expect(sent[0].change.set["photo"] == "AP8=")
        #expect(sent[1].change.remove["tags"] == [1, "b"] || sent[1].change.remove["tags"] == ["b", 1])
    }
}
