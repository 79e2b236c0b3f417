import Fieldpost
import Foundation
import Testing

@Suite struct RecordTests {
    let folder: TemporaryFolder
    let store: Store

    init() async throws {
        folder = try TemporaryFolder()
        store = try await Garage.open(folder)
    }

    @Test func `a record comes back as it was inserted, whatever its properties`() async throws {
        let job = Job(
            status: .lost,
            urgency: .high,
            totalIDR: .max,
            hours: 0.1,
            paid: true,
            plate: "B 1 é",
            photo: Data([0, 255]),
            rate: Decimal(string: "0.10") ?? 0,
            steps: ["wash", "\"wax\""],
            car: Job.Car(make: "Kijang", doors: .min, extras: ["z": 1, "a": 2]),
            tags: ["b", "a"]
        )

        try await store.insert(job)

        #expect(try await store.fetchOne(Job.self, job.id) == job)
    }

    @Test func `the columns hold what the schema says`() async throws {
        let id = try #require(UUID(uuidString: "0191D3A0-0000-7000-8000-00000000000A"))
        try await store.insert(Job(id: id, urgency: .high, steps: ["a"], tags: ["b", "a"]))

        let row = try #require(
            try await store.read {
                try $0.query(
                    "select id, status, urgency, paid, opened_at, plate, rate, steps, tags from jobs"
                )
            }.first
        )

        #expect(
            row.values == [
                "0191d3a0-0000-7000-8000-00000000000a", "open", 7, 0, 1_764_460_800_125, nil, "12.5",
                #"["a"]"#,
                #"["a","b"]"#,
            ]
        )
    }

    @Test func `an update writes only the columns that changed`() async throws {
        let job = Job(totalIDR: 5, car: Job.Car(make: "Jazz", doors: 4, extras: ["x": 1, "y": 2]))
        try await store.insert(job)

        let changed = try await store.update(job) {
            $0.totalIDR = 6
            $0.status = .open
        }

        #expect(changed.totalIDR == 6)
        let update = try #require(try await store.outbox().last)
        #expect(update.change.json.text == #"{"set":{"total_idr":6}}"#)
    }

    @Test func `an update that changes nothing makes no operation`() async throws {
        let job = Job(
            steps: ["a"],
            car: Job.Car(make: "Jazz", doors: 4, extras: ["x": 1, "y": 2]),
            tags: ["q", "r"]
        )
        try await store.insert(job)

        try await store.update(job) { $0.totalIDR = 0 }
        try await store.save(job)

        #expect(try await store.outbox().count == 1)
    }

    @Test func `an update works on the row as it is, not as the caller remembers it`() async throws {
        let job = Job(totalIDR: 5)
        try await store.insert(job)
        try await store.update(job) { $0.totalIDR = 50 }

        let changed = try await store.update(job) { $0.totalIDR += 1 }

        #expect(changed.totalIDR == 51)
    }

    @Test func `save inserts what is new and updates what is there`() async throws {
        var job = Job(totalIDR: 1)
        try await store.save(job)
        job.totalIDR = 2
        job.plate = "B 2"

        try await store.save(job)

        #expect(try await store.fetchAll(Job.self) == [job])
        #expect(try await store.outbox().map(\.action) == ["create", "update"])
    }

    @Test func `a deleted row is gone, and deleting it again says so`() async throws {
        let job = Job()
        try await store.insert(job)

        #expect(try await store.delete(job))
        #expect(try await !store.delete(job))
        #expect(try await store.fetchOne(Job.self, job.id) == nil)
    }

    @Test func `a second row with a key is refused by its code`() async throws {
        let job = Job()
        try await store.insert(job)

        await #expect(throws: FieldpostError.self) { try await store.insert(job) }
        let error = await #expect(throws: FieldpostError.self) {
            try await store.update(Job.self, UUID()) { $0.paid = true }
        }
        #expect(error?.code == .rowMissing)
    }

    @Test func `the key of a row does not change`() async throws {
        let job = Job()
        try await store.insert(job)

        let error = await #expect(throws: FieldpostError.self) {
            try await store.update(job) { $0.id = UUID() }
        }
        #expect(error?.code == .type)
    }

    @Test func `a failing closure takes the whole transaction back`() async throws {
        struct Stop: Error {}
        await #expect(throws: Stop.self) {
            try await store.write { transaction in
                try transaction.insert(Job())
                throw Stop()
            }
        }

        #expect(try await store.fetchAll(Job.self).isEmpty)
        #expect(try await store.outbox().isEmpty)
    }

    @Test func `a NaN, a NUL and a date beyond 64 bits are refused by property`() async throws {
        for (job, property) in [
            (Job(hours: .nan), "hours"), (Job(plate: "a\u{0}b"), "plate"),
            (Job(openedAt: Date(timeIntervalSince1970: 1e300)), "openedAt"),
        ] {
            let error = await #expect(throws: FieldpostError.self) { try await store.insert(job) }
            #expect(error?.code == .type && error?.names == [property])
        }
    }

    @Test func `updating and deleting a query touches its rows alone`() async throws {
        try await store.write { transaction in
            for total in 1...4 { try transaction.insert(Job(totalIDR: Int64(total))) }
        }

        let counts = try await store.write { transaction in
            let updated = try transaction.updateAll(Job.where(\.totalIDR > 2)) { $0.paid = true }
            return (updated, try transaction.deleteAll(Job.where(\.paid == false)))
        }

        #expect(counts == (2, 2))
        #expect(try await store.fetchAll(Job.order(by: \.totalIDR)).map(\.totalIDR) == [3, 4])
    }
}
