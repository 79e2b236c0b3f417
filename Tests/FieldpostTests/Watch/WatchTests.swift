import Fieldpost
import FieldpostSQLite
import Foundation
import Testing

/// Each test counts how often the query ran: a watcher that polls, or that runs at every commit, is found out.
@Suite struct WatchTests {
    let folder: TemporaryFolder
    let store: Store

    init() async throws {
        folder = try TemporaryFolder()
        store = try await Garage.open(folder)
    }

    @Test func `the first result comes at once, the next after a commit that changes it`() async throws {
        var results = store.watch(Job.where(\.status == .open)).makeAsyncIterator()
        #expect(try await results.next() == [])
        let job = Job()

        try await store.insert(job)

        #expect(try await results.next() == [job])
        #expect(store.watchRunCount == 2)
    }

    @Test func `a commit to another table runs nothing`() async throws {
        let job = Job()
        try await store.insert(job)
        var results = store.watch(Job.all).makeAsyncIterator()
        _ = try await results.next()

        try await store.insert(Part(id: "p", jobId: job.id, price: 1))

        #expect(store.watchRunCount == 1)
    }

    @Test func `an update of columns that the query does not read runs nothing`() async throws {
        let job = Job(totalIDR: 1)
        try await store.insert(job)
        var sums = store.watchValue(Int64.self, "select sum(total_idr) from jobs").makeAsyncIterator()
        var counts = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await sums.next() == 1)
        #expect(try await counts.next() == 1)

        try await store.update(job) { $0.plate = "B 1" }
        #expect(store.watchRunCount == 2)
        try await store.update(job) { $0.totalIDR = 2 }

        #expect(try await sums.next() == 2)
        // The count reads no column: only a row that comes or goes can change it.
        #expect(store.watchRunCount == 3)
    }

    @Test func `a write that is rolled back runs nothing`() async throws {
        struct Stop: Error {}
        var results = store.watch(Job.all).makeAsyncIterator()
        _ = try await results.next()

        try? await store.write { transaction in
            try transaction.insert(Job())
            throw Stop()
        }
        try await store.write { _ = try $0.fetchAll(Job.self) }

        #expect(store.watchRunCount == 1)
    }

    @Test func `equal results are not emitted twice`() async throws {
        try await store.insert(Job(totalIDR: 1))
        var results = store.watch(Job.where(\.totalIDR > 10)).makeAsyncIterator()
        #expect(try await results.next() == [])

        try await store.insert(Job(totalIDR: 2))
        try await store.insert(Job(totalIDR: 20))

        #expect(try await results.next()?.map(\.totalIDR) == [20])
    }

    @Test func `who reads slowly gets the latest and never a queue`() async throws {
        var results = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await results.next() == 0)
        var other = store.watchValue(Int.self, "select count(id) from jobs").makeAsyncIterator()
        #expect(try await other.next() == 0)

        for count in 1...5 {
            try await store.insert(Job())
            while try await other.next() != count {}
        }

        var seen = try await results.next() ?? 0
        while seen < 5 { seen = try await results.next() ?? 5 }
        #expect(seen == 5)
        #expect(store.watchRunCount <= 12)
    }

    @Test func `a transaction of many writes is one result`() async throws {
        var results = store.watchCount(Job.all).makeAsyncIterator()
        _ = try await results.next()

        try await store.write { transaction in
            for _ in 0..<100 { try transaction.insert(Job()) }
        }

        #expect(try await results.next() == 100)
        #expect(store.watchRunCount == 2)
    }

    @Test func `equal watchers share one run`() async throws {
        var iterators = (0..<100).map { _ in store.watch(Job.where(\.totalIDR >= 0)).makeAsyncIterator() }
        for index in iterators.indices { #expect(try await iterators[index].next() == []) }
        #expect(store.watchRunCount == 1)

        try await store.insert(Job())

        for index in iterators.indices { #expect(try await iterators[index].next()?.count == 1) }
        #expect(store.watchRunCount == 2)
        #expect(store.watchedCount == 1)
    }

    @Test func `leaving the loop frees everything`() async throws {
        do {
            var results = store.watch(Job.all).makeAsyncIterator()
            _ = try await results.next()
            #expect(store.watchedCount == 1)
        }
        #expect(store.watchedCount == 0)

        try await store.insert(Job())

        #expect(store.watchRunCount == 1)
    }

    @Test func `cancelling the task ends the loop`() async throws {
        let store = store
        let (started, start) = AsyncStream<Void>.makeStream()
        let task = Task {
            var count = 0
            for try await _ in store.watch(Job.all) {
                count += 1
                start.yield()
            }
            return count
        }
        for await _ in started { break }

        task.cancel()

        #expect(try await task.value == 1)
        #expect(store.watchedCount == 0)
    }

    @Test func `closing the store ends the loop`() async throws {
        var results = store.watch(Job.all).makeAsyncIterator()
        _ = try await results.next()

        await store.close()

        #expect(try await results.next() == nil)
        var late = store.watch(Job.all).makeAsyncIterator()
        #expect(try await late.next() == nil)
    }

    @Test func `a faulty query ends the loop with its error`() async throws {
        var results = store.watchValue(Int.self, "select nonsense from jobs").makeAsyncIterator()

        await #expect(throws: StoreError.self) { try await results.next() }
        #expect(try await results.next() == nil)
        #expect(store.watchedCount == 0)
    }

    @Test func `a delete without where is seen`() async throws {
        try await store.write { try $0.execute("create table plain (a)") }
        try await store.write { try $0.execute("insert into plain values (1), (2)") }
        var counts = store.watchValue(Int.self, "select count(*) from plain").makeAsyncIterator()
        #expect(try await counts.next() == 2)

        try await store.write { try $0.execute("delete from plain") }

        #expect(try await counts.next() == 0)
    }

    @Test func `changes of a table without row ids are seen`() async throws {
        try await store.write {
            try $0.execute(
                "create table pairs (k primary key, v) without rowid; insert into pairs values (1, 1)"
            )
        }
        var values = store.watchValue(Int.self, "select v from pairs").makeAsyncIterator()
        #expect(try await values.next() == 1)

        try await store.write { try $0.execute("update pairs set v = 2") }

        #expect(try await values.next() == 2)
    }

    @Test func `a row that a replacing update removes is seen`() async throws {
        try await store.write {
            try $0.execute(
                "create table seats (id integer primary key, place unique); insert into seats values (1, 1), (2, 2)"
            )
        }
        var counts = store.watchValue(Int.self, "select count(*) from seats").makeAsyncIterator()
        #expect(try await counts.next() == 2)

        try await store.write { try $0.execute("update or replace seats set place = 2 where id = 1") }

        #expect(try await counts.next() == 1)
    }

    @Test func `a view and a join are looked through`() async throws {
        let job = Job(plate: "B 1")
        try await store.insert(job)
        try await store.write { try $0.execute("create view plates as select plate from jobs") }
        var plates = store.watchValue(String.self, "select plate from plates").makeAsyncIterator()
        #expect(try await plates.next() == "B 1")

        try await store.update(job) { $0.plate = "B 2" }

        #expect(try await plates.next() == "B 2")
    }

    @Test func `a changed schema runs every query again`() async throws {
        var results = store.watch(Job.all).makeAsyncIterator()
        _ = try await results.next()
        try await store.write { try $0.execute("alter table parts add column note text") }
        var notes = store.watchValue(String.self, "select note from parts").makeAsyncIterator()
        #expect(try await notes.next() == .some(nil))
        let job = Job()
        try await store.write { transaction in
            try transaction.insert(job)
            try transaction.execute(
                "insert into parts (id, job_id, price, note) values ('p', \(job.id), 1, 'x')"
            )
        }

        #expect(try await notes.next() == "x")
        #expect(try await results.next() == [job])
    }

    @Test func `one record, and what a closure reads`() async throws {
        let job = Job()
        var one = store.watch(Job.self, job.id).makeAsyncIterator()
        #expect(try await one.next() == .some(nil))
        var both = store.watch { [try $0.fetchCount(Job.all), try $0.fetchCount(Part.all)] }
            .makeAsyncIterator()
        #expect(try await both.next() == [0, 0])

        try await store.insert(job)
        #expect(try await one.next() == job)
        #expect(try await both.next() == [1, 0])
        try await store.insert(Part(id: "p", jobId: job.id, price: 1))
        #expect(try await both.next() == [1, 1])
    }

    @Test func `what another connection of the process commits is seen`() async throws {
        var results = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await results.next() == 0)
        let other = try Connection(path: folder.path("garage.db"))

        try other.run(
            "insert into jobs (id, urgency, total_idr, hours, paid, opened_at, rate, steps) values (?, 3, 1, 0, 0, 0, '1', '[]')",
            .text(UUID().uuidString.lowercased())
        )

        #expect(try await results.next() == 1)
        #expect(try await store.outbox().count == 1)
    }

    @Test func `what another process commits is seen`() async throws {
        var results = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await results.next() == 0)
        let python = Process()
        python.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        python.arguments = [
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.execute("insert into jobs (id, urgency, total_idr, hours, paid, opened_at, rate, steps)"
                      " values ('0191d3a0-0000-7000-8000-000000000001', 3, 1, 0, 0, 0, '1', '[]')")
            c.commit()
            """, folder.path("garage.db"),
        ]
        python.standardInput = FileHandle.nullDevice
        try python.run()
        python.waitUntilExit()
        #expect(python.terminationStatus == 0)

        #expect(try await results.next() == 1)
    }

    @Test func `the server's rows are seen`() async throws {
        var results = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await results.next() == 0)

        try await store.writer.perform { database, _, _ in
            try database.applying {
                try database.connection.execute(
                    """
                    insert into jobs (id, urgency, total_idr, hours, paid, opened_at, rate, steps)
                    values ('0191d3a0-0000-7000-8000-000000000001', 3, 1, 0, 0, 0, '1', '[]')
                    """
                )
            }
        }

        #expect(try await results.next() == 1)
    }
}
