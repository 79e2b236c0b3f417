/// The single writer of a database file.
///
/// An actor on its own dispatch queue: calls are served one at a time and never block the cooperative pool.
/// Open one for each file and process, as SQLite before 3.51.3 can corrupt a file that two connections
/// checkpoint.
///
///     let writer = Writer(try Connection(path: "app.db"))
///     try await writer.write { try $0.run("DELETE FROM notes WHERE id = ?", "n1") }
public actor Writer {
    private let connection: Connection
    private let executor: any SerialExecutor

    /// The writer's own queue.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Takes over an open connection.
    public init(_ connection: sending Connection) {
        self.connection = connection
        executor = SerialQueueExecutor(label: "fieldpost.writer")
    }

    /// Takes over an open connection and runs on `executor`, which a simulation makes deterministic.
    package init(_ connection: sending Connection, executor: any SerialExecutor) {
        self.connection = connection
        self.executor = executor
    }

    /// Runs `body` in one immediate transaction, which commits if and only if `body` returns.
    ///
    /// - Throws: What `body` throws, or ``StoreError``; nothing is then changed.
    public func write<Result: Sendable>(
        _ body: @Sendable (Connection) throws -> Result
    ) throws -> Result {
        try connection.transaction(.immediate) { try body(connection) }
    }

    /// Runs `body` without a transaction of its own; one that it leaves open is rolled back.
    ///
    /// - Throws: What `body` throws, or ``StoreError/Code/misuse`` when it leaves a transaction open.
    public func perform<Result: Sendable>(
        _ body: @Sendable (Connection) throws -> Result
    ) throws -> Result {
        let result: Result
        do {
            result = try body(connection)
        } catch {
            rollBackLeftover()
            throw error
        }
        if rollBackLeftover() {
            throw StoreError(
                .misuse,
                "A transaction was left open and is rolled back; commit it in the closure."
            )
        }
        return result
    }

    /// Rolls back what is open and closes the file; every later call throws ``StoreError/Code/closed``.
    public func close() { connection.close() }

    // The next caller must not find itself inside somebody else's transaction.
    @discardableResult
    private func rollBackLeftover() -> Bool {
        guard connection.isOpen, connection.inTransaction else { return false }
        try? connection.run("ROLLBACK", [])
        return true
    }
}
