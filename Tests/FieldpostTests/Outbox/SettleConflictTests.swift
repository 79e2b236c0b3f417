import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// What a person does with an edit that lost.
@Suite struct SettleConflictTests {
    static let schema = Schema(version: 1) {
        Table("cars") {
            Column("id", .text).primaryKey()
            Column("title", .text)
            Column("photo", .blob).optional()
            Column("likes", .integer).defaults(to: 0)
        }
        .conflict(.compareAndSet).rule("likes", .counter)
    }
    let shop: Shop
    let server: MockServer
    let engine: SyncEngine

    init() async throws {
        shop = try await Shop(Self.schema)
        server = try MockServer(schema: Self.schema)
        engine = shop.engine(server)
        try await shop.store.write {
            try $0.create("cars", row: "c", set: ["title": "old", "photo": "AP8Q", "likes": 1])
        }
        _ = await engine.sync()
    }

    private func lose(_ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Void, to sql: String)
        async throws -> ConflictItem
    {
        try await shop.store.write(body)
        try server.execute(sql)
        _ = await engine.sync()
        let conflicts = try await shop.store.conflicts()
        #expect(conflicts.count == 1)
        return try #require(conflicts.first)
    }

    private func car() async throws -> [[Value]] {
        try await shop.store.read {
            try $0.query("SELECT title, photo, likes FROM cars").map {
                [$0["title"]!, $0["photo"]!, $0["likes"]!]
            }
        }
    }

    private func serverCar() throws -> [[Value]] { try server.query("SELECT title, photo, likes FROM cars") }

    @Test func `theirs: the server's row stays and the conflict is gone`() async throws {
        let conflict = try await lose(
            { try $0.update("cars", row: "c", set: ["title": "mine"]) },
            to: "UPDATE cars SET title = 'theirs'"
        )

        #expect(try await shop.store.settle(conflict.id, keep: .theirs) == [])

        #expect(try await shop.store.conflicts() == [])
        #expect(try await car() == [["theirs", .blob([0, 255, 16]), 1]])
        #expect(try await shop.store.status().state == .allSynced)
    }

    @Test func `mine: the edit is made again on the row as it is now, and arrives`() async throws {
        let conflict = try await lose(
            { try $0.update("cars", row: "c", set: ["title": "mine", "likes": 4]) },
            to: "UPDATE cars SET title = 'theirs', likes = 10"
        )

        #expect(try await shop.store.settle(conflict.id, keep: .mine).count == 1)
        #expect(try await car() == [["mine", .blob([0, 255, 16]), 13]])
        _ = await engine.sync()

        #expect(try serverCar() == [["mine", .blob([0, 255, 16]), 13]])
        #expect(try await shop.store.conflicts() == [])
    }

    @Test func `mine, on a row that the server deleted: the whole row as the user saw it is made again`()
        async throws
    {
        let conflict = try await lose(
            { try $0.update("cars", row: "c", set: ["title": "mine"]) },
            to: "DELETE FROM cars"
        )
        #expect(try await car() == [])

        try await shop.store.settle(conflict.id, keep: .mine)
        _ = await engine.sync()

        #expect(try serverCar() == [["mine", .blob([0, 255, 16]), 1]])
        #expect(try await car() == [["mine", .blob([0, 255, 16]), 1]])
    }

    @Test func `mine, of a delete: the row goes`() async throws {
        let conflict = try await lose(
            { try $0.delete("cars", row: "c") },
            to: "UPDATE cars SET title = 'theirs'"
        )
        #expect(try await car().count == 1)

        try await shop.store.settle(conflict.id, keep: .mine)
        _ = await engine.sync()

        #expect(try serverCar() == [])
    }

    @Test func `value: what a person wrote instead`() async throws {
        let conflict = try await lose(
            { try $0.update("cars", row: "c", set: ["title": "mine"]) },
            to: "UPDATE cars SET title = 'theirs'"
        )

        try await shop.store.settle(conflict.id, keep: .value(["title": "both", "photo": "AQ=="]))
        _ = await engine.sync()

        #expect(try serverCar() == [["both", .blob([1]), 1]])
    }

    @Test func `values that do not fit leave the conflict`() async throws {
        let conflict = try await lose(
            { try $0.update("cars", row: "c", set: ["title": "mine"]) },
            to: "UPDATE cars SET title = 'theirs'"
        )

        await #expect(throws: FieldpostError.self) {
            try await shop.store.settle(conflict.id, keep: .value(["titel": "x"]))
        }
        await #expect(throws: FieldpostError.self) {
            try await shop.store.settle(conflict.id, keep: .value(["likes": "x"]))
        }
        await #expect(throws: FieldpostError.self) {
            try await shop.store.settle(conflict.id, keep: .value([:]))
        }
        await #expect(throws: FieldpostError.self) {
            try await shop.store.settle(conflict.id, keep: .value(["id": "z"]))
        }
        await #expect(throws: FieldpostError.self) { try await shop.store.settle(99, keep: .mine) }

        #expect(try await shop.store.conflicts() == [conflict])
        #expect(try await shop.store.outbox() == [])
    }
}
