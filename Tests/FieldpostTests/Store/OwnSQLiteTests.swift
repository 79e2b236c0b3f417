import CFieldpostSQLite
import Fieldpost
import Foundation
import Testing

/// A program that uses SQLite's own C interface, on a connection of its own, in the process that has the store open.
@Suite struct OwnSQLiteTests {
    @Test func `writes through the C interface are captured and watched`() async throws {
        let folder = try TemporaryFolder()
        let store = try await Garage.open(folder)
        var parts = store.watch(Part.order(by: \.id)).makeAsyncIterator()
        #expect(try await parts.next() == [])
        let job = Job()
        try await store.insert(job)

        var connection: OpaquePointer?
        #expect(sqlite3_open(store.path, &connection) == SQLITE_OK)
        defer { sqlite3_close(connection) }
        // As the article says: the store's connection alone checkpoints.
        sqlite3_wal_autocheckpoint(connection, 0)
        sqlite3_busy_timeout(connection, 5_000)
        let key = job.id.uuidString.lowercased()
        let sql = "INSERT INTO parts (id, job_id, price) VALUES ('p', '\(key)', 3)"
        #expect(sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK)

        #expect(try await parts.next() == [Part(id: "p", jobId: job.id, price: 3)])
        #expect(try await store.outbox().map(\.table) == ["jobs", "parts"])
    }
}
