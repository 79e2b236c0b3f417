import CFieldpostSQLite
import FieldpostCore
import Testing

@testable import Fieldpost
@testable import FieldpostSQLite

/// What a step costs beside a short and a long backlog, in instructions of SQLite's machine.
@Suite struct OutboxCostTests {
    /// A device with so many notes, each an operation by itself: `n1`, `n2` and so on.
    private func device(notes count: Int) throws -> Device {
        let device = try Device()
        try device.db.connection.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO notes (id, title) SELECT 'n' || i, 't' FROM n
            """
        )
        return device
    }

    private func run(_ device: Device, _ sql: String) throws { try device.db.connection.execute(sql) }

    /// The instructions that `body` makes SQLite run on the device's connection, but for straight lines.
    private func work(_ device: Device, _ body: () throws -> Void) throws -> Int {
        let pointer = device.db.connection.database.pointer
        let count = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        count.initialize(to: 0)
        defer { count.deallocate() }
        sqlite3_progress_handler(
            pointer,
            1,
            { context in
                context!.assumingMemoryBound(to: Int.self).pointee += 1
                return 0
            },
            count
        )
        defer { sqlite3_progress_handler(pointer, 0, nil, nil) }
        try body()
        return count.pointee
    }

    /// The work of one step beside 20 and beside 2,000 operations.
    private func work(_ prepare: (Device) throws -> Void, _ step: (Device) throws -> Void) throws -> (
        few: Int, many: Int
    ) {
        func measured(_ count: Int) throws -> Int {
            let device = try device(notes: count)
            try prepare(device)
            return try work(device) { try step(device) }
        }
        return (try measured(20), try measured(2_000))
    }

    private func wait(_ device: Device) throws {
        try run(
            device,
            """
            UPDATE fieldpost_outbox SET state = 1, attempts = 1, last_attempt_at = \(device.now.milliseconds),
            next_attempt_at = \(device.now.milliseconds + 86_400_000)
            """
        )
    }

    /// Every second one becomes a dead letter and holds the next.
    private func setAside(_ device: Device) throws {
        try run(
            device,
            """
            UPDATE fieldpost_outbox SET state = 3, error = '{"code":"no"}' WHERE seq % 2;
            UPDATE fieldpost_outbox SET state = 2, held_by = (SELECT d.id FROM fieldpost_outbox AS d
              WHERE d.seq = fieldpost_outbox.seq - 1) WHERE state = 0;
            UPDATE fieldpost_lease SET sent_upto = (SELECT max(seq) FROM fieldpost_outbox)
            """
        )
    }

    @Test func `a plan costs the same whatever backs off ahead of it`() throws {
        let cost = try work {
            try wait($0)
            try $0.write("UPDATE notes SET title = 'x' WHERE id = 'n1'")
            try $0.write("INSERT INTO notes (id, title) VALUES ('new', 't')")
        } _: {
            let rows = try $0.plan()?.entries.map(\.row)
            #expect(rows == ["new"])
        }

        #expect(cost.few > 0)
        #expect(cost.many <= cost.few + 10, "\(cost)")
    }

    @Test func `a plan and its answer cost the same whatever is set aside`() throws {
        let cost = try work {
            try setAside($0)
            try $0.write("INSERT INTO notes (id, title) VALUES ('new', 't')")
        } _: { device in
            let batch = try #require(try device.plan())
            let summary = try device.settle(batch, OperationResult.applied(1))
            #expect(summary.applied == 1)
        }

        #expect(cost.few > 0)
        #expect(cost.many <= cost.few + 10, "\(cost)")
    }

    @Test func `asking what is in doubt reads no dead letter that the server has settled`() throws {
        let cost = try work {
            try setAside($0)
        } _: {
            let doubtful = try InDoubt($0.db).toVoid(limit: 10)
            #expect(doubtful.isEmpty)
        }

        #expect(cost.few > 0)
        #expect(cost.many <= cost.few + 10, "\(cost)")
    }

    @Test func `a page that names what is settled here already reads nothing of what is set aside`() throws {
        let gone = OperationResult(id: OperationID(stored: "gone"), status: .applied)
        let cost = try work {
            try setAside($0)
        } _: {
            let summary = try $0.pull([], settled: [gone])
            #expect(summary.settled == 0)
        }

        #expect(cost.few > 0)
        #expect(cost.many <= cost.few + 10, "\(cost)")
    }

    @Test func `an operation is found by its id among many that are ready`() throws {
        let device = try Device()
        var ids: [OperationID] = []
        for number in 0..<500 {
            ids += try device.write("INSERT INTO notes (id, title) VALUES ('n\(number)', 't')")
            device.advance(10)
        }

        for place in [0, 1, 250, 498, 499] {
            var found: OutboxEntry?
            let cost = try work(device) { found = try device.db.entry(ids[place]) }
            #expect(found?.seq == Int64(place + 1))
            #expect(cost > 0)
            // Nine halvings; a look at each of the 500 would be more than 1,000.
            #expect(cost < 400)
        }
    }

    @Test func `an operation is found by its id out of the order of time`() throws {
        let device = try Device()
        var ids: [OperationID] = []
        for number in 0..<40 {
            ids += try device.write("INSERT INTO notes (id, title) VALUES ('n\(number)', 't')")
            // The clock is set back again and again.
            device.advance(number % 7 == 0 ? -5_000 : 900)
        }
        for id in ids[10..<20] { try run(device, "DELETE FROM fieldpost_outbox WHERE id = '\(id.text)'") }
        let settled = Set(ids[10..<20])

        for id in ids {
            let found = try device.db.entry(id)?.id
            #expect(found == (settled.contains(id) ? nil : id))
        }
        #expect(try device.db.entry(OperationID(stored: "short")) == nil)
        let empty = try Device()
        #expect(try empty.db.entry(ids[0]) == nil)
    }

    @Test func `what depends on one of more than a hundred thousand dead letters does not go`() throws {
        let device = try device(notes: 100_010)
        try run(device, "UPDATE fieldpost_outbox SET state = 3")
        try device.write("UPDATE notes SET title = 'x' WHERE id = 'n100010'")

        #expect(try device.plan() == nil)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_outbox WHERE state = 2") == .integer(1))
    }
}
