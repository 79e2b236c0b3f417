import FieldpostCore
import FieldpostTesting

@testable import Fieldpost

/// A store of the sample shop with a clock that stands still.
final class Shop: Sendable {
    let store: Store
    let clock: ManualClock
    private let folder: TemporaryFolder

    var path: String { folder.path("shop.db") }

    /// - Parameters:
    ///   - schema: the app's tables.
    ///   - seed: decides the random numbers.
    ///   - outboxLimit: operations that the outbox may hold.
    ///   - inMemory: whether there is no file, so that nobody but the engine sleeps on the clock.
    init(
        _ schema: Schema = Samples.shop,
        seed: UInt64 = 1,
        outboxLimit: Int = 2_000_000,
        inMemory: Bool = false
    ) async throws {
        folder = try TemporaryFolder()
        clock = ManualClock(seed: seed)
        var configuration = Store.Configuration()
        configuration.synchronous = .off
        configuration.outboxLimit = outboxLimit
        configuration.environment = clock.environment
        store =
            inMemory
            ? try await Store.inMemory(schema, configuration: configuration)
            : try await Store.open(at: folder.path("shop.db"), schema: schema, configuration: configuration)
        try await store.signIn(account: "ayu")
    }

    func engine(_ transport: any Transport, token: @escaping SyncEngine.TokenSource = { _ in "*" })
        -> SyncEngine
    {
        SyncEngine(store: store, transport: transport, token: token)
    }

    /// Adds a note; the id of its operation.
    @discardableResult
    func note(_ row: String, _ title: String = "Draft") async throws -> OperationID {
        try await store.write { transaction in
            try transaction.create("notes", row: row, set: ["title": .string(title)])
            return try transaction.operations()[0]
        }
    }

    /// Changes the title of a note; the id of its operation.
    @discardableResult
    func rename(_ row: String, _ title: String) async throws -> OperationID {
        try await store.write { transaction in
            try transaction.update("notes", row: row, set: ["title": .string(title)])
            return try transaction.operations()[0]
        }
    }

    func title(_ row: String) async throws -> String? {
        try await store.read { transaction in
            try transaction.query("SELECT title FROM notes WHERE id = ?", [.text(row)]).first?["title"]?.text
        }
    }
}
