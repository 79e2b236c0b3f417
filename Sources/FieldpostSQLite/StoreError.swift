/// A failure reported by the local store.
///
/// Branch on ``code``. Treat ``message`` as prose for a log: it may change in any release.
public struct StoreError: Error, Sendable {
    /// What went wrong, in terms a caller can act on.
    public let code: Code

    /// One sentence that says what happened and how to remedy it; it never holds bound values.
    public let message: String

    /// SQLite's extended result code, when SQLite reported the failure.
    public let sqliteCode: Int32?

    /// SQLite's own text, such as `UNIQUE constraint failed: orders.id`, or the text a trigger raised.
    ///
    /// It may name tables, columns and constraints. It is for mapping an error to a rule, not for people.
    public let detail: String?

    /// Creates an error with a message of the caller's own.
    package init(_ code: Code, _ message: String, sqliteCode: Int32? = nil, detail: String? = nil) {
        self.code = code
        self.message = message
        self.sqliteCode = sqliteCode
        self.detail = detail
    }

    /// The reasons a store operation can fail.
    ///
    /// A struct rather than an enum, so that adding a reason is not a breaking change.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Wrapped: String {
            case busy, constraint, aborted, notADatabase, corrupt, readOnly, full, ioError, cantOpen, missing
            case accessDenied, newerFormat, sqlError, misuse, interrupted, tooBig, outOfMemory, closed, killed
            case unexpected
        }
        private let wrapped: Wrapped

        /// Another connection holds a lock; the same call may succeed later.
        public static let busy = Code(wrapped: .busy)
        /// The change breaks a constraint of the schema; see ``StoreError/constraint``.
        public static let constraint = Code(wrapped: .constraint)
        /// A trigger refused the change with `RAISE`; its text is ``StoreError/detail``.
        public static let aborted = Code(wrapped: .aborted)
        /// The file is something else, or is encrypted.
        public static let notADatabase = Code(wrapped: .notADatabase)
        /// The file is damaged: stop writing and restore it.
        public static let corrupt = Code(wrapped: .corrupt)
        /// The file, or this connection, must not be written.
        public static let readOnly = Code(wrapped: .readOnly)
        /// The disk, or the quota, is full.
        public static let full = Code(wrapped: .full)
        /// The operating system failed to read or write.
        public static let ioError = Code(wrapped: .ioError)
        /// The file cannot be opened; the message says what is in the way.
        public static let cantOpen = Code(wrapped: .cantOpen)
        /// There is no file, and the mode does not create one.
        public static let missing = Code(wrapped: .missing)
        /// The permissions of the file or of its folder forbid it.
        public static let accessDenied = Code(wrapped: .accessDenied)
        /// A newer program wrote the file.
        public static let newerFormat = Code(wrapped: .newerFormat)
        /// The SQL is wrong, or names something that does not exist.
        public static let sqlError = Code(wrapped: .sqlError)
        /// The call itself is wrong: a wrong number of values, two statements where one is allowed.
        public static let misuse = Code(wrapped: .misuse)
        /// The statement was interrupted before it finished.
        public static let interrupted = Code(wrapped: .interrupted)
        /// A text, a blob or a statement exceeds SQLite's limit.
        public static let tooBig = Code(wrapped: .tooBig)
        /// Memory ran out.
        public static let outOfMemory = Code(wrapped: .outOfMemory)
        /// The connection or the pool is closed.
        public static let closed = Code(wrapped: .closed)
        /// A simulation killed the process that this connection stands for.
        public static let killed = Code(wrapped: .killed)
        /// SQLite reported something that this library has no rule for; see ``StoreError/sqliteCode``.
        public static let unexpected = Code(wrapped: .unexpected)

        /// The code's name.
        public var description: String { wrapped.rawValue }
    }
}

extension StoreError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}
