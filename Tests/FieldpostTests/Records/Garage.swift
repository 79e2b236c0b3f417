import Fieldpost
import Foundation

/// The garage whose jobs the store's tests keep.
enum Garage {
    static let schema = Schema(version: 1) {
        Table("jobs") {
            Column("id", .uuid).primaryKey()
            Column("status", .text).defaults(to: "open")
            Column("urgency", .integer)
            Column("total_idr", .integer)
            Column("hours", .real)
            Column("paid", .boolean)
            Column("opened_at", .date)
            Column("plate", .text).optional()
            Column("photo", .blob).optional()
            Column("rate", .text)
            Column("steps", .json)
            Column("car", .json).optional()
            Column("tags", .set).defaults(to: [])
        }
        .rule("tags", .set)
        Table("parts") {
            Column("id", .text).primaryKey()
            Column("job_id", .uuid).references("jobs")
            Column("price", .integer)
        }
    }

    /// A store in a folder of its own.
    static func open(_ folder: TemporaryFolder, schema: Schema = schema) async throws -> Store {
        try await Store.open(at: folder.path("garage.db"), schema: schema)
    }
}

struct Job: SyncedRecord, Equatable {
    // Lists no cases, as most enums of an app.
    enum Status: String, Codable { case open, paid, lost }
    enum Urgency: Int, Codable { case low = 3, high = 7 }
    struct Car: Codable, Equatable, Sendable {
        var make: String
        var doors: Int64
        var extras: [String: Int]
    }

    var id = UUID()
    var status = Status.open
    var urgency = Urgency.low
    var totalIDR: Int64 = 0
    var hours = 0.0
    var paid = false
    var openedAt = Date(timeIntervalSince1970: 1_764_460_800.125)
    var plate: String?
    var photo: Data?
    var rate = Decimal(string: "12.50") ?? 0
    var steps: [String] = []
    var car: Car?
    var tags: Set<String> = []

    /// Not stored, and no column.
    var isLarge: Bool { totalIDR > 100 }
    /// Not stored, but always the same as a column.
    var amount: Int64 { totalIDR }
}

struct Part: SyncedRecord, Equatable {
    var id: String
    var jobId: UUID
    var price: Int
}
