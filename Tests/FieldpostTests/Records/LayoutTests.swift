import Fieldpost
import Foundation
import Testing

@Suite struct LayoutTests {
    let folder: TemporaryFolder
    let store: Store

    init() async throws {
        folder = try TemporaryFolder()
        store = try await Garage.open(folder)
    }

    private func failure<Record: SyncedRecord>(_ type: Record.Type) async throws -> FieldpostError {
        try #require(await #expect(throws: FieldpostError.self) { try await store.fetchAll(type) })
    }

    @Test func `a property without a column is named, with the column that was meant`() async throws {
        struct Misspelt: SyncedRecord {
            static let tableName = "parts"
            var id: String
            var jobId: UUID
            var prise: Int
        }

        let error = try await failure(Misspelt.self)

        #expect(error.code == .unknownColumn && error.names == ["prise"])
        #expect(error.message == "Misspelt.prise: parts has no column prise; did you mean price?")
    }

    @Test func `a property of the wrong type is named, with both types`() async throws {
        struct Wrong: SyncedRecord {
            static let tableName = "parts"
            var id: String
            var jobId: UUID
            var price: String
        }

        let error = try await failure(Wrong.self)

        #expect(error.code == .type && error.names == ["price"])
        #expect(
            error.message == "Wrong.price: the column parts.price is integer, which String does not hold."
        )
    }

    @Test func `a required property for a column that may be NULL is named`() async throws {
        struct Strict: SyncedRecord {
            static let tableName = "jobs"
            var id: UUID
            var plate: String
        }

        let error = try await failure(Strict.self)

        #expect(
            error.message == "Strict.plate: the column jobs.plate may be NULL; make the property optional."
        )
    }

    @Test func `a missing table is named, with the one that was meant`() async throws {
        struct Jib: SyncedRecord { var id: UUID }

        let error = try await failure(Jib.self)

        #expect(error.code == .unknownTable)
        #expect(error.message == "Jib: the schema has no table jibs; did you mean jobs?")
    }

    @Test func `a type may leave columns out and give keys names of its own`() async throws {
        struct Plain: SyncedRecord, Equatable {
            static let tableName = "parts"
            enum CodingKeys: String, CodingKey { case id, job = "job_id", cost = "price" }
            var id: String
            var job: UUID
            var cost: UInt8
        }
        let job = Job()
        try await store.insert(job)
        try await store.insert(Plain(id: "p", job: job.id, cost: 200))

        #expect(
            try await store.fetchAll(Plain.where(\.cost == 200)) == [Plain(id: "p", job: job.id, cost: 200)]
        )
        try await store.write { try $0.execute("update parts set price = 256") }
        let error = try #require(
            await #expect(throws: FieldpostError.self) { try await store.fetchAll(Plain.self) }
        )
        #expect(error.code == .type)
        #expect(error.message.hasPrefix("Plain.price: expected an integer that UInt8 holds"))
    }

    @Test func `names become snake case and plural`() async throws {
        struct HTTPLogEntry: SyncedRecord { var id: String }
        struct Box: SyncedRecord { var id: String }
        struct Survey: SyncedRecord { var id: String }

        #expect(
            [HTTPLogEntry.tableName, Box.tableName, Survey.tableName] == [
                "http_log_entries", "boxes", "surveys",
            ]
        )
    }

    @Test func `a type that refuses made-up values still reads and writes`() async throws {
        struct Picky: SyncedRecord {
            static let tableName = "parts"
            enum CodingKeys: String, CodingKey { case id, jobId, price }
            var id: String
            var jobId: UUID
            var price: Int
            init(id: String, jobId: UUID, price: Int) {
                (self.id, self.jobId, self.price) = (id, jobId, price)
            }
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                price = try container.decode(Int.self, forKey: .price)
                guard price > 99 else {
                    throw DecodingError.dataCorruptedError(
                        forKey: .price,
                        in: container,
                        debugDescription: "cheap"
                    )
                }
                id = try container.decode(String.self, forKey: .id)
                jobId = try container.decode(UUID.self, forKey: .jobId)
            }
        }
        let job = Job()
        try await store.insert(job)
        try await store.insert(Picky(id: "p", jobId: job.id, price: 100))

        #expect(try await store.fetchAll(Picky.self).map(\.jobId) == [job.id])
        let error = await #expect(throws: FieldpostError.self) {
            try await store.fetchAll(Picky.where(\.price == 1))
        }
        #expect(error?.code == .unsupported)
    }
}
