public import FieldpostCore
internal import FieldpostSQLite

/// Reads inside one transaction: everything is as of one moment.
///
/// Lent to a closure, so it cannot outlive its transaction.
public protocol ReadingTransaction: ~Copyable {
    /// What the transaction works on.
    var context: TransactionContext { get }
}

/// What a transaction works on; nothing an app uses directly.
public final class TransactionContext {
    let connection: Connection
    let schema: Schema
    /// The database when it may be written.
    let database: LocalDatabase?
    let now: Timestamp
    let environment: Environment
    let records: RecordRegistry

    init(
        connection: Connection,
        schema: Schema,
        database: LocalDatabase?,
        now: Timestamp,
        environment: Environment,
        records: RecordRegistry
    ) {
        self.records = records
        self.connection = connection
        self.schema = schema
        self.database = database
        self.now = now
        self.environment = environment
    }
}

/// A read transaction.
public struct ReadTransaction: ReadingTransaction, ~Copyable {
    /// What the transaction works on.
    public let context: TransactionContext

    // Inlined into a closure that is specialized, it crashes the optimizer of Swift 6.3.
    @inline(never) init(context: TransactionContext) { self.context = context }
}

/// A write transaction: its changes and their operations commit together, or not at all.
public struct WriteTransaction: ReadingTransaction, ~Copyable {
    /// What the transaction works on.
    public let context: TransactionContext

    // Inlined into a closure that is specialized, it crashes the optimizer of Swift 6.3.
    @inline(never) init(context: TransactionContext) { self.context = context }
}

/// One row of a query: its values by column name, in the order selected.
public struct QueryRow: Equatable, Sendable {
    /// The columns' names.
    public let columns: [String]
    /// The values, one for each column.
    public let values: [Value]

    /// The value of the first column called `name`, or `nil` when there is none.
    public subscript(name: String) -> Value? {
        columns.firstIndex(of: name).map { values[$0] }
    }
}

extension ReadingTransaction where Self: ~Copyable {
    /// The rows of a query; `?` in `sql` stand for `arguments`, which are always bound.
    ///
    /// - Throws: ``FieldpostError/Code/notReadOnly`` for SQL that would write; `StoreError` for faulty SQL.
    @_disfavoredOverload
    public func query(_ sql: String, _ arguments: [Value] = []) throws -> [QueryRow] {
        guard try context.connection.isReadOnly(sql) else {
            throw FieldpostError(.notReadOnly, "A query may not write; use execute in a write transaction.")
        }
        let columns = try context.connection.columns(of: sql)
        return try context.connection.query(sql, arguments).map { QueryRow(columns: columns, values: $0) }
    }
}

extension WriteTransaction {
    private var database: LocalDatabase {
        guard let database = context.database else {
            preconditionFailure("a write transaction has a database")
        }
        return database
    }

    /// Runs SQL: one statement with `arguments`, or several without.
    ///
    /// - Returns: how many rows all the statements changed, without those of triggers.
    /// - Throws: ``FieldpostError`` for what a constraint refuses; `StoreError` for faulty SQL.
    @_disfavoredOverload
    @discardableResult
    public func execute(_ sql: String, _ arguments: [Value] = []) throws -> Int {
        try SQLGuard.check(sql)
        // Text made by SQL rather than bound may be no UTF-8; see Capture.
        try context.connection.run("UPDATE fieldpost_session SET trusted = 0 WHERE id = 1")
        do {
            if arguments.isEmpty { return try context.connection.execute(sql, admitting: SQLGuard.check) }
            let statement = try context.connection.statement(sql)
            try SQLGuard.check(statement)
            try statement.bind(arguments)
            let before = context.connection.totalChanges
            try statement.run()
            return context.connection.totalChanges == before ? 0 : context.connection.changes
        } catch let error as StoreError {
            throw FieldpostError(error) ?? error
        }
    }

    /// Inserts a row of wire values; columns left out take their default.
    ///
    /// - Returns: the row's key, made here (a version 7 UUID) when `row` is `nil`.
    @discardableResult
    public func create(_ table: String, row: String? = nil, set: JSONObject) throws -> String {
        let table = try database.table(table)
        let key = try self.key(row, set[table.key], table)
        var set = set
        set[table.key] = .string(key)
        let (columns, values) = try bound(set, table)
        let names = columns.map(quoted).joined(separator: ", ")
        try change(
            "INSERT INTO \(quoted(table.name)) (\(names)) VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))",
            values
        )
        return key
    }

    /// Changes columns of a row, by wire values.
    ///
    /// - Throws: ``FieldpostError/Code/rowMissing`` when there is no such row.
    public func update(_ table: String, row: String, set: JSONObject) throws {
        let table = try database.table(table)
        let key = try self.key(row, nil, table)
        let (columns, values) = try bound(set, table)
        if columns.contains(table.key), set[table.key] != .string(key) {
            throw FieldpostError(
                .type,
                "The key of a row does not change; create a new row.",
                names: [table.key]
            )
        }
        if columns.isEmpty { return try require(key, table) }
        let list = columns.map { "\(quoted($0)) = ?" }.joined(separator: ", ")
        try change(
            "UPDATE \(quoted(table.name)) SET \(list) WHERE \(quoted(table.key)) = ?",
            values + [.text(key)]
        )
        if context.connection.changes == 0 { throw missing(table) }
    }

    /// Removes a row.
    ///
    /// - Throws: ``FieldpostError/Code/rowMissing`` when there is no such row.
    public func delete(_ table: String, row: String) throws {
        let table = try database.table(table)
        let key = try self.key(row, nil, table)
        try change("DELETE FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?", [.text(key)])
        if context.connection.changes == 0 { throw missing(table) }
    }

    /// The key of a row as it is stored: a UUID in lower case.
    package func key(_ row: String, in table: String) throws -> String {
        try key(row, nil, try database.table(table))
    }

    func settle(_ conflict: Int64, keep winner: Winner) throws {
        try Conflicts(database).settle(conflict, keep: winner)
    }

    /// The ids of the operations this transaction has made or changed so far, in order.
    public func operations() throws -> [OperationID] { try database.recordedOperations() }

    private func change(_ sql: String, _ arguments: [Value]) throws {
        do { try context.connection.run(sql, arguments) } catch { throw FieldpostError(error) ?? error }
    }

    private func key(_ row: String?, _ member: JSON?, _ table: Table) throws -> String {
        if let row, let member, member.string?.lowercased() != row.lowercased() {
            throw FieldpostError(
                .type,
                "\(table.name).\(table.key) is given twice, with two values; leave one out.",
                names: [table.key]
            )
        }
        let given = row ?? member?.string
        guard let column = table.column(table.key), let given else {
            var random = context.environment.random
            return UUIDText.version7(at: context.now, using: &random)
        }
        do {
            return try column.value(from: .string(given)).text ?? given
        } catch {
            throw FieldpostError(.type, "\(table.name).\(table.key): \(error.message).", names: [table.key])
        }
    }

    private func bound(_ set: JSONObject, _ table: Table) throws(FieldpostError) -> ([String], [Value]) {
        var columns: [String] = []
        var values: [Value] = []
        for member in set.members {
            guard let column = table.column(member.name) else {
                throw FieldpostError(
                    .unknownColumn,
                    "\(table.name) has no column \(member.name).",
                    names: [member.name]
                )
            }
            do {
                values.append(try column.value(from: member.value))
            } catch {
                throw FieldpostError(
                    .type,
                    "\(table.name).\(column.name): \(error.message).",
                    names: [column.name]
                )
            }
            columns.append(column.name)
        }
        return (columns, values)
    }

    private func require(_ key: String, _ table: Table) throws {
        let found = try context.connection.scalar(
            "SELECT 1 FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?",
            .text(key)
        )
        if found == nil { throw missing(table) }
    }

    private func missing(_ table: Table) -> FieldpostError {
        FieldpostError(.rowMissing, "\(table.name) has no row with this key.")
    }
}

/// Keeps an app's SQL away from what would break capture.
enum SQLGuard {
    /// Refuses a statement that would end or change the transaction it runs in.
    static func check(_ statement: Statement) throws {
        if statement.isControl {
            throw FieldpostError(
                .usage,
                "A write is one transaction already; leave out BEGIN, COMMIT, ROLLBACK, ATTACH and settings."
            )
        }
    }

    /// Refuses Fieldpost's tables.
    static func check(_ sql: String) throws(FieldpostError) {
        if sql.lowercased().contains("fieldpost_") {
            throw FieldpostError(
                .reservedTable,
                "Tables called fieldpost_… belong to Fieldpost; the app does not write them."
            )
        }
    }
}
