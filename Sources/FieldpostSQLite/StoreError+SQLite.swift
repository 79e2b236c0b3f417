internal import CFieldpostSQLite

extension StoreError {
    /// The kind of constraint that a change breaks.
    ///
    /// A struct rather than an enum, so that adding a kind is not a breaking change.
    public struct Constraint: Hashable, Sendable {
        private enum Wrapped { case unique, primaryKey, foreignKey, notNull, check, datatype, other }
        private let wrapped: Wrapped

        /// A `UNIQUE` constraint or index.
        public static let unique = Constraint(wrapped: .unique)
        /// A `PRIMARY KEY`, or a row id.
        public static let primaryKey = Constraint(wrapped: .primaryKey)
        /// A foreign key, immediate or, at commit, deferred.
        public static let foreignKey = Constraint(wrapped: .foreignKey)
        /// A `NOT NULL` column.
        public static let notNull = Constraint(wrapped: .notNull)
        /// A `CHECK`; its name follows the colon in ``StoreError/detail``.
        public static let check = Constraint(wrapped: .check)
        /// A value of a type that its column does not store.
        public static let datatype = Constraint(wrapped: .datatype)
        /// Any other constraint.
        public static let other = Constraint(wrapped: .other)
    }

    /// Which kind of constraint was broken, or `nil` when ``code`` is not ``Code/constraint``.
    public var constraint: Constraint? {
        guard code == .constraint, let sqliteCode else { return nil }
        return switch sqliteCode {
        case Extended.unique: .unique
        case Extended.primaryKey, Extended.rowID: .primaryKey
        case Extended.foreignKey: .foreignKey
        case Extended.notNull: .notNull
        case Extended.check: .check
        case Extended.datatype, SQLITE_MISMATCH: .datatype
        default: .other
        }
    }

    /// The extended result codes that need a rule of their own; SQLite's are macros that Swift cannot import.
    enum Extended {
        static let check = SQLITE_CONSTRAINT | 1 << 8
        static let foreignKey = SQLITE_CONSTRAINT | 3 << 8
        static let notNull = SQLITE_CONSTRAINT | 5 << 8
        static let primaryKey = SQLITE_CONSTRAINT | 6 << 8
        static let trigger = SQLITE_CONSTRAINT | 7 << 8
        static let unique = SQLITE_CONSTRAINT | 8 << 8
        static let rowID = SQLITE_CONSTRAINT | 10 << 8
        static let datatype = SQLITE_CONSTRAINT | 12 << 8
        static let moved = SQLITE_READONLY | 4 << 8
        static let noMemory = SQLITE_IOERR | 12 << 8
    }

    /// Maps a result code of SQLite, extended or not, to a code and a sentence.
    init(sqlite code: Int32, detail: String?) {
        let (kind, sentence) = Self.exact(code) ?? Self.primary(code & 0xff)
        self.init(kind, sentence, sqliteCode: code, detail: detail)
    }

    private static func exact(_ code: Int32) -> (Code, String)? {
        switch code {
        case Extended.trigger: (.aborted, "A trigger refused the change; correct the data and try again.")
        case Extended.moved:
            (.readOnly, "The database file was moved or replaced while open; close it and open it again.")
        case Extended.noMemory: primary(SQLITE_NOMEM)
        default: nil
        }
    }

    private static func primary(_ code: Int32) -> (Code, String) {
        switch code {
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            (.busy, "Another connection holds a lock on the database; try again.")
        case SQLITE_CONSTRAINT:
            (.constraint, "The change breaks a constraint of the schema; correct the data.")
        case SQLITE_MISMATCH:
            (.constraint, "A value has a type that its column does not store; correct the data.")
        case SQLITE_INTERRUPT, SQLITE_ABORT:
            (.interrupted, "The statement was interrupted and changed nothing; run it again if still wanted.")
        case SQLITE_TOOBIG: (.tooBig, "A text, blob or statement exceeds SQLite's limit; make it smaller.")
        case SQLITE_NOMEM: (.outOfMemory, "Memory ran out; close something and try again.")
        case SQLITE_ERROR, SQLITE_SCHEMA:
            (.sqlError, "The SQL is wrong or names something that does not exist; correct it.")
        case SQLITE_MISUSE, SQLITE_RANGE:
            (.misuse, "The statement was used wrongly; check its parameters and its order of calls.")
        default: file(code)
        }
    }

    private static func file(_ code: Int32) -> (Code, String) {
        switch code {
        case SQLITE_NOTADB:
            (.notADatabase, "The file is not an SQLite database; choose another file or move this one away.")
        case SQLITE_CORRUPT:
            (.corrupt, "The database file is damaged; stop writing and restore it from a copy.")
        case SQLITE_READONLY:
            (.readOnly, "The database cannot be written; make its file and folder writable.")
        case SQLITE_FULL: (.full, "The disk is full; free some space and try again.")
        case SQLITE_IOERR, SQLITE_NOLFS:
            (.ioError, "The system failed to read or write the database; check the disk and try again.")
        case SQLITE_CANTOPEN:
            (.cantOpen, "The database file cannot be opened; check its path and its folder.")
        case SQLITE_PERM, SQLITE_AUTH:
            (.accessDenied, "The permissions forbid opening the database; correct them.")
        default: (.unexpected, "SQLite reported a failure that this library has no rule for; see its code.")
        }
    }
}
