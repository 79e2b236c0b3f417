import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

@Suite struct CaptureSmokeTests {
    @Test func `each kind of change leaves its operation`() throws {
      do {
        let folder = try Samples.temporaryFolder()
        var random = SystemRandomNumberGenerator()
        let database = try LocalDatabase(
            path: folder.path("a.db"), schema: Samples.shop, now: Timestamp(milliseconds: 1_764_460_800_000), random: &random)
        let c = database.connection
        print("open")
        try database.write(at: Timestamp(milliseconds: 1_764_460_800_001)) {
            try c.execute("INSERT INTO notes (id, title, score, photo, meta, tags, likes) VALUES ('n1', 'hé\"', 0.1, x'00ff', '{\"a\": [1]}', '[\"a\"]', 2)")
            print("ins")
            try c.execute("UPDATE notes SET likes = likes + 3, tags = '[\"b\"]', body = 'x' WHERE id = 'n1'")
        }
        try c.execute("INSERT OR REPLACE INTO notes (id, title) VALUES ('n1', 'new')")
        try c.execute("UPDATE notes SET id = 'n2' WHERE id = 'n1'")
        try c.execute("DELETE FROM notes")
        try c.forEach("SELECT * FROM fieldpost_outbox") { row in print((0..<row.columnCount).map { "\(row.value(Int32($0)))" }.joined(separator: " | ")) }
      } catch let e as StoreError { print(e.detail as Any); throw e }
    }
}
