package import FieldpostCore
internal import FieldpostSQLite

/// The one connection of a process that writes a file.
///
/// An actor on a queue of its own: SQLite's calls block, and the cooperative pool must not.
package actor StoreWriter {
    private let environment: Environment
    private let executor = SerialQueueExecutor(label: "fieldpost.store")
    private var database: LocalDatabase?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated let records: RecordRegistry
    private let file: StoreFile
    private var opening: StoreOpening?
    private(set) var rescue: Rescue?
    private var dataVersion: Int64 = 0
    /// The place of the newest operation that anybody was told of.
    private var newest: Int64 = 0
    /// What is told of commits: the watchers of each store that shares this writer.
    private var hubs: [WatchHub] = []
    /// Whether the file was closed for good; a later store makes a writer of its own.
    private var isRetired = false

    init(file: StoreFile, schema: Schema, environment: Environment) {
        self.file = file
        self.environment = environment
        records = RecordRegistry(schema: schema)
    }

    /// Tells watchers when another connection has written the file since the last look.
    ///
    /// - Returns: whether one has.
    func checkOutsideChanges() -> Bool {
        guard let version = try? database?.connection.dataVersion, version != dataVersion else {
            return false
        }
        dataVersion = version
        for hub in hubs { hub.changed(.everything) }
        if let database { tellOfOperations(database) }
        return true
    }

    /// Says that there is more to send, when there is: places only grow, so nothing that a run settles looks like it.
    private func tellOfOperations(_ database: LocalDatabase) {
        guard let last = try? database.newestOperation(), last > newest else { return }
        newest = last
        for hub in hubs { hub.operationsArrived() }
    }

    /// Tells watchers what was committed; to be called after every use of the connection.
    private func tellWatchers(_ database: LocalDatabase) {
        // A connection that cannot even list its tables is about to fail loudly elsewhere.
        guard let changes = try? database.connection.takeCommittedChanges() else { return }
        for hub in hubs { hub.changed(changes) }
        if changes.affect(["fieldpost_outbox": []]) { tellOfOperations(database) }
    }

    /// Opens the file for one more store, whose watchers are told through `hub`.
    ///
    /// - Returns: `false` when the writer has retired meanwhile.
    func open(schema: Schema, configuration: Store.Configuration, for hub: WatchHub) throws -> Bool {
        if isRetired { return false }
        if let database {
            guard database.schema == schema else {
                throw FieldpostError(
                    .alreadyOpen,
                    "This process has the file open with another schema; close that store first."
                )
            }
        } else {
            try openFile(schema, configuration)
        }
        hubs.append(hub)
        return true
    }

    private func openFile(_ schema: Schema, _ configuration: Store.Configuration) throws {
        var options = LocalDatabase.Options()
        options.synchronous = configuration.synchronous
        options.outboxLimit = configuration.outboxLimit
        options.outboxByteLimit = configuration.outboxByteLimit
        options.vfs = file.vfs
        let opening = StoreOpening(file: file, schema: schema, options: options, environment: environment)
        let (database, rescue) = try opening.open()
        try database.connection.startObserving()
        dataVersion = try database.connection.dataVersion
        newest = try database.newestOperation()
        (self.database, self.rescue, self.opening) = (database, rescue, opening)
    }

    /// The schema that the file was last opened with.
    func storedSchema() throws -> Schema {
        let connection = try Connection(path: file.path, mode: .readWrite)
        defer { connection.close() }
        let isStore =
            try connection.scalar("SELECT 1 FROM sqlite_schema WHERE name = 'fieldpost_lease'") != nil
        guard isStore,
            let text = try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = 'schema'")?.text
        else {
            throw FieldpostError(
                .notAStore,
                "The file is no device's store; give the file that the app opens."
            )
        }
        return try Schema(json: Array(text.utf8))
    }

    func write<Result: Sendable>(
        _ body: @Sendable (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let database = try opened()
        let now = environment.now()
        let context = TransactionContext(
            connection: database.connection,
            schema: database.schema,
            database: database,
            now: now,
            environment: environment,
            records: records
        )
        defer { tellWatchers(database) }
        return try database.write(at: now) { try body(WriteTransaction(context: context)) }
    }

    /// Runs engine work on the connection.
    package func perform<Result: Sendable>(
        _ body: @Sendable (LocalDatabase, Timestamp, inout EnvironmentRandom) throws -> Result
    ) throws -> Result {
        var random = environment.random
        let database = try opened()
        defer { tellWatchers(database) }
        return try body(database, environment.now(), &random)
    }

    /// Runs what a person does that lets operations go that were there before.
    func repair<Result: Sendable>(
        _ body: @Sendable (LocalDatabase, Timestamp, inout EnvironmentRandom) throws -> Result
    ) throws -> Result {
        let result = try perform(body)
        for hub in hubs { hub.operationsArrived() }
        return result
    }

    /// Ends the use by one store; the last one closes the file.
    func close(for hub: WatchHub) {
        hubs.removeAll { $0 === hub }
        guard hubs.isEmpty, let database else { return }
        opening?.noteCleanEnd(database)
        database.connection.close()
        self.database = nil
        isRetired = true
        OpenFiles.remove(self, of: file)
    }

    private func opened() throws -> LocalDatabase {
        guard let database else { throw StoreError(.closed, "The store is closed; open it again.") }
        return database
    }
}

extension LocalDatabase {
    /// The place of the newest operation in the outbox; 0 when it is empty.
    fileprivate func newestOperation() throws -> Int64 {
        try connection.scalar("SELECT max(seq) FROM fieldpost_outbox")?.integer ?? 0
    }
}
