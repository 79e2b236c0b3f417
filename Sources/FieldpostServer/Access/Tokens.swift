package import FieldpostCore
internal import FieldpostCrypto
package import FieldpostSQLite

/// The tokens of a server: all of them in the main tenant's file, each only as its SHA-256.
package enum Tokens {
    /// Random bytes in a token: beyond guessing, so that a plain hash protects it as well as a slow one would.
    private static let secretBytes = 32
    /// Enough for any shop chain; a longer list belongs into `*`.
    private static let maxScopes = 1_000
    private static let maxScopeBytes = 255
    private static let maxAccountBytes = 255

    /// One token as it is listed: everything but the secret.
    package struct Listed: Sendable {
        package var id: String
        package var name: String
        package var tenant: TenantName
        package var role: String
        package var scopes: Credential.Scopes
        package var account: String
        package var createdAt: Timestamp
        package var revokedAt: Timestamp?
    }

    /// Makes a token, inside the caller's transaction or one of its own.
    ///
    /// - Returns: The secret, which is shown once and not kept, and the id by which the token is revoked.
    /// - Throws: ``ServerError`` with `invalidRole`, `invalidScope` or `invalidAccount`, or a `StoreError`.
    package static func create(
        _ connection: Connection,
        name: String,
        tenant: TenantName = .main,
        role: String = "device",
        scopes: Credential.Scopes,
        account: String = "",
        now: Timestamp,
        random: (Int) -> [UInt8]
    ) throws -> (token: String, id: String) {
        guard Table.allRoles.contains(role) else {
            throw ServerError(.invalidRole, "A role is one of \(Table.allRoles.joined(separator: ", ")).")
        }
        try check(scopes)
        guard account.utf8.count <= maxAccountBytes, !account.utf8.contains(0) else {
            throw ServerError(.invalidAccount, "An account's name has up to \(maxAccountBytes) bytes.")
        }
        let token = Base64URL.encode(random(secretBytes))
        let id = Hex.encode(random(8))
        try connection.run(
            """
            INSERT INTO fieldpost_tokens (id, name, hash, tenant, scopes, role, account, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .text(id),
            .text(name),
            .blob(SHA256.hash(Array(token.utf8))),
            .text(tenant.text),
            .text(scopes.json.text()),
            .text(role),
            .text(account),
            .integer(now.milliseconds)
        )
        return (token, id)
    }

    private static func check(_ scopes: Credential.Scopes) throws(ServerError) {
        guard case .only(let names) = scopes else { return }
        let usable = names.allSatisfy {
            !$0.isEmpty && $0 != "*" && $0.utf8.count <= maxScopeBytes && !$0.utf8.contains(0)
        }
        guard usable, (1...maxScopes).contains(names.count) else {
            throw ServerError(
                .invalidScope,
                "Give 1 to \(maxScopes) scopes of 1 to \(maxScopeBytes) bytes each, or * alone for all of them."
            )
        }
    }

    /// Makes a token useless from the next request on.
    ///
    /// - Throws: ``ServerError/Code/unknownToken``, or a `StoreError`.
    package static func revoke(_ connection: Connection, id: String, now: Timestamp) throws {
        try connection.run(
            "UPDATE fieldpost_tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?",
            .integer(now.milliseconds),
            .text(id)
        )
        if connection.changes == 0 { throw ServerError(.unknownToken, "There is no token with this id.") }
    }

    /// Every token, the oldest first.
    package static func list(_ connection: Connection) throws -> [Listed] {
        try connection.query(
            """
            SELECT id, name, tenant, role, scopes, created_at, revoked_at, account FROM fieldpost_tokens
            ORDER BY created_at, id
            """
        ).compactMap { row in
            guard let tenant = try? TenantName(row[2].text ?? ""),
                let scopes = Credential.Scopes(text: row[4].text)
            else {
                return nil
            }
            return Listed(
                id: row[0].text ?? "",
                name: row[1].text ?? "",
                tenant: tenant,
                role: row[3].text ?? "",
                scopes: scopes,
                account: row[7].text ?? "",
                createdAt: Timestamp(milliseconds: row[5].integer ?? 0),
                revokedAt: row[6].integer.map(Timestamp.init(milliseconds:))
            )
        }
    }

    /// What `token` allows, or `nil` when it is unknown or revoked.
    package static func authenticate(_ connection: Connection, token: String) throws -> Credential? {
        // Longer than any token: not worth hashing.
        guard token.utf8.count <= 256 else { return nil }
        let hash = SHA256.hash(Array(token.utf8))
        let statement = try connection.statement(
            "SELECT hash, id, tenant, role, scopes, account FROM fieldpost_tokens WHERE hash = ? AND revoked_at IS NULL"
        )
        try statement.bind(1, hash)
        defer { statement.reset() }
        // The index finds by the hash of the secret, whose timing tells nothing of the secret itself.
        guard try statement.step(), constantTimeEquals(statement.blob(0), hash),
            let scopes = Credential.Scopes(text: statement.text(4)),
            let tenant = try? TenantName(statement.text(2))
        else { return nil }
        return Credential(
            tenant: tenant,
            tokenID: statement.text(1),
            role: statement.text(3),
            scopes: scopes,
            account: statement.text(5)
        )
    }
}

extension Credential.Scopes {
    /// `"*"`, or the sorted names.
    var json: JSON {
        switch self {
        case .all: "*"
        case .only(let names): .array(names.sorted(by: utf8Less).map(JSON.string))
        }
    }

    /// Reads what ``json`` writes.
    init?(text: String?) {
        guard let text, let json = try? JSON(text: text) else { return nil }
        switch json {
        case .string("*"): self = .all
        case .array(let names): self = .only(Set(names.compactMap(\.string)))
        default: return nil
        }
    }
}
