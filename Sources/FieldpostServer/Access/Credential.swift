internal import FieldpostCore
internal import FieldpostCrypto

/// What a token allows.
public struct Credential: Hashable, Sendable {
    /// The scopes whose rows may be seen and changed; global rows may be seen by all.
    public enum Scopes: Hashable, Sendable {
        /// Every scope of the tenant.
        case all
        /// These.
        case only(Set<String>)

        /// Whether rows of `scope` may be seen; `""` is the scope of global rows.
        public func contains(_ scope: String) -> Bool {
            switch self {
            case .all: true
            case .only(let names): scope.isEmpty || names.contains(scope)
            }
        }

        /// The text stored beside what these scopes have done.
        var stored: String {
            switch self {
            case .all: "*"
            case .only(let names): JSON.array(names.sorted().map(JSON.string)).text()
            }
        }

        /// Whether everything that was visible to the scopes stored as `text` is visible to these.
        func covers(stored text: String) -> Bool {
            guard case .only(let names) = self else { return true }
            let other = (try? JSON(text: text))?.array?.compactMap(\.string)
            return other.map { names.isSuperset(of: $0) } ?? false
        }
    }

    /// The tenant whose database is used.
    public var tenant: TenantName
    /// The token's own name in logs and lists; not the secret.
    public var tokenID: String
    /// `device`, `console` or `admin`.
    public var role: String
    /// The scopes.
    public var scopes: Scopes
    /// Whose token it is within the tenant; empty for tokens that name nobody, which are all one account.
    public var account: String

    /// A credential of the given parts.
    public init(
        tenant: TenantName = .main,
        tokenID: String,
        role: String = "device",
        scopes: Scopes,
        account: String = ""
    ) {
        self.tenant = tenant
        self.tokenID = tokenID
        self.role = role
        self.scopes = scopes
        self.account = account
    }

    private static let accountBytes = 16

    /// What a device's file is bound to, as it stands in a header: one text for all tokens of an account.
    ///
    /// Made of the tenant and the account's name alone: a token that is replaced, or whose scopes or role change, stays
    /// the same account.
    public var accountID: String {
        let text = JSON.array([.string(tenant.text), .string(account)]).text()
        return Base64URL.encode(Array(SHA256.hash(Array(text.utf8)).prefix(Self.accountBytes)))
    }
}
