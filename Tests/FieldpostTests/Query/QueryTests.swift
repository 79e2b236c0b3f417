import Fieldpost
import Foundation
import Testing

@Suite struct QueryTests {
    let folder: TemporaryFolder
    let store: Store

    init() async throws {
        folder = try TemporaryFolder()
        store = try await Garage.open(folder)
        try await store.write { transaction in
            try transaction.insert(Job(status: .open, totalIDR: 10, plate: "B 1", tags: ["red", "fast"]))
            try transaction.insert(Job(status: .paid, totalIDR: 20, paid: true, plate: "B 22"))
            try transaction.insert(
                Job(status: .lost, urgency: .high, totalIDR: 30, plate: nil, tags: ["red"])
            )
        }
    }

    private func totals(_ query: RecordQuery<Job>) async throws -> [Int64] {
        try await store.fetchAll(query.order(by: \.totalIDR)).map(\.totalIDR)
    }

    @Test func `comparisons of key paths`() async throws {
        #expect(try await totals(Job.where(\.status == .open)) == [10])
        #expect(try await totals(Job.where(\.status != .open)) == [20, 30])
        #expect(try await totals(Job.where(\.urgency == .high)) == [30])
        #expect(try await totals(Job.where(\.totalIDR < 20)) == [10])
        #expect(try await totals(Job.where(\.totalIDR >= 20)) == [20, 30])
        #expect(try await totals(Job.where(\.paid == true)) == [20])
        #expect(try await totals(Job.where(\.openedAt > Date(timeIntervalSince1970: 0))) == [10, 20, 30])
        #expect(try await totals(Job.where(\.amount <= 10)) == [10])
    }

    @Test func `nil equals nil and nothing else`() async throws {
        #expect(try await totals(Job.where(\.plate == nil)) == [30])
        #expect(try await totals(Job.where(\.plate != nil)) == [10, 20])
        #expect(try await totals(Job.where(\.plate != "B 1")) == [20, 30])
        #expect(try await totals(Job.where(\.plate > "B 1")) == [20])
        #expect(try await totals(Job.where(!(\.plate == "B 1"))) == [20, 30])
    }

    @Test func `conditions combine`() async throws {
        #expect(try await totals(Job.where(\.status == .open || \.totalIDR == 30)) == [10, 30])
        #expect(try await totals(Job.where(\.status == .open && \.totalIDR == 30)) == [])
        #expect(try await totals(Job.where(\.totalIDR > 5).where(\.totalIDR < 25)) == [10, 20])
        #expect(
            try await totals(Job.where(RecordFilter("total_idr % \(20) = 10") && \.paid == false)) == [
                10, 30,
            ]
        )
    }

    @Test func `columns of the closure have more to ask`() async throws {
        #expect(try await totals(Job.where { $0.status.in([.open, .lost]) }) == [10, 30])
        #expect(try await totals(Job.where { $0.totalIDR.in(15...30) && $0.plate != nil }) == [20])
        #expect(
            try await totals(Job.where { $0.plate.contains("22") || $0.plate.hasPrefix("B 1") }) == [10, 20]
        )
        #expect(try await totals(Job.where { $0.plate.like("b __") }) == [20])
        #expect(try await totals(Job.where { $0.tags.contains("red") }) == [10, 30])
        #expect(try await totals(Job.where { $0.status.in([]) }) == [])
    }

    @Test func `order, limit, offset and count`() async throws {
        let down = Job.order(by: \.totalIDR, .descending)
        #expect(try await store.fetchAll(down.limit(2)).map(\.totalIDR) == [30, 20])
        #expect(try await store.fetchAll(down.offset(1)).map(\.totalIDR) == [20, 10])
        #expect(try await store.fetchOne(down)?.totalIDR == 30)
        #expect(try await store.fetchCount(Job.where(\.totalIDR > 10)) == 2)
        #expect(try await store.fetchCount(Job.all.limit(2)) == 2)
    }

    @Test func `a computed property is no column, and a decimal has no order`() async throws {
        let computed = await #expect(throws: FieldpostError.self) {
            try await store.fetchAll(Job.where(\.isLarge == true))
        }
        #expect(computed?.code == .unknownColumn)
        let order = await #expect(throws: FieldpostError.self) {
            try await store.fetchAll(Job.where(\.rate > 1))
        }
        #expect(order?.code == .unsupported)
    }

    @Test func `interpolated SQL always binds`() async throws {
        let nasty = "'; drop table jobs; --"
        let plates = ["B 1", nasty]
        let least = 5

        let found = try await store.fetchAll(
            Job.self,
            "select * from \(Job.self) where plate in \(plates) and \(\Job.totalIDR) > \(least)"
        )

        #expect(found.map(\.totalIDR) == [10])
        #expect(try await store.fetchValue(Int.self, "select count(*) from jobs where plate = \(nasty)") == 0)
        let none: String? = nil
        #expect(try await store.fetchValue(Int.self, "select \(none) is null") == 1)
        #expect(try await store.fetchValue(Int.self, "select count(\(raw: "plate")) from jobs") == 2)
    }

    @Test func `a raw name that is no name is refused, and so is a value that cannot be stored`() async throws
    {
        for sql: SQL in ["select \(raw: "a; b")", "select \(Double.nan)", "select \(UInt64.max)"] {
            await #expect(throws: FieldpostError.self) { try await store.fetchValue(Int.self, sql) }
        }
    }

    @Test func `joins and aggregates decode by column name`() async throws {
        struct Sum: Decodable, Equatable, Sendable { var status: Job.Status, totalIDR: Int64, parts: Int? }
        let sums = try await store.fetchAll(
            Sum.self,
            """
            select j.status, sum(j.total_idr) as total_idr, nullif(count(p.id), 0) as parts
            from jobs j left join parts p on p.job_id = j.id group by j.status order by 2
            """
        )

        #expect(sums.map(\.status) == [.open, .paid, .lost])
        #expect(sums.map(\.totalIDR) == [10, 20, 30])
        #expect(sums.allSatisfy { $0.parts == nil })
        let error = await #expect(throws: FieldpostError.self) {
            try await store.fetchAll(Sum.self, "select status, total_idr as totl from jobs")
        }
        #expect(error?.code == .unknownColumn && error?.names == ["totalIDR"])
    }

    @Test func `a fetch may not write`() async throws {
        let error = await #expect(throws: FieldpostError.self) {
            try await store.write { try $0.fetchAll(Job.self, "delete from jobs returning *") }
        }
        #expect(error?.code == .notReadOnly)
        #expect(try await store.fetchCount(Job.all) == 3)
    }
}
