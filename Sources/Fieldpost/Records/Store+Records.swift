internal import FieldpostCore

// Each of these is one transaction. Several changes that belong together go into one `write`.

extension Store {
    /// The record with this key; `nil` when there is none.
    public func fetchOne<Record: SyncedRecord>(_ type: Record.Type, _ id: Record.ID) async throws -> Record? {
        try await read { try $0.fetchOne(type, id) }
    }

    /// The first record of a query; `nil` when there is none.
    public func fetchOne<Record: SyncedRecord>(_ query: RecordQuery<Record>) async throws -> Record? {
        try await read { try $0.fetchOne(query) }
    }

    /// Every record of a type, in no order.
    public func fetchAll<Record: SyncedRecord>(_ type: Record.Type) async throws -> [Record] {
        try await read { try $0.fetchAll(type) }
    }

    /// The records of a query: `try await store.fetchAll(Order.where(\.status == .open))`.
    public func fetchAll<Record: SyncedRecord>(_ query: RecordQuery<Record>) async throws -> [Record] {
        try await read { try $0.fetchAll(query) }
    }

    /// The rows of SQL as values of a type, by the names of its columns.
    public func fetchAll<Result: Decodable & Sendable>(_ type: Result.Type, _ sql: SQL) async throws
        -> [Result]
    {
        try await read { try $0.fetchAll(type, sql) }
    }

    /// The first column of the first row; `nil` when there is no row, and for `NULL`.
    public func fetchValue<Part: Decodable & Sendable>(_ type: Part.Type, _ sql: SQL) async throws -> Part? {
        try await read { try $0.fetchValue(type, sql) }
    }

    /// How many records a query has.
    public func fetchCount<Record: SyncedRecord>(_ query: RecordQuery<Record>) async throws -> Int {
        try await read { try $0.fetchCount(query) }
    }

    /// Inserts a record.
    ///
    /// - Throws: ``FieldpostError/Code/rowExists`` when its key is taken.
    public func insert<Record: SyncedRecord>(_ record: Record) async throws {
        try await write { try $0.insert(record) }
    }

    /// Inserts the record, or makes the row with its key equal to it.
    public func save<Record: SyncedRecord>(_ record: Record) async throws {
        try await write { try $0.save(record) }
    }

    /// Changes the row of a record: `try await store.update(order) { $0.totalIDR += 5_000 }`.
    ///
    /// - Returns: the record as it is then.
    /// - Throws: ``FieldpostError/Code/rowMissing`` when there is no such row.
    @discardableResult
    public func update<Record: SyncedRecord>(
        _ record: Record,
        _ change: @Sendable (inout Record) throws -> Void
    ) async throws -> Record { try await write { try $0.update(record, change) } }

    /// Changes the row with this key.
    ///
    /// - Returns: the record as it is then.
    /// - Throws: ``FieldpostError/Code/rowMissing`` when there is no such row.
    @discardableResult
    public func update<Record: SyncedRecord>(
        _ type: Record.Type,
        _ id: Record.ID,
        _ change: @Sendable (inout Record) throws -> Void
    ) async throws -> Record { try await write { try $0.update(type, id, change) } }

    /// Removes the row of a record.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func delete<Record: SyncedRecord>(_ record: Record) async throws -> Bool {
        try await write { try $0.delete(record) }
    }
}
