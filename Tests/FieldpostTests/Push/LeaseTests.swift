import FieldpostCore
import Testing

@testable import Fieldpost

@Suite struct LeaseTests {
    let device: Device

    init() throws { device = try Device() }

    @Test func `nobody else gets a lease that is held`() throws {
        #expect(try Lease.acquire(device.db, owner: "other", now: device.now) == nil)
        device.advance(Lease.milliseconds - 1)
        #expect(try Lease.acquire(device.db, owner: "other", now: device.now) == nil)
    }

    @Test func `a lease that ran out is free, and its owner's fence is stale`() throws {
        let stale = device.lease!
        device.advance(Lease.milliseconds)

        let fresh = try #require(try Lease.acquire(device.db, owner: "other", now: device.now))

        #expect(fresh.fence > stale.fence)
        #expect(try !stale.isCurrent(device.db))
        #expect(try fresh.isCurrent(device.db))
    }

    @Test func `a dead process's lease is free at once`() throws {
        let lease = try Lease.acquire(device.db, owner: "other", now: device.now) { _ in false }

        #expect(lease != nil)
    }

    @Test func `an owner takes its own lease again, with a new fence`() throws {
        let first = device.lease!

        try device.takeLease()

        #expect(device.lease.fence > first.fence)
    }

    @Test func `a released lease is free, and a stale owner releases nothing`() throws {
        let stale = device.lease!
        try stale.release(device.db)
        let second = try #require(try Lease.acquire(device.db, owner: "second", now: device.now))

        try stale.release(device.db)

        #expect(try second.isCurrent(device.db))
        #expect(try Lease.acquire(device.db, owner: "third", now: device.now) == nil)
    }

    @Test func `a clock set back by a day does not keep a dead owner's lease for a day`() throws {
        device.advance(-86_400_000)

        #expect(try Lease.acquire(device.db, owner: "other", now: device.now) != nil)
    }

    @Test func `sending renews the lease and never lowers the mark of what was sent`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1'), ('b', '2')")
        _ = try device.plan()
        device.advance(Lease.milliseconds - 1)
        try device.write("INSERT INTO notes (id, title) VALUES ('c', '3')")

        _ = try device.plan(operations: 1)

        #expect(try device.scalar("SELECT sent_upto FROM fieldpost_lease") == 2)
        #expect(try device.scalar("SELECT on_wire FROM fieldpost_lease") == "[1,2]")
        device.advance(Lease.milliseconds - 1)
        #expect(try Lease.acquire(device.db, owner: "other", now: device.now) == nil)
    }

    @Test func `a stale owner can neither plan nor settle`() throws {
        try device.write("INSERT INTO notes (id, title) VALUES ('a', '1')")
        let batch = try #require(try device.plan())
        let stale = device.lease!
        device.advance(Lease.milliseconds)
        try device.takeLease("other")
        var random = device.random

        #expect(throws: LeaseLost.self) {
            try PushPlan.next(device.db, lease: stale, limits: .init(operations: 9), now: device.now)
        }
        #expect(throws: LeaseLost.self) {
            try PushOutcome.apply(
                device.db,
                lease: stale,
                batch: batch,
                results: batch.entries.map { OperationResult(id: $0.id, status: .applied) },
                now: device.now,
                random: &random
            )
        }
        #expect(try device.states() == [.pending])
    }
}
