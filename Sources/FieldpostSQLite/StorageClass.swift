/// How SQLite stores a value; the raw values are SQLite's own.
package enum StorageClass: Int32, Sendable {
    case integer = 1
    case real = 2
    case text = 3
    case blob = 4
    case null = 5

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
