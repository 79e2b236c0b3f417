internal import CFieldpostSQLite
package import FieldpostCore

extension Connection {
    /// Defines an SQL function, or replaces a built-in one such as `random()`, for this connection.
    ///
    /// Triggers may call it. It is not taken for deterministic.
    ///
    /// - Parameters:
    ///   - name: The function's name in SQL.
    ///   - argumentCount: How many arguments this form takes; -1 for any number.
    ///   - body: Computes the result; it must not use the connection.
    /// - Throws: ``StoreError/Code/busy`` while a statement runs.
    package func overrideFunction(
        name: String,
        argumentCount: Int,
        _ body: @escaping ([Value]) -> Value
    ) throws(StoreError) {
        try database.checkUsable()
        let context = Unmanaged.passRetained(FunctionBody(call: body))
        // On failure SQLite calls the destructor itself, so the context is not released here.
        let code = sqlite3_create_function_v2(
            database.pointer,
            name,
            Int32(argumentCount),
            SQLITE_UTF8 | SQLITE_INNOCUOUS,
            context.toOpaque(),
            { context, count, values in
                let body = Unmanaged<FunctionBody>.fromOpaque(sqlite3_user_data(context))
                    .takeUnretainedValue()
                let arguments = (0..<Int(count)).map { Value(sqlite: values![$0]) }
                body.call(arguments).set(on: context)
            },
            nil,
            nil,
            { Unmanaged<FunctionBody>.fromOpaque($0!).release() }
        )
        try database.check(code)
    }
}

/// A closure that C can hold by its address.
private final class FunctionBody {
    let call: ([Value]) -> Value
    init(call: @escaping ([Value]) -> Value) { self.call = call }
}

extension Value {
    /// The value of a function's argument.
    fileprivate init(sqlite value: OpaquePointer?) {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: self = .integer(sqlite3_value_int64(value))
        case SQLITE_FLOAT: self = .real(sqlite3_value_double(value))
        case SQLITE_TEXT:
            let start = sqlite3_value_text(value)
            let count = start == nil ? 0 : Int(sqlite3_value_bytes(value))
            self = .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_value_blob(value)
            let count = start == nil ? 0 : Int(sqlite3_value_bytes(value))
            self = .blob(Array(UnsafeRawBufferPointer(start: start, count: count)))
        default: self = .null
        }
    }

    /// Sets the result of a function call.
    fileprivate func set(on context: OpaquePointer?) {
        switch self {
        case .null: sqlite3_result_null(context)
        case .integer(let value): sqlite3_result_int64(context, value)
        case .real(let value): sqlite3_result_double(context, value)
        case .text(let value):
            let count = UInt64(value.utf8.count)
            sqlite3_result_text64(context, value, count, fieldpost_transient(), UInt8(SQLITE_UTF8))
        case .blob(let value) where value.isEmpty: sqlite3_result_zeroblob(context, 0)
        case .blob(let value):
            sqlite3_result_blob64(context, value, UInt64(value.count), fieldpost_transient())
        }
    }
}
