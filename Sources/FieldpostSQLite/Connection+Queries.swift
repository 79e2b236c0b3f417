public import FieldpostCore

extension Connection {
    /// Runs every statement of a script, without values.
    ///
    /// It opens no transaction: a failure leaves what ran before it.
    ///
    /// - Throws: ``StoreError`` of the first statement that fails.
    public func execute(_ script: String) throws(StoreError) {
        if database.isGuarded { try database.checkUsable() }
        var script = Script(script)
        while let statement = try script.next(database, persistent: false) { try statement.run() }
    }

    /// Runs every statement of a script that `admit` lets pass.
    ///
    /// - Returns: How many rows the statements changed, without those of triggers.
    /// - Throws: What `admit` throws of a statement, which has then not run, or ``StoreError``.
    package func execute(_ script: String, admitting admit: (Statement) throws -> Void) throws -> Int {
        if database.isGuarded { try database.checkUsable() }
        var script = Script(script)
        var sum = 0
        while let statement = try script.next(database, persistent: false) {
            try admit(statement)
            let before = totalChanges
            try statement.run()
            // A statement that is no write leaves the last one's count.
            if totalChanges != before { sum += changes }
        }
        return sum
    }

    /// Runs one statement to its end and ignores any row.
    ///
    /// - Throws: ``StoreError``; the statement has then changed nothing.
    public func run(_ sql: String, _ arguments: [Value]) throws(StoreError) {
        let statement = try bound(sql, arguments)
        try statement.run()
    }

    /// Runs one statement to its end and ignores any row.
    public func run(_ sql: String, _ arguments: Value...) throws(StoreError) { try run(sql, arguments) }

    /// All rows of a query, in memory; use ``forEach(_:_:_:)`` where there may be many.
    public func query(_ sql: String, _ arguments: [Value]) throws(StoreError) -> [[Value]] {
        let statement = try bound(sql, arguments)
        var rows: [[Value]] = []
        while try statement.step() { rows.append(statement.values()) }
        return rows
    }

    /// All rows of a query, in memory.
    public func query(_ sql: String, _ arguments: Value...) throws(StoreError) -> [[Value]] {
        try query(sql, arguments)
    }

    /// Lends each row of a query to `body`, one at a time.
    ///
    /// - Throws: ``StoreError``, or what `body` throws, which ends the query.
    public func forEach(
        _ sql: String,
        _ arguments: [Value] = [],
        _ body: (borrowing Row) throws -> Void
    ) throws {
        let statement = try bound(sql, arguments)
        // An open cursor would keep its read lock after `body` throws.
        defer { statement.reset() }
        let row = Row(statement: statement)
        while try statement.step() { try body(row) }
    }

    /// The first column of the first row, or `nil` when there is no row.
    public func scalar(_ sql: String, _ arguments: [Value]) throws(StoreError) -> Value? {
        let statement = try bound(sql, arguments)
        guard try statement.step() else { return nil }
        let value = statement.value(0)
        // A write with RETURNING is complete, and its errors are known, only at its end.
        if statement.isReadOnly { statement.reset() } else { try statement.run() }
        return value
    }

    /// The first column of the first row, or `nil` when there is no row.
    public func scalar(_ sql: String, _ arguments: Value...) throws(StoreError) -> Value? {
        try scalar(sql, arguments)
    }

    /// The names of the columns that a statement returns; empty when it returns none.
    public func columns(of sql: String) throws(StoreError) -> [String] {
        let statement = try statement(sql)
        return (0..<statement.columnCount).map { statement.columnName(Int32($0)) }
    }

    /// Whether `sql` is one statement that returns rows and writes nothing.
    ///
    /// `BEGIN`, `ATTACH` and the like write nothing themselves but change the connection, and are refused.
    ///
    /// - Throws: ``StoreError/Code/sqlError``, or ``StoreError/Code/misuse`` for more than one statement.
    public func isReadOnly(_ sql: String) throws(StoreError) -> Bool { try prepare(sql).isReadOnly }

    private func bound(_ sql: String, _ arguments: [Value]) throws(StoreError) -> Statement {
        let statement = try statement(sql)
        try statement.bind(arguments)
        return statement
    }
}
