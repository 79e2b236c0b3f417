internal import CFieldpostSQLite

/// How SQLite stores a value.
///
/// Without raw values, by which enums are compared through a protocol: rows are read a class a column.
package enum StorageClass: Sendable {
    case integer, real, text, blob, null

    init(code: Int32) {
        switch code {
        case SQLITE_INTEGER: self = .integer
        case SQLITE_FLOAT: self = .real
        case SQLITE_TEXT: self = .text
        case SQLITE_BLOB: self = .blob
        default: self = .null
        }
    }

    /// The class in an error message.
    package var words: String {
        switch self {
        case .integer: "an integer"
        case .real: "a real"
        case .text: "text"
        case .blob: "a blob"
        case .null: "NULL"
        }
    }
}
