import FieldpostCore
import Foundation

@testable import Fieldpost

/// The shop that the tests sell in.
enum Samples {
    static let shop = Schema(version: 1) {
        Table("orders", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("plate", .text).optional()
            Column("total_idr", .integer)
            Column("status", .text).defaults(to: "open")
        }
        .check("total_not_negative", "total_idr >= 0")
        Table("payments", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("order_id", .uuid).references("orders")
            Column("amount_idr", .integer)
        }
        .conflict(.appendOnly)
        Table("notes") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("body", .text).optional()
            Column("score", .real).optional()
            Column("done", .boolean).defaults(to: false)
            Column("photo", .blob).optional()
            Column("meta", .json).optional()
            Column("tags", .set).defaults(to: [])
            Column("likes", .integer).defaults(to: 0)
        }
        .rule("tags", .set).rule("likes", .counter)
    }

    /// A path in a folder of its own, removed with the returned object.
    static func temporaryFolder() throws -> TemporaryFolder { try TemporaryFolder() }
}

/// A folder that goes when the object does.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "fieldpost-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appending(path: name).path }
}
