/// A reason why a server store cannot be opened or a command on it cannot be done.
///
/// Branch on ``code``. ``message`` is a sentence for an operator, with the remedy; it never holds rows or tokens.
public struct ServerError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, in terms a caller can act on.
    public let code: Code
    /// What happened and what to do.
    public let message: String

    /// The message.
    public var description: String { message }

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The reasons.
    ///
    /// A struct rather than an enum, so that adding a reason is not a breaking change.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Wrapped: String {
            case newerFormat, newerSchema, incompatibleSchema, migrationFailed, invalidSchema, notAStore
            case invalidTenant, invalidScope, invalidRole, invalidAccount, unknownToken, closed
        }
        private let wrapped: Wrapped

        /// A newer Fieldpost wrote the store; it is left untouched.
        public static let newerFormat = Code(wrapped: .newerFormat)
        /// The store was upgraded to a newer schema version than the one given; it is left untouched.
        public static let newerSchema = Code(wrapped: .newerSchema)
        /// The schema changes what is there without a migration that says how.
        public static let incompatibleSchema = Code(wrapped: .incompatibleSchema)
        /// A migration failed; nothing of it was kept.
        public static let migrationFailed = Code(wrapped: .migrationFailed)
        /// The schema itself has faults.
        public static let invalidSchema = Code(wrapped: .invalidSchema)
        /// The file is a database of another program.
        public static let notAStore = Code(wrapped: .notAStore)
        /// The tenant's name cannot be used.
        public static let invalidTenant = Code(wrapped: .invalidTenant)
        /// A scope's name cannot be used.
        public static let invalidScope = Code(wrapped: .invalidScope)
        /// There is no such role.
        public static let invalidRole = Code(wrapped: .invalidRole)
        /// The account's name cannot be used.
        public static let invalidAccount = Code(wrapped: .invalidAccount)
        /// There is no such token.
        public static let unknownToken = Code(wrapped: .unknownToken)
        /// The server was closed.
        public static let closed = Code(wrapped: .closed)

        /// The code's name.
        public var description: String { wrapped.rawValue }
    }
}
