/// One connection of a ``ReaderPool``, on a dispatch queue of its own.
actor Reader {
    private let open: @Sendable () throws(StoreError) -> Connection
    private let executor = SerialQueueExecutor(label: "fieldpost.reader")
    private var connection: Connection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(open: @escaping @Sendable () throws(StoreError) -> Connection) { self.open = open }

    /// Runs `body` in one read transaction, whose snapshot is taken before `body` begins.
    func read<Result: Sendable>(_ body: @Sendable (Connection) throws -> Result) throws -> Result {
        let connection = try self.connection ?? open()
        self.connection = connection
        // A connection that cannot even end its transaction is replaced at the next read.
        defer { if connection.inTransaction { close() } }
        return try connection.transaction(.deferred) {
            // BEGIN DEFERRED alone takes no snapshot: the first read does.
            try connection.run("SELECT 1 FROM sqlite_schema LIMIT 1", [])
            return try body(connection)
        }
    }

    func close() {
        connection?.close()
        connection = nil
    }
}
