internal import FieldpostCore
internal import FieldpostSQLite

extension ReadingTransaction where Self: ~Copyable {
    /// The record with this key; `nil` when there is none.
    public func fetchOne<Record: SyncedRecord>(_ type: Record.Type, _ id: Record.ID) throws -> Record? {
        let layout = try context.records.layout(type)
        let key = try layout.key(id)
        return try context.first(SQL(layout.selectSQL + layout.whereKey, [key]), layout.plan)
    }

    /// Every record of a type, in no order.
    public func fetchAll<Record: SyncedRecord>(_ type: Record.Type) throws -> [Record] {
        try fetchAll(Record.all)
    }

    /// The records of a query.
    public func fetchAll<Record: SyncedRecord>(_ query: RecordQuery<Record>) throws -> [Record] {
        let layout = try context.records.layout(Record.self)
        return try context.all(try query.selectSQL(layout), layout.plan)
    }

    /// The first record of a query; `nil` when there is none.
    public func fetchOne<Record: SyncedRecord>(_ query: RecordQuery<Record>) throws -> Record? {
        let layout = try context.records.layout(Record.self)
        return try context.first(try query.limit(1).selectSQL(layout), layout.plan)
    }

    /// How many records a query has.
    public func fetchCount<Record: SyncedRecord>(_ query: RecordQuery<Record>) throws -> Int {
        let sql = try query.countSQL(try context.records.layout(Record.self))
        return Int(try context.connection.scalar(sql.text, sql.arguments)?.integer ?? 0)
    }

    /// The rows of SQL as values of a type, by the names of its columns: for joins and aggregates.
    ///
    ///     struct Total: Decodable { var status: String, sum: Int64 }
    ///     try $0.fetchAll(Total.self, "select status, sum(total_idr) as sum from orders group by status")
    ///
    /// - Throws: ``FieldpostError/Code/unknownColumn`` for a property that the SQL returns no column for.
    public func fetchAll<Result: Decodable>(_ type: Result.Type, _ sql: SQL) throws -> [Result] {
        try context.all(try context.readOnly(sql), context.plan(type, sql))
    }

    /// The first row of SQL as a value of a type; `nil` when there is none.
    public func fetchOne<Result: Decodable>(_ type: Result.Type, _ sql: SQL) throws -> Result? {
        try context.first(try context.readOnly(sql), context.plan(type, sql))
    }

    /// The first column of the first row: `try $0.fetchValue(Int.self, "select count(*) from orders")`.
    ///
    /// - Returns: `nil` when there is no row; also for `NULL`.
    public func fetchValue<Part: Decodable>(_ type: Part.Type, _ sql: SQL) throws -> Part? {
        let statement = try context.bound(try context.readOnly(sql))
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return try context.value(type, statement)
    }

    /// The first column of each row.
    public func fetchValues<Part: Decodable>(_ type: Part.Type, _ sql: SQL) throws -> [Part] {
        let statement = try context.bound(try context.readOnly(sql))
        defer { statement.reset() }
        var values: [Part] = []
        while try statement.step() { values.append(try context.value(type, statement)) }
        return values
    }

    /// The rows of SQL with their columns' names.
    ///
    /// - Throws: ``FieldpostError/Code/notReadOnly`` for SQL that would write; `StoreError` for faulty SQL.
    public func query(_ sql: SQL) throws -> [QueryRow] {
        try sql.check()
        return try query(sql.text, sql.arguments)
    }
}

extension TransactionContext {
    /// The cached statement of `sql` with its values bound.
    func bound(_ sql: SQL) throws -> Statement {
        let statement = try connection.statement(sql.text)
        try statement.bind(sql.arguments)
        return statement
    }

    /// `sql`, when it is sound and only reads.
    func readOnly(_ sql: SQL) throws -> SQL {
        try sql.check()
        guard try connection.statement(sql.text).isReadOnly else {
            throw FieldpostError(.notReadOnly, "A fetch may not write; use execute in a write transaction.")
        }
        return sql
    }

    func plan<Result: Decodable>(_ type: Result.Type, _ sql: SQL) throws -> RowPlan {
        let names = try connection.columns(of: sql.text)
        return RowPlan(typeName: "\(type)", properties: properties(of: type) ?? names, names: names)
    }

    private func properties(of type: Any.Type) -> [String]? {
        guard let record = type as? any SyncedRecord.Type else { return nil }
        func known<Record: SyncedRecord>(_ type: Record.Type) -> [String] {
            RecordShape.of(type).fields.map(\.property)
        }
        return known(record)
    }

    func all<Result: Decodable>(_ sql: SQL, _ plan: RowPlan) throws -> [Result] {
        let statement = try bound(sql)
        defer { statement.reset() }
        let decoder = RowDecoder(statement, plan: plan)
        defer { decoder.finish() }
        var results: [Result] = []
        while try statement.step() { results.append(try decoder.decode(Result.self)) }
        return results
    }

    func first<Result: Decodable>(_ sql: SQL, _ plan: RowPlan) throws -> Result? {
        let statement = try bound(sql)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let decoder = RowDecoder(statement, plan: plan)
        defer { decoder.finish() }
        return try decoder.decode(Result.self)
    }

    func value<Part: Decodable>(_ type: Part.Type, _ statement: Statement) throws -> Part {
        do {
            return try FieldDecoder(statement, typeName: "\(type)").decode(type, column: 0)
        } catch let error as DecodingError {
            throw FieldpostError(decoding: error, typeName: "\(type)")
        }
    }
}
