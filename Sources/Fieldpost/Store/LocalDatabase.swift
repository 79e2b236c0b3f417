package import FieldpostCore
package import FieldpostSQLite

/// One open device file: the app's tables, Fieldpost's own, and the triggers between them.
///
/// Synchronous and without a clock: everything that decides works on it, in the app and in a simulator alike.
package final class LocalDatabase {
    package let connection: Connection
    package let schema: Schema
    private let tables: [String: Table]
    /// The tables of which the outbox keeps one unsent operation a row.
    let stateTables: Set<String>
    /// The tables whose unsent operations are coalesced.
    let coalescingTables: Set<String>
    /// Places of older operations that the running transaction's were coalesced into.
    private var touchedPlaces: Set<Int64> = []
    /// Operations that the running transaction gave new places.
    var movedOperations: Int64 = 0
    /// SQLite's counter of schema changes when the triggers were last looked at.
    private var checkedSchema: Value?

    /// How a file is opened.
    package struct Options: Sendable {
        package var synchronous: Synchronous = .full
        package var vfs: String?
        /// Operations the outbox holds at most.
        package var outboxLimit = 2_000_000
        /// Bytes of changes the outbox holds at most.
        package var outboxByteLimit: Int64 = 1 << 30
        /// Called with each statement's SQL before it runs, from the first statement on; see `Connection.willStep`.
        package var willStep: (@Sendable (String) throws(StoreError) -> Void)?

        package init() {}
    }

    package let options: Options
    private var limits: OutboxLimits

    /// Opens `path`, creating or migrating what is missing.
    ///
    /// - Throws: ``FieldpostError/Code/newerFormat`` for a file from a newer app, which is left untouched;
    ///   ``SchemaError``; `StoreError`.
    package init(
        path: String,
        schema: Schema,
        options: Options = Options(),
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        try schema.validate()
        self.schema = schema
        self.options = options
        limits = OutboxLimits(operations: options.outboxLimit, bytes: options.outboxByteLimit)
        tables = Dictionary(uniqueKeysWithValues: schema.tables.map { ($0.name, $0) })
        stateTables = Set(schema.tables.filter { $0.outbox == .state }.map(\.name))
        coalescingTables = stateTables.union(schema.tables.filter(\.coalesce).map(\.name))
        connection = try Connection(path: path, mode: .readWriteCreate, vfs: options.vfs)
        connection.willStep = options.willStep
        try LocalMigration(connection, schema).refuseNewer()
        try connection.configureWriter(synchronous: options.synchronous)
        try LocalMigration(connection, schema).run(at: now, random: &random)
    }

    package func table(_ name: String) throws(FieldpostError) -> Table {
        if let table = tables[name] { return table }
        if name.hasPrefix("fieldpost_") {
            throw FieldpostError(.reservedTable, "\(name) belongs to Fieldpost; the app does not write it.")
        }
        throw FieldpostError(.unknownTable, "There is no table \(name); \(suggestion(name, schema)).")
    }

    private func suggestion(_ name: String, _ schema: Schema) -> String {
        "the schema has " + schema.tables.map(\.name).joined(separator: ", ")
    }

    /// A value of the meta table.
    package func meta(_ key: String) throws -> Value? {
        try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = ?", .text(key))
    }

    /// Sets a value of the meta table; `.null` removes it.
    package func setMeta(_ key: String, _ value: Value) throws {
        if value.isNull {
            try connection.run("DELETE FROM fieldpost_meta WHERE key = ?", .text(key))
        } else {
            try connection.run(
                "INSERT OR REPLACE INTO fieldpost_meta (key, value) VALUES (?, ?)",
                .text(key),
                value
            )
        }
    }

    /// The identity of this installation.
    package func deviceID() throws -> String { try meta("device")?.text ?? "" }
}

// MARK: - Transactions

extension LocalDatabase {
    /// Operations that one local transaction may make.
    package static let operationsPerTransaction: Int64 = 1_000
    /// The last millisecond that fits a version 7 UUID; a clock beyond it, or before 1970, is wrong.
    private static let lastMoment: Int64 = (1 << 48) - 1
    /// Bytes of changes that one local transaction may make.
    package static let bytesPerTransaction: Int64 = 4 << 20

    /// Runs `body` as one transaction of the app: its changes become one group.
    ///
    /// - Throws: whatever `body` throws; ``FieldpostError/Code/transactionTooLarge`` and
    ///   ``FieldpostError/Code/outboxFull``, in the transaction, which is then rolled back.
    package func write<Result>(at now: Timestamp, _ body: () throws -> Result) throws -> Result {
        do {
            try checkTriggers()
            return try connection.transaction(.immediate) {
                let first = try beginGroup(at: now)
                let result = try body()
                try endGroup(first)
                return result
            }
        } catch let error as StoreError {
            throw FieldpostError(error) ?? error
        }
    }

    /// An index or a trigger that the app made, or a table it rebuilt, asks for other triggers.
    private func checkTriggers() throws {
        let current = try connection.scalar("PRAGMA schema_version")
        if current == checkedSchema { return }
        try LocalMigration(connection, schema).repairTriggers()
        checkedSchema = try connection.scalar("PRAGMA schema_version")
    }

    /// Removes notes of statements that replaced nothing; rows that go unseen would make them wrong.
    private func clearNotes() throws {
        guard try connection.scalar("SELECT 1 FROM fieldpost_replaced LIMIT 1") != nil else { return }
        try connection.run("DELETE FROM fieldpost_replaced")
    }

    private func beginGroup(at now: Timestamp) throws -> Int64 {
        let first = try nextSequence()
        (touchedPlaces, movedOperations) = ([], 0)
        try connection.run(
            "UPDATE fieldpost_session SET applying = 0, grp = ?, at = ?, trusted = 1 WHERE id = 1",
            .integer(first),
            .integer(min(max(now.milliseconds, 0), Self.lastMoment))
        )
        return first
    }

    private func endGroup(_ first: Int64) throws {
        let count = try nextSequence() - first - movedOperations
        if count > 0 { try checkLimits(first, count) }
        try coalesce()
        try clearNotes()
        try connection.run("UPDATE fieldpost_session SET grp = NULL, at = NULL, trusted = 0 WHERE id = 1")
    }

    /// Makes one of what follows another on the same row, where the table allows it.
    func coalesce() throws {
        if !coalescingTables.isEmpty { touchedPlaces.formUnion(try Coalescing(self).run()) }
    }

    /// The operations that the running transaction has made or changed so far, in order.
    func recordedOperations() throws -> [OperationID] {
        try coalesce()
        return try connection.query(
            """
            SELECT id FROM fieldpost_outbox WHERE seq >= (SELECT grp FROM fieldpost_session)
            OR seq IN (SELECT value FROM json_each(?)) ORDER BY seq
            """,
            .text(JSON.array(touchedPlaces.map(JSON.integer)).text())
        )
        .compactMap { $0[0].text.map { OperationID(stored: $0) } }
    }

    private func nextSequence() throws(StoreError) -> Int64 {
        (try connection.scalar("SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox'")?.integer
            ?? 0) + 1
    }

    private func checkLimits(_ first: Int64, _ count: Int64) throws {
        let bytes = try connection.scalar(
            "SELECT total(length(CAST(change AS BLOB))) FROM fieldpost_outbox WHERE seq >= ?",
            .integer(first)
        )
        if case .real(let bytes)? = bytes,
            count > Self.operationsPerTransaction || bytes > Double(Self.bytesPerTransaction)
        {
            throw FieldpostError(
                .transactionTooLarge,
                "One transaction may make \(Self.operationsPerTransaction) operations and 4 MiB of changes; split it."
            )
        }
        try limits.admit(connection, from: first, upTo: first + count - 1)
    }

    /// Runs `body` as one transaction of the engine: nothing it writes is captured, and no foreign key acts.
    ///
    /// A cascade must never run silently, and rows that the server has accepted may come before their parents.
    package func applying<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.run("PRAGMA foreign_keys = OFF")
        defer { try? connection.run("PRAGMA foreign_keys = ON") }
        return try connection.transaction(.immediate) {
            try clearNotes()
            try connection.run("UPDATE fieldpost_session SET applying = 1 WHERE id = 1")
            let result = try body()
            try connection.run("UPDATE fieldpost_session SET applying = 0 WHERE id = 1")
            return result
        }
    }

    /// Runs `body` in the middle of ``applying(_:)`` as if the app did it: what it writes is captured.
    func capturing<Result>(at now: Timestamp, _ body: () throws -> Result) throws -> Result {
        try connection.run("UPDATE fieldpost_session SET applying = 0, at = ?", .integer(now.milliseconds))
        let result = try body()
        try connection.run("UPDATE fieldpost_session SET applying = 1, at = NULL")
        return result
    }
}
