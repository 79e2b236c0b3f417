import Foundation

/// A folder of its own for one test, removed with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "fieldpost-cli-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
        try write(Samples.schema, to: "shop.json")
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    var schema: String { file("shop.json") }

    @discardableResult
    func write(_ text: String, to name: String) throws -> String { try write(Array(text.utf8), to: name) }

    @discardableResult
    func write(_ bytes: [UInt8], to name: String) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
        return file(name)
    }
}

/// The shop that the tests sell in.
enum Samples {
    static let schema = """
        { "version": 1, "tables": {
          "orders": {
            "columns": { "id": "uuid", "branch_id": "text", "plate": "text?", "total_idr": "integer",
                         "status": "text", "opened_at": "date?" },
            "scope": "branch_id", "conflict": "compareAndSet", "defaults": { "status": "open" },
            "checks": { "total_not_negative": "total_idr >= 0" } },
          "payments": {
            "columns": { "id": "uuid", "branch_id": "text", "order_id": "uuid", "amount_idr": "integer" },
            "scope": "branch_id", "references": { "order_id": { "table": "orders", "onDelete": "cascade" } } },
          "notes": {
            "columns": { "id": "text", "title": "text", "tags": "set", "likes": "integer", "done": "boolean",
                         "picture": "blob?", "score": "real?" },
            "rules": { "tags": "set", "likes": "counter" },
            "defaults": { "tags": [], "likes": 0, "done": false } }
        } }
        """

    /// A row's key, one for each number.
    static func id(_ number: Int) -> String { "01900000-0000-7000-8000-" + String(format: "%012d", number) }

    /// A write that creates an order.
    static func order(_ number: Int, total: Int = 5, branch: String = "B1") -> String {
        #"{"do":"write","ops":[{"table":"orders","action":"create","row":"\#(id(number))","#
            + #""set":{"branch_id":"\#(branch)","total_idr":\#(total)}}]}"#
    }
}
