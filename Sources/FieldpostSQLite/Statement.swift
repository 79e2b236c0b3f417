internal import CFieldpostSQLite
public import FieldpostCore

/// One prepared SQL statement.
///
/// Bind, step until `false`, then bind and step again: a statement that ended is ready for its next run. It
/// belongs to its connection's thread. Parameters count from 1, columns from 0, as in SQLite.
public final class Statement {
    let database: DatabaseHandle
    private let handle: OpaquePointer
    private var isRunning = false
    /// What it touches; `nil` on a connection that nobody observes.
    private var access: StatementAccess?

    init(_ handle: OpaquePointer, database: DatabaseHandle, log: AccessLog? = nil) {
        self.handle = handle
        self.database = database
        access = log.map { StatementAccess($0, sql: sql) }
    }

    deinit { sqlite3_finalize(handle) }

    /// The statement's own text.
    public var sql: String { sqlite3_sql(handle).map { String(cString: $0) } ?? "" }

    /// How many parameters it has.
    public var parameterCount: Int { Int(sqlite3_bind_parameter_count(handle)) }

    /// Whether it returns rows and writes nothing.
    public var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 && columnCount > 0 }

    /// Whether it neither returns rows nor writes, as `BEGIN`, `COMMIT`, `ATTACH` and pragmas that set something: it
    /// changes the connection itself.
    package var isControl: Bool { sqlite3_stmt_readonly(handle) != 0 && columnCount == 0 }

    // MARK: Running

    /// Runs to the next row.
    ///
    /// - Returns: Whether there is a row to read. After `false` the statement is reset; its bindings stay.
    /// - Throws: ``StoreError``; the statement is reset.
    @discardableResult
    public func step() throws(StoreError) -> Bool {
        if database.isGuarded { try database.admit(starting: !isRunning) { sql } }
        let code = database.observer == nil || isRunning ? sqlite3_step(handle) : observedStep()
        if code == SQLITE_ROW {
            isRunning = true
            return true
        }
        // Taken before the reset, which would clear it.
        let failure = code == SQLITE_DONE ? nil : database.error(code)
        reset()
        if let failure { throw failure }
        return false
    }

    /// The first step of a run, of which the observer is told.
    private func observedStep() -> Int32 {
        if let access { database.observer?.willRun(access) }
        let code = sqlite3_step(handle)
        if let log = database.observer?.takeReprepared() {
            let fresh = StatementAccess(log, sql: sql)
            access = fresh
            database.observer?.willRun(fresh)
        }
        return code
    }

    /// Feeds the current row to a hash: equal rows of equal types, equal hashes.
    package func hash(into hasher: inout Hasher) {
        for column in 0..<sqlite3_column_count(handle) {
            let stored = storageClass(column)
            hasher.combine(stored)
            switch stored {
            case .integer: hasher.combine(integer(column))
            case .real: hasher.combine(real(column).bitPattern)
            case .text, .blob:
                withBytes(column) {
                    hasher.combine($0.count)
                    hasher.combine(bytes: $0)
                }
            case .null: break
            }
        }
    }

    /// Runs to the end and ignores any row.
    public func run() throws(StoreError) {
        while try step() {}
    }

    /// Abandons the current run, so that the statement can be bound and run again; its bindings stay.
    public func reset() {
        sqlite3_reset(handle)
        isRunning = false
    }

    /// Resets the statement and forgets its bindings.
    func prepareForReuse() {
        reset()
        sqlite3_clear_bindings(handle)
    }

    // MARK: Binding

    /// Binds any value.
    ///
    /// - Throws: ``StoreError/Code/misuse`` when there is no such parameter, or for a real that is not a
    ///   number.
    public func bind(_ index: Int32, _ value: Value) throws(StoreError) {
        switch value {
        case .null: try bindNull(index)
        case .integer(let value): try bind(index, value)
        case .real(let value): try bind(index, value)
        case .text(let value): try bind(index, value)
        case .blob(let value): try bind(index, value)
        }
    }

    /// Binds an integer.
    public func bind(_ index: Int32, _ value: Int64) throws(StoreError) {
        try database.check(sqlite3_bind_int64(handle, index, value))
    }

    /// Binds a real, which must be a number: SQLite would silently store NaN as `NULL`.
    public func bind(_ index: Int32, _ value: Double) throws(StoreError) {
        if value.isNaN {
            throw StoreError(.misuse, "NaN cannot be stored; bind null or a number.")
        }
        try database.check(sqlite3_bind_double(handle, index, value))
    }

    /// Binds a text.
    public func bind(_ index: Int32, _ value: String) throws(StoreError) {
        var value = value
        let code = value.withUTF8 { bytes in
            // A null pointer would bind NULL, so an empty text points to something.
            bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text64(
                    handle,
                    index,
                    $0.baseAddress ?? UnsafePointer(bitPattern: 1),
                    UInt64($0.count),
                    fieldpost_transient(),
                    UInt8(SQLITE_UTF8)
                )
            }
        }
        try database.check(code)
    }

    /// Binds a blob.
    public func bind(_ index: Int32, _ value: [UInt8]) throws(StoreError) {
        // An empty array may have no address, and a null pointer would bind NULL.
        let code =
            value.isEmpty
            ? sqlite3_bind_zeroblob(handle, index, 0)
            : sqlite3_bind_blob64(handle, index, value, UInt64(value.count), fieldpost_transient())
        try database.check(code)
    }

    /// Binds `NULL`.
    public func bindNull(_ index: Int32) throws(StoreError) {
        try database.check(sqlite3_bind_null(handle, index))
    }

    /// Binds all parameters in order.
    ///
    /// - Throws: ``StoreError/Code/misuse`` unless there is a value for each parameter and no more.
    public func bind(_ values: [Value]) throws(StoreError) {
        guard values.count == parameterCount else {
            let message =
                "The statement takes \(parameterCount) values and got \(values.count); pass as many."
            throw StoreError(.misuse, message)
        }
        var index: Int32 = 0
        for value in values {
            index += 1
            try bind(index, value)
        }
    }

    // MARK: Reading the current row

    /// How many columns its rows have; 0 for a statement that returns none.
    public var columnCount: Int { Int(sqlite3_column_count(handle)) }

    /// The name of a column; empty beyond the last.
    public func columnName(_ column: Int32) -> String {
        sqlite3_column_name(handle, column).map { String(cString: $0) } ?? ""
    }

    /// How the column of the current row is stored.
    package func storageClass(_ column: Int32) -> StorageClass {
        StorageClass(code: sqlite3_column_type(handle, column))
    }

    /// Whether the column is `NULL`.
    public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// The column as an integer, converted as SQLite does; 0 for `NULL`.
    public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// The column as a real, converted as SQLite does; 0 for `NULL`.
    public func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

    /// The column as text, empty for `NULL`; bytes that are not UTF-8 come out as U+FFFD.
    public func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// The column's bytes; empty for `NULL`.
    public func blob(_ column: Int32) -> [UInt8] {
        withBytes(column) { Array($0) }
    }

    /// Lends the bytes of a blob or text without copying; they are gone after `body` returns.
    public func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }

    /// The bytes of a blob or text where SQLite keeps them: valid until the statement moves or converts the column.
    package func borrowedBytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(
            start: start,
            count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))
        )
    }

    /// The column in its own storage class.
    public func value(_ column: Int32) -> Value {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer(integer(column))
        case SQLITE_FLOAT: .real(real(column))
        case SQLITE_TEXT: .text(text(column))
        case SQLITE_BLOB: .blob(blob(column))
        default: .null
        }
    }

    /// The current row, in column order.
    public func values() -> [Value] {
        (0..<sqlite3_column_count(handle)).map { value($0) }
    }
}

@available(*, unavailable)
extension Statement: Sendable {}
