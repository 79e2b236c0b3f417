public import FieldpostCore
public import FieldpostSQLite

/// An app's local database, with everything that makes it sync.
///
/// The app reads and writes only this. Each write commits together with its outbox operations; a ``SyncEngine`` carries
/// those to a server and brings the server's changes here.
///
///     let store = try await Store.open(at: "shop.db", schema: schema)
///     try await store.write { transaction in
///         try transaction.create("orders", set: ["branch_id": "B1", "total_idr": 50_000])
///     }
public final class Store: Sendable {
    /// How a store is opened.
    public struct Configuration: Sendable {
        /// Whether a commit waits for the disk; `Synchronous.full` loses nothing at a power cut.
        public var synchronous = Synchronous.full
        /// Connections that read at once, at most.
        public var readers = 4
        /// Operations that the outbox holds at most; a write beyond it fails.
        public var outboxLimit = 2_000_000
        /// Clock, waiting and chance.
        public var environment = Environment.live

        /// The defaults.
        public init() {}
    }

    /// The schema the store was opened with.
    public let schema: Schema
    /// Where the file is.
    public let path: String
    package let environment: Environment
    package let writer: StoreWriter
    private let readers: ReaderPool
    private let records: RecordRegistry

    private init(path: String, schema: Schema, configuration: Configuration, writer: StoreWriter) {
        self.path = path
        self.schema = schema
        self.writer = writer
        environment = configuration.environment
        records = writer.records
        readers = ReaderPool(path: path, limit: configuration.readers)
    }

    /// Opens the file at `path`, creating it, its tables and its triggers where they are missing.
    ///
    /// - Throws: `SchemaError` for a schema that cannot work; ``FieldpostError/Code/newerFormat`` for a file of a
    ///   newer app, which is left untouched; `StoreError` for a file that cannot be used, saying why.
    public static func open(
        at path: String, schema: Schema, configuration: Configuration = Configuration()
    ) async throws -> Store {
        let writer = StoreWriter(schema: schema, environment: configuration.environment)
        try await writer.open(path: path, schema: schema, configuration: configuration)
        return Store(path: path, schema: schema, configuration: configuration, writer: writer)
    }

    /// Opens the existing file at `path` by the schema it keeps, for tools that know nothing of the app.
    ///
    /// Works beside the app that has the file open.
    /// - Throws: `StoreError` for a file that is missing or cannot be used; ``FieldpostError/Code/notAStore`` for a
    ///   database of another program; ``FieldpostError/Code/newerFormat``.
    public static func open(
        at path: String, configuration: Configuration = Configuration()
    ) async throws -> Store {
        let schema = try await StoreWriter(
            schema: Schema(version: 1, tables: []), environment: configuration.environment
        ).storedSchema(path: path)
        return try await open(at: path, schema: schema, configuration: configuration)
    }

    /// Runs `body` as one transaction, which commits if and only if `body` returns.
    ///
    /// Its changes become one group: the server applies all of them or none.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @Sendable (borrowing WriteTransaction) throws -> Result
    ) async throws -> Result {
        try await writer.write(body)
    }

    /// Runs `body` on a state of the database that nothing changes meanwhile.
    public func read<Result: Sendable>(
        _ body: @Sendable (borrowing ReadTransaction) throws -> Result
    ) async throws -> Result {
        let (schema, environment, records) = (schema, environment, records)
        return try await readers.read { connection in
            let context = TransactionContext(
                connection: connection, schema: schema, database: nil, now: environment.now(), environment: environment,
                records: records)
            return try body(ReadTransaction(context: context))
        }
    }

    /// Closes the file; later calls throw.
    public func close() async {
        await readers.close()
        await writer.close()
    }
}

/// The one connection of a process that writes a file.
///
/// An actor on a queue of its own: SQLite's calls block, and the cooperative pool must not.
package actor StoreWriter {
    private let environment: Environment
    private let executor = SerialQueueExecutor(label: "fieldpost.store")
    private var database: LocalDatabase?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let records: RecordRegistry

    init(schema: Schema, environment: Environment) {
        self.environment = environment
        records = RecordRegistry(schema: schema)
    }

    func open(path: String, schema: Schema, configuration: Store.Configuration) throws {
        var options = LocalDatabase.Options()
        options.synchronous = configuration.synchronous
        options.outboxLimit = configuration.outboxLimit
        var random = environment.random
        database = try LocalDatabase(
            path: path, schema: schema, options: options, now: environment.now(), random: &random)
    }

    /// The schema that the file at `path` was last opened with.
    func storedSchema(path: String) throws -> Schema {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        let isStore = try connection.scalar("SELECT 1 FROM sqlite_schema WHERE name = 'fieldpost_lease'") != nil
        guard isStore, let text = try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = 'schema'")?.text else {
            throw FieldpostError(.notAStore, "The file is no device's store; give the file that the app opens.")
        }
        return try Schema(json: Array(text.utf8))
    }

    func write<Result: Sendable>(
        _ body: @Sendable (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let database = try opened()
        let now = environment.now()
        let context = TransactionContext(
            connection: database.connection, schema: database.schema, database: database, now: now,
            environment: environment, records: records)
        return try database.write(at: now) { try body(WriteTransaction(context: context)) }
    }

    /// Runs engine work on the connection.
    package func perform<Result: Sendable>(
        _ body: @Sendable (LocalDatabase, Timestamp, inout EnvironmentRandom) throws -> Result
    ) throws -> Result {
        var random = environment.random
        return try body(try opened(), environment.now(), &random)
    }

    func close() {
        database?.connection.close()
        database = nil
    }

    private func opened() throws -> LocalDatabase {
        guard let database else { throw StoreError(.closed, "The store is closed; open it again.") }
        return database
    }
}
