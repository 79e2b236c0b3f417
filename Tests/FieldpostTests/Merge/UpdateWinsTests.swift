import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// A row that the server deleted while an edit of it was unsent, by the table's policy.
@Suite struct UpdateWinsTests {
    private static func schema(_ policy: RemoteDeletePolicy) -> Schema {
        Schema(version: 1) {
            Table("notes") {
                Column("id", .text).primaryKey()
                Column("title", .text)
                Column("body", .text).optional()
                Column("likes", .integer).defaults(to: 0)
            }
            .rule("likes", .counter).onRemoteDelete(policy)
        }
    }

    private func start(_ policy: RemoteDeletePolicy) async throws -> (Device, MockServer) {
        let device = try Device(Self.schema(policy))
        let server = try MockServer(schema: Self.schema(policy))
        try device.write("INSERT INTO notes (id, title, body, likes) VALUES ('n', 'old', 'text', 3)")
        try await device.sync(with: server)
        return (device, server)
    }

    private let query = "SELECT title, body, likes FROM notes"

    @Test func `update wins: the edit creates the row again, whole`() async throws {
        let (device, server) = try await start(.updateWins)
        try device.write("UPDATE notes SET title = 'mine', likes = likes + 1")
        try device.write("UPDATE notes SET body = 'more'")
        try server.execute("DELETE FROM notes")

        try await device.sync(with: server)
        try await device.sync(with: server)

        #expect(try server.query(query) == [["mine", "more", 4]])
        #expect(try device.db.connection.query(query) == [["mine", "more", 4]])
        #expect(try device.outboxCount == 0)
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_conflicts") == 0)
    }

    @Test func `update wins: the row never goes from the screen, whatever comes first`() async throws {
        let (device, server) = try await start(.updateWins)
        try device.write("UPDATE notes SET title = 'mine'")
        let version = try #require(try device.scalar("SELECT version FROM fieldpost_rows")?.integer)

        try device.pull(
            [PulledChange(table: "notes", row: "n", version: version + 1, set: nil)],
            cursor: "c9"
        )

        #expect(try device.db.connection.query(query) == [["mine", "text", 3]])
        try device.db.setMeta("cursor", .null)
        try server.execute("DELETE FROM notes")
        try await device.sync(with: server)
        try await device.sync(with: server)
        #expect(try server.query(query) == [["mine", "text", 3]])
        #expect(try device.db.connection.query(query) == [["mine", "text", 3]])
    }

    @Test func `update wins: a discarded edit lets the delete through`() async throws {
        let (device, _) = try await start(.updateWins)
        let id = try device.write("UPDATE notes SET title = 'mine'")[0]
        let version = try #require(try device.scalar("SELECT version FROM fieldpost_rows")?.integer)
        try device.pull(
            [PulledChange(table: "notes", row: "n", version: version + 1, set: nil)],
            cursor: "c9"
        )

        _ = try Repair(device.db).discard(id, now: device.now)

        #expect(try device.db.connection.query(query) == [])
    }

    @Test func `update wins: a delete of one's own stays one`() async throws {
        let (device, server) = try await start(.updateWins)
        try device.write("UPDATE notes SET title = 'mine'")
        try device.write("DELETE FROM notes")
        try server.execute("DELETE FROM notes")

        try await device.sync(with: server)
        try await device.sync(with: server)

        #expect(try server.query(query) == [])
        #expect(try device.db.connection.query(query) == [])
        #expect(try device.outboxCount == 0)
    }

    @Test func `delete wins: the row goes and the edit is a conflict`() async throws {
        let (device, server) = try await start(.deleteWins)
        try device.write("UPDATE notes SET title = 'mine'")
        try server.execute("DELETE FROM notes")

        try await device.sync(with: server)

        #expect(try device.db.connection.query(query) == [])
        #expect(try device.scalar("SELECT count(*) FROM fieldpost_conflicts") == 1)
    }
}
