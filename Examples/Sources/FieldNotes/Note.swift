import Fieldpost
import Foundation

/// One note, as a row of the table `notes`.
struct Note: SyncedRecord, Equatable {
    enum Kind: String, Codable, CaseIterable { case observation, task, hazard }

    var id: UUID
    var title: String
    var body = ""
    var kind = Kind.observation
    var tags: Set<String> = []
    var isDone = false
    var seenAt: Date
    var place: Place?

    /// Kept as JSON in one column.
    struct Place: Codable, Equatable, Sendable {
        var latitude: Double
        var longitude: Double
    }
}

/// What the app keeps, and how concurrent edits of it are settled.
let fieldNotesSchema = Schema(version: 1) {
    Table("notes") {
        Column("id", .uuid).primaryKey()
        Column("title", .text)
        Column("body", .text).defaults(to: "")
        Column("kind", .text).defaults(to: "observation")
        Column("tags", .set).defaults(to: [])
        Column("is_done", .boolean).defaults(to: false)
        Column("seen_at", .date)
        Column("place", .json).optional()
    }
    // A losing text is kept for people to see; tags that two people add are both kept.
    .rule("body", .keepLosingVersion).rule("tags", .set)
    .index("seen_at")
}
