import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// Operations that were sent and not answered: what a person decides about them waits for the server's word.
@Suite struct InDoubtTests {
    let device: Device
    let server: MockServer
    let order = "0191b2a0-0000-7000-8000-00000000000a"
    let payment = "0191b2a0-0000-7000-8000-00000000000b"

    init() throws {
        device = try Device()
        server = try MockServer(schema: Samples.shop)
    }

    private func createOrder() throws -> OperationID {
        try device.write("INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)")[0]
    }

    private func discard(_ id: OperationID, dependants: Bool = false) throws -> [OperationID] {
        try Repair(device.db).discard(id, dependants: dependants, now: device.now)
    }

    private func edit(_ id: OperationID, _ values: JSONObject) throws -> OperationID {
        try Repair(device.db).edit(id, set: values, now: device.now, random: &device.random)
    }

    private var total: Value? { get throws { try device.scalar("SELECT total_idr FROM orders") } }

    /// Sends everything, and no answer comes.
    ///
    /// - Parameter arrives: whether the server got it.
    private func send(arrives: Bool) async throws -> PushBatch {
        let batch = try #require(try device.plan())
        if arrives { _ = try await deliver(batch) }
        return batch
    }

    private func deliver(_ batch: PushBatch) async throws -> [OperationResult] {
        let context = RequestContext(
            token: MockServer.everyScope,
            device: try device.db.deviceID(),
            schema: 1,
            now: device.now
        )
        return try await server.push(OutgoingPush(body: batch.body), context).results
    }

    // MARK: Discard

    @Test func `discard of what never arrived: it is voided, taken back, and a late request does no harm`()
        async throws
    {
        let id = try createOrder()
        let late = try await send(arrives: false)

        #expect(try discard(id) == [id])
        #expect(try total == 5)
        #expect(try device.outboxCount == 1)
        let run = try await device.sync(with: server)

        #expect(run.end == .done)
        #expect(try device.outboxCount == 0)
        #expect(try total == nil)
        #expect(try device.scalar("SELECT status FROM fieldpost_outcomes") == "discarded")
        #expect(try await deliver(late).map(\.code) == ["voided"])
        #expect(try server.query("SELECT count(*) FROM orders") == [[0]])
    }

    @Test func `discard of what was applied after all: the row stays, settled`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: true)

        _ = try discard(id)
        try await device.sync(with: server)

        #expect(try device.outboxCount == 0)
        #expect(try total == 5)
        #expect(try device.scalar("SELECT status FROM fieldpost_outcomes") == "applied")
        #expect(try server.query("SELECT count(*) FROM orders") == [[1]])
    }

    @Test func `offline, the decision waits and nothing is sent`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: false)
        _ = try discard(id)
        server.setOffline(true)

        let run = try await device.sync(with: server)

        #expect(run.end == .offline("the server is offline"))
        #expect(server.requests.pushes == 0)
        #expect(try total == 5)
        server.setOffline(false)
        try await device.sync(with: server)
        #expect(server.requests.pushes == 0)
        #expect(try total == nil)
    }

    @Test func `discard with dependants: all of them are voided first`() async throws {
        let id = try createOrder()
        let child = try device.write(
            "INSERT INTO payments (id, branch_id, order_id, amount_idr) VALUES ('\(payment)', 'B1', '\(order)', 5)"
        )[0]
        let late = try await send(arrives: false)

        #expect(try Set(discard(id, dependants: true)) == [id, child])
        try await device.sync(with: server)

        #expect(try device.outboxCount == 0)
        #expect(try device.scalar("SELECT count(*) FROM payments") == 0)
        #expect(try await deliver(late).allSatisfy { $0.status == .rejected })
    }

    @Test func `a retry after the decision takes it back`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: false)
        _ = try discard(id)

        #expect(try Repair(device.db).retry(id, now: device.now, random: &device.random) == [id])
        try await device.sync(with: server)

        #expect(try server.query("SELECT total_idr FROM orders") == [[5]])
    }

    // MARK: Edit

    @Test func `edit of what never arrived: a new operation with the new values`() async throws {
        let id = try createOrder()
        let late = try await send(arrives: false)

        #expect(try edit(id, ["total_idr": 9]) == id)
        try await device.sync(with: server)

        #expect(try server.query("SELECT total_idr FROM orders") == [[9]])
        #expect(try total == 9)
        #expect(try device.outboxCount == 0)
        #expect(try await deliver(late).map(\.code) == ["voided"])
    }

    @Test func `edit of what was applied after all: an edit of its own`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: true)

        _ = try edit(id, ["total_idr": 9])
        try await device.sync(with: server)
        try await device.sync(with: server)

        #expect(try server.query("SELECT total_idr FROM orders") == [[9]])
        #expect(try total == 9)
        #expect(
            try server.query("SELECT count(*) FROM fieldpost_operations WHERE status = 'applied'") == [[2]]
        )
    }

    @Test func `values that the table does not take are refused at once`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: false)

        #expect(throws: FieldpostError.self) { try edit(id, ["totl": 1]) }
        #expect(throws: FieldpostError.self) { try edit(id, ["total_idr": "much"]) }
        #expect(throws: FieldpostError.self) { try edit(id, ["total_idr": -1]) }
        #expect(try total == 5)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_outbox WHERE decision IS NOT NULL") == 0)
    }

    @Test func `two edits of one group in doubt are both made`() async throws {
        let id = try device.write(
            "INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)",
            "INSERT INTO notes (id, title) VALUES ('n', 'old')"
        )
        _ = try await send(arrives: false)

        _ = try edit(id[0], ["total_idr": 9])
        _ = try edit(id[1], ["title": "new"])
        _ = try edit(id[0], ["status": "paid"])
        try await device.sync(with: server)

        #expect(try server.query("SELECT total_idr, status FROM orders") == [[9, "paid"]])
        #expect(try server.query("SELECT title FROM notes") == [["new"]])
        #expect(try device.outboxCount == 0)
    }

    @Test func `an edit made meanwhile on top of what is discarded stays, and is held`() async throws {
        let id = try createOrder()
        _ = try await send(arrives: false)
        _ = try discard(id)
        let later = try device.write("UPDATE orders SET status = 'paid'")[0]

        try await device.sync(with: server)

        #expect(try device.entry(id)?.state == .failed)
        #expect(try device.entry(later)?.state == .held)
        #expect(try device.scalar("SELECT status FROM orders") == "paid")
    }

    @Test func `an edit is made although a page settles what it was about`() async throws {
        let id = try createOrder()
        let batch = try await send(arrives: false)
        _ = try edit(id, ["total_idr": 9])
        let result = OperationResult.applied(1)(try PushRequest(bytes: batch.body).groups[0].operations[0])
        try device.pull(
            [
                PulledChange(
                    table: "orders",
                    row: order,
                    version: 1,
                    set: [
                        "id": .string(order), "branch_id": "B1", "plate": nil, "total_idr": 5,
                        "status": "open",
                    ]
                )
            ],
            settled: [result]
        )

        #expect(try total == 9)
        #expect(try device.db.entries(where: "1").map(\.action) == ["update"])
    }

    @Test func `an edit that refers to a newer row waits for it`() async throws {
        let first = try createOrder()
        try device.push(OperationResult.applied(1))
        let child = try device.write(
            "INSERT INTO payments (id, branch_id, order_id, amount_idr) VALUES ('\(payment)', 'B1', '\(order)', 5)"
        )[0]
        try device.push(OperationResult.rejected("no"))
        let other = "0191b2a0-0000-7000-8000-00000000000c"
        let parent = try device.write(
            "INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(other)', 'B1', 7)"
        )[0]
        _ = first

        let new = try edit(child, ["order_id": .string(other)])

        #expect(try device.entry(new)?.after.contains(parent) == true)
    }

    // MARK: Dead letters

    @Test func `a dead letter that the server never settled is voided by the next run, and keeps its reason`()
        async throws
    {
        let id = try createOrder()
        let batch = try await send(arrives: false)
        _ = try PushOutcome.reject(
            device.db,
            lease: device.lease,
            batch: batch,
            code: "too_large",
            message: "too much",
            now: device.now,
            random: &device.random
        )
        #expect(try device.entry(id)?.isRefused == false)

        try await device.sync(with: server)

        let entry = try #require(try device.entry(id))
        #expect(entry.state == .failed && entry.isRefused)
        #expect(entry.error?.contains("too_large") == true)
        let new = try Repair(device.db).retry(id, now: device.now, random: &device.random)
        #expect(new != [id])
        try await device.sync(with: server)
        #expect(try server.query("SELECT count(*) FROM orders") == [[1]])
    }

    @Test func `a dead letter that was applied all the same is settled`() async throws {
        _ = try createOrder()
        let batch = try await send(arrives: true)
        _ = try PushOutcome.reject(
            device.db,
            lease: device.lease,
            batch: batch,
            code: "too_large",
            message: "",
            now: device.now,
            random: &device.random
        )

        try await device.sync(with: server)

        #expect(try device.outboxCount == 0)
        #expect(try device.scalar("SELECT status FROM fieldpost_outcomes") == "applied")
    }

    @Test func `a server that voids nothing is sent the operation again, and then the decision counts`()
        async throws
    {
        let id = try createOrder()
        _ = try await send(arrives: false)
        _ = try discard(id)
        var run = SyncRun(lease: device.lease)
        guard case .void(let ids) = try run.next(device.db, now: device.now) else {
            return #expect(Bool(false), "it asks first")
        }
        #expect(ids == [id])
        try run.voided(.success(nil), device.db, now: device.now, random: &device.random)

        guard case .push(let batch) = try run.next(device.db, now: device.now) else {
            return #expect(Bool(false), "then it sends")
        }
        let refused = OperationResult.rejected("no")(
            try PushRequest(bytes: batch.body).groups[0].operations[0]
        )
        try run.pushed(
            .success(PushResponse(results: [refused], serverTime: device.now)),
            batch,
            elapsed: 1,
            device.db,
            now: device.now,
            random: &device.random
        )

        #expect(try device.outboxCount == 0)
        #expect(try total == nil)
    }

    @Test func `a kill at any statement of the server's word leaves the decision standing or done`()
        async throws
    {
        for statement in 0..<80 {
            let device = try Device()
            let id = try device.write(
                "INSERT INTO orders (id, branch_id, total_idr) VALUES ('\(order)', 'B1', 5)"
            )[0]
            _ = try device.plan()
            _ = try Repair(device.db).discard(id, now: device.now)
            var voided = OperationResult(id: id, status: .rejected)
            voided.code = "voided"
            let wasKilled = try device.killed(after: statement) {
                _ = try PushOutcome.voided(
                    device.db,
                    lease: device.lease,
                    results: [voided],
                    now: device.now,
                    random: &device.random
                )
            }
            if !wasKilled {
                #expect(try device.outboxCount == 0)
                return #expect(statement > 5)
            }
            let isDone = try device.outboxCount == 0
            #expect(try isDone || InDoubt(device.db).toVoid(limit: 10).map(\.id) == [id])
        }
        Issue.record("the answer takes more statements than this tries")
    }

    // MARK: History

    @Test func `every attempt is kept with its reason, also in the outcome`() async throws {
        let id = try createOrder()
        try device.push(OperationResult.retry(1))
        device.advance(600_000)
        try device.push(OperationResult.rejected("too_cheap"))

        let item = OutboxItem(try device.entry(id)!, isOnWire: false, schema: Samples.shop)
        #expect(item.history.map(\.code) == ["retry", "too_cheap"])
        _ = try discard(id)
        #expect(
            Attempt.list(try device.scalar("SELECT history FROM fieldpost_outcomes")?.text).map(\.code)
                == ["retry", "too_cheap"]
        )
    }

    @Test func `the history holds the newest twenty attempts`() throws {
        let id = try createOrder()
        var last = id
        for turn in 1...25 {
            try device.push(OperationResult.rejected("r\(turn)"))
            last = try Repair(device.db).retry(last, now: device.now, random: &device.random)[0]
        }

        #expect(Attempt.list(try device.entry(last)?.history).map(\.code) == (6...25).map { "r\($0)" })
    }
}
