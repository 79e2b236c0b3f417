import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

/// An edit that lost: what becomes of it, of what was made on top, of its mates and of what refers to its row.
@Suite struct PushConflictTests {
    let device: Device

    init() throws { device = try Device() }

    private func note(_ row: String, _ title: String = "t") throws -> OperationID {
        try device.write("INSERT INTO notes (id, title) VALUES ('\(row)', '\(title)')")[0]
    }

    private func rename(_ row: String, _ title: String = "x") throws -> OperationID {
        try device.write("UPDATE notes SET title = '\(title)' WHERE id = '\(row)'")[0]
    }

    private func known(_ row: String) throws -> RowState.Known {
        try RowState(db: device.db, table: Samples.shop.table("notes")!, row: row).known()
    }

    @Test func `conflict: the edit goes to the conflicts and the row is the server's`() throws {
        _ = try note("a")
        try device.push(OperationResult.applied(1))
        let lost = try rename("a", "mine")

        let summary = try device.push(OperationResult.conflict(5, row: PushOutcomeTests.row("a", "theirs")))

        #expect(summary.conflicts == 1)
        #expect(try device.outboxCount == 0)
        #expect(try device.title("a") == "theirs")
        #expect(try known("a").version == 5)
        #expect(try device.scalar("SELECT operation FROM fieldpost_conflicts") == .text(lost.text))
        #expect(
            try device.scalar("SELECT json_extract(mine, '$.set.title') FROM fieldpost_conflicts") == "mine"
        )
        #expect(
            try device.scalar("SELECT json_extract(theirs, '$.title') FROM fieldpost_conflicts") == "theirs"
        )
    }

    @Test func `conflict: later edits of the row lose with it, in whichever group they are`() throws {
        _ = try note("a")
        try device.push(OperationResult.applied(1))
        let first = try device.write(
            "UPDATE notes SET title = 'mine' WHERE id = 'a'",
            "UPDATE notes SET body = 'mine' WHERE id = 'a'"
        )
        let second = try device.write(
            "UPDATE notes SET likes = 3 WHERE id = 'a'",
            "INSERT INTO notes (id, title) VALUES ('b', 'with it')"
        )

        try device.push {
            switch $0.id {
            case first[0]: OperationResult.conflict(5, row: PushOutcomeTests.row("a", "theirs"))($0)
            case first[1]: OperationResult.mate(.conflict, of: first[0])($0)
            default: OperationResult.blocked(by: first[1])($0)
            }
        }

        #expect(try device.title("a") == "theirs")
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_conflicts") == 3)
        // The rest of a group that lost an operation is never sent alone without a person's word.
        #expect(try device.db.entries(where: "1").map(\.id) == [second[1]])
        #expect(try device.states() == [.failed])
        #expect(try device.plan() == nil)
        var random = device.random
        _ = try Repair(device.db).retry(second[1], now: device.now, random: &random)
        #expect(try device.plan()?.entries.map(\.after) == [[]])
    }

    @Test func `conflict: mates on other rows are dead letters and keep their values`() throws {
        _ = try note("a")
        try device.push(OperationResult.applied(1))
        let group = try device.write(
            "UPDATE notes SET title = 'mine' WHERE id = 'a'",
            "INSERT INTO notes (id, title) VALUES ('b', 'with it')"
        )

        try device.push {
            $0.id == group[0]
                ? OperationResult.conflict(5, row: PushOutcomeTests.row("a", "theirs"))($0)
                : OperationResult.mate(.conflict, of: group[0])($0)
        }

        #expect(try device.db.entries(where: "1").map(\.id) == [group[1]])
        #expect(try device.states() == [.failed])
        #expect(try device.title("b") == "with it")
    }

    @Test func `conflict of a create: children that refer to the row go on, since the row is there`() throws {
        let order = "0191b2a0-0000-7000-8000-00000000000a"
        let create = try device.write(
            "INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)"
        )[0]
        let payment = try device.write(
            """
            INSERT INTO payments (id, branch_id, order_id, amount_idr)
            VALUES ('0191b2a0-0000-7000-8000-00000000000b', 'B1', '\(order)', 5)
            """
        )[0]
        let theirs: JSONObject = [
            "id": .string(order), "branch_id": "B1", "plate": .null, "total_idr": 9, "status": "open",
        ]

        try device.push {
            $0.id == create
                ? OperationResult.conflict(5, row: theirs)($0) : OperationResult.blocked(by: create)($0)
        }

        #expect(try device.entry(payment)?.state == .pending)
        #expect(try device.plan()?.entries.map(\.after) == [[]])
    }

    @Test func `conflict with a deleted row: the row goes, the edit is kept`() throws {
        _ = try note("a")
        try device.push(OperationResult.applied(1))
        _ = try rename("a", "mine")

        try device.push(OperationResult.conflict(5, row: nil))

        #expect(try device.title("a") == nil)
        #expect(try known("a").isDeleted)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_conflicts") == 1)
    }
}
