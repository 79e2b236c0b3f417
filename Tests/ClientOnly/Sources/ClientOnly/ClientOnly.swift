import Fieldpost
import Foundation

@main struct ClientOnly {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let schema = Schema(version: 1) {
            Table("notes") {
                Column("id", .uuid).primaryKey()
                Column("title", .text)
            }
        }
        let store = try await Store.open(at: folder.appending(path: "notes.db").path, schema: schema)
        try await store.write { try $0.create("notes", set: ["title": "hello"]) }
        print(try await store.status().sentence)
        await store.close()
    }
}

/// What an app writes when a store cannot be opened.
func remedy(_ error: any Error) -> String {
    switch error {
    case let error as StoreError where error.code == .notADatabase: "choose another file"
    case let error as FieldpostError where error.code == .newerFormat: "update the app"
    default: "\(error)"
    }
}
