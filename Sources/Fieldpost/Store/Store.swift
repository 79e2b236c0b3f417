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
        /// Bytes of changes that the outbox holds at most; a write beyond it fails.
        public var outboxByteLimit: Int64 = 1 << 30
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
    let records: RecordRegistry
    let hub: WatchHub
    /// Why the engine could not use the file, while it could not even write that down there.
    let engineFailure = Locked<String?>(nil)
    private let isClosed = Locked(false)

    private init(
        file: StoreFile,
        schema: Schema,
        configuration: Configuration,
        writer: StoreWriter,
        hub: WatchHub
    ) {
        path = file.path
        self.schema = schema
        self.writer = writer
        environment = configuration.environment
        records = writer.records
        self.hub = hub
        readers = ReaderPool(path: path, limit: configuration.readers, vfs: file.vfs, observed: true)
    }

    /// Opens the file at `path`, creating it, its tables and its triggers where they are missing.
    ///
    /// After an end without ``close()`` the file is checked, unless it is large. What can be read of a damaged file is
    /// saved into a new one, the unsent changes first, and the damaged one is kept beside it; ``rescue()`` tells of it.
    ///
    /// A second opening in one process shares the first one's connection, its durability, its limit and its clock.
    ///
    /// - Throws: `SchemaError` for a schema that cannot work; ``FieldpostError/Code/newerFormat`` for a file of a
    ///   newer app, which is left untouched; ``FieldpostError/Code/alreadyOpen`` for a file that this process has open
    ///   with another schema; `StoreError` for a file that cannot be used, saying why: `notADatabase`, `accessDenied`, `readOnly`, `full`,
    ///   `busy`, `missing`. Nothing is lost by any of these, and the next try may work.
    public static func open(
        at path: String,
        schema: Schema,
        configuration: Configuration = Configuration()
    ) async throws -> Store {
        try await open(StoreFile(path: path), schema: schema, configuration: configuration)
    }

    /// Opens a store in memory, for an app's own tests and previews.
    ///
    /// It has everything but a file: capture, watching, reads beside writes. It goes with the last reference to it.
    ///
    ///     let store = try await Store.inMemory(schema)
    ///
    /// - Throws: `SchemaError` for a schema that cannot work.
    public static func inMemory(
        _ schema: Schema,
        configuration: Configuration = Configuration()
    ) async throws -> Store {
        try await open(.inMemory(configuration.environment), schema: schema, configuration: configuration)
    }

    private static func open(_ file: StoreFile, schema: Schema, configuration: Configuration) async throws
        -> Store
    {
        while true {
            let writer = OpenFiles.writer(of: file) {
                StoreWriter(file: file, schema: schema, environment: configuration.environment)
            }
            let hub = WatchHub { [weak writer] in
                guard let log = file.log else { return nil }
                return OutsideChanges(log: log, sleep: configuration.environment.sleep) { [weak writer] in
                    await writer?.checkOutsideChanges() ?? false
                }
            }
            // One that has just closed its file is no longer in the table, so the next turn makes a new one.
            guard try await writer.open(schema: schema, configuration: configuration, for: hub) else {
                continue
            }
            return Store(file: file, schema: schema, configuration: configuration, writer: writer, hub: hub)
        }
    }

    /// What was saved from a damaged file when this store was opened; `nil` when nothing was wrong.
    public func rescue() async -> Rescue? { await writer.rescue }

    /// Opens the existing file at `path` by the schema it keeps, for tools that know nothing of the app.
    ///
    /// Works beside the app that has the file open.
    /// - Throws: `StoreError` for a file that is missing or cannot be used; ``FieldpostError/Code/notAStore`` for a
    ///   database of another program; ``FieldpostError/Code/newerFormat``.
    public static func open(
        at path: String,
        configuration: Configuration = Configuration()
    ) async throws -> Store {
        let schema = try await StoreWriter(
            file: StoreFile(path: path),
            schema: Schema(version: 1, tables: []),
            environment: configuration.environment
        ).storedSchema()
        return try await open(at: path, schema: schema, configuration: configuration)
    }

    /// Runs `body` as one transaction, which commits if and only if `body` returns.
    ///
    /// Its changes become one group: the server applies all of them or none.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @Sendable (borrowing WriteTransaction) throws -> Result
    ) async throws -> Result {
        if isClosed.withLock({ $0 }) { throw StoreError(.closed, "The store is closed; open it again.") }
        return try await writer.write(body)
    }

    /// Runs `body` on a state of the database that nothing changes meanwhile.
    public func read<Result: Sendable>(
        _ body: @Sendable (borrowing ReadTransaction) throws -> Result
    ) async throws -> Result {
        try await reading { try body(ReadTransaction(context: $0)) }
    }

    func reading<Result: Sendable>(
        _ body: @Sendable (TransactionContext) throws -> Result
    ) async throws -> Result {
        let (schema, environment, records) = (schema, environment, records)
        return try await readers.read { connection in
            try body(
                TransactionContext(
                    connection: connection,
                    schema: schema,
                    database: nil,
                    now: environment.now(),
                    environment: environment,
                    records: records
                )
            )
        }
    }

    // Loops that watch hold nothing of the store, and would wait for ever.
    deinit { hub.close() }

    /// Closes the file, unless another store of the process shares it; later calls on this store throw.
    public func close() async {
        let wasClosed = isClosed.withLock { flag in
            defer { flag = true }
            return flag
        }
        if wasClosed { return }
        hub.close()
        await readers.close()
        await writer.close(for: hub)
    }
}
