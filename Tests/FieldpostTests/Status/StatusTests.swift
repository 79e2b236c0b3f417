import Fieldpost
import FieldpostSQLite
import FieldpostTesting
import Foundation
import Testing

@Suite struct StatusUpdateTests {
    @Test func `the status follows each write`() async throws {
        let store = try await Store.inMemory(Garage.schema)
        var updates = store.statusUpdates.makeAsyncIterator()
        #expect(try await updates.next()?.sentence == "All changes synced")

        try await store.insert(Job())
        #expect(try await updates.next()?.sentence == "1 change waiting to be sent")
        try await store.insert(Job())
        #expect(try await updates.next()?.sentence == "2 changes waiting to be sent")
    }

    @Test @MainActor func `the model shows what the store says`() async throws {
        let store = try await Store.inMemory(Garage.schema)
        let model = SyncStatusModel(store)
        #expect(model.sentence == "All changes synced")
        try await store.insert(Job())

        let task = Task { await model.run() }
        while model.status.local == 0 { await Task.yield() }

        #expect(model.sentence == "1 change waiting to be sent")
        await store.close()
        await task.value
    }

    @Test func `a row's status goes from nowhere to local to gone`() async throws {
        let store = try await Store.inMemory(Garage.schema)
        let job = Job()
        var updates = store.watchStatus(of: job).makeAsyncIterator()
        #expect(try await updates.next() == .some(nil))

        try await store.insert(job)
        #expect(try await updates.next() == .local)

        let other = Job()
        let error = await #expect(throws: FieldpostError.self) { try await store.status(of: other) }
        #expect(error?.code == .rowMissing)
    }

    /// The counts and every row's status against a plain reading of the tables, after random steps of any kind.
    @Test(arguments: 0..<20) func `the counts are those of the tables at every moment`(seed: Int) async throws
    {
        var random = SeededRandom(seed: UInt64(seed))
        let store = try await Store.inMemory(Garage.schema)
        if random.chance(70) { try await store.signIn(account: "a") }
        let jobs = (0..<5).map { _ in Job() }
        for job in jobs { try await store.insert(job) }
        for step in 0..<30 {
            let job = jobs[random.below(jobs.count)]
            let state = random.below(4)
            let isSent = random.chance(30)
            try await store.writer.perform { database, now, _ in
                let connection = database.connection
                // Half a lease ahead, so that the holder counts as alive.
                let far = now.milliseconds + 30_000
                switch step % 3 {
                case 0:
                    // Any entry may come to stand anywhere; the outbox's rules are tested elsewhere.
                    try connection.run(
                        "UPDATE fieldpost_outbox SET state = ? WHERE seq % 7 = ?",
                        .integer(Int64(state)),
                        .integer(Int64(step % 7))
                    )
                case 1:
                    try connection.run(
                        "UPDATE fieldpost_lease SET owner = '1/test', expires_at = \(far), on_wire = CASE WHEN ? THEN ifnull((SELECT json_group_array(seq) FROM "
                            + "(SELECT seq FROM fieldpost_outbox WHERE state = 0 LIMIT 3)), '[]') ELSE '[]' END",
                        .integer(isSent ? 1 : 0)
                    )
                default: break
                }
            }
            try await store.update(job) { $0.totalIDR += 1 }
            try await Self.compare(store, jobs)
        }
    }

    private static func compare(_ store: Store, _ jobs: [Job]) async throws {
        let status = try await store.status()
        let entries = try await store.outbox(limit: 10_000)
        let isSignedIn =
            try await store.read {
                try $0.fetchValue(Int.self, "select count(*) from fieldpost_meta where key = 'account'")
            } == 1
        func count(_ state: OutboxItem.State) -> Int { entries.count { $0.state == state } }
        #expect((isSignedIn ? status.pending : status.local) == count(.pending))
        #expect((isSignedIn ? status.local : status.pending) == 0)
        #expect(
            status.inFlight == count(.inFlight) && status.held == count(.held)
                && status.failed == count(.failed)
        )
        #expect(
            status.local + status.pending + status.inFlight + status.held + status.failed == entries.count
        )
        for job in jobs {
            let states = entries.filter { $0.row == job.id.uuidString.lowercased() }.map(\.state)
            let expected: RowStatus =
                states.contains(.failed) || states.contains(.held)
                ? .failed
                : states.contains(.inFlight)
                    ? .inFlight
                    : states.isEmpty ? .synced : isSignedIn ? .pending : .local
            #expect(try await store.status(of: job) == expected)
        }
    }
}
