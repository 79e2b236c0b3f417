import FieldpostCore
import FieldpostCrypto
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct TokenTests {
    private func make(
        _ shop: Shop,
        tenant: TenantName = .main,
        role: String = "device",
        scopes: Credential.Scopes = .all
    ) throws -> (token: String, id: String) {
        try Tokens.create(
            shop.connection,
            name: "Tablet",
            tenant: tenant,
            role: role,
            scopes: scopes,
            now: shop.now,
            random: { shop.random.bytes($0) }
        )
    }

    @Test func `a token gives back tenant, role and scopes`() throws {
        let shop = try Shop()
        let made = try make(shop, tenant: TenantName("north"), role: "console", scopes: .only(["B1", "B2"]))

        let credential = try Tokens.authenticate(shop.connection, token: made.token)

        #expect(
            try credential
                == Credential(
                    tenant: TenantName("north"),
                    tokenID: made.id,
                    role: "console",
                    scopes: .only(["B1", "B2"])
                )
        )
    }

    @Test func `the secret is nowhere in the file, only its hash`() throws {
        let shop = try Shop()
        let made = try make(shop)

        let row = try shop.connection.query("SELECT * FROM fieldpost_tokens")[0]

        #expect(row.contains(.blob(SHA256.hash(Array(made.token.utf8)))))
        #expect(!row.contains { $0.text?.contains(made.token) ?? false })
        #expect(Base64URL.decode(made.token)?.count == 32)
    }

    @Test func `an unknown, cut or revoked token is nobody`() throws {
        let shop = try Shop()
        let made = try make(shop)
        for token in [
            "", "x", String(made.token.dropLast()), made.token + "A", String(repeating: "A", count: 10_000),
        ] {
            #expect(try Tokens.authenticate(shop.connection, token: token) == nil)
        }

        try Tokens.revoke(shop.connection, id: made.id, now: shop.now)

        #expect(try Tokens.authenticate(shop.connection, token: made.token) == nil)
        #expect(try Tokens.list(shop.connection).map(\.revokedAt) == [shop.now])
    }

    @Test func `roles and scopes that mean nothing are refused`() throws {
        let shop = try Shop()
        #expect(throws: ServerError.self) { try make(shop, role: "root") }
        for scopes in [[], [""], ["*"], ["a\0"], [String(repeating: "x", count: 256)]] as [Set<String>] {
            #expect(throws: ServerError.self) { try make(shop, scopes: .only(scopes)) }
        }
        #expect(throws: ServerError.self) { try Tokens.revoke(shop.connection, id: "nobody", now: shop.now) }
    }

    @Test(arguments: [
        "", "Main", "a-b", "wal", "shm", "journal", "../x", "a b", String(repeating: "a", count: 64),
    ])
    func `a tenant's name that could reach another file is refused`(name: String) {
        #expect(throws: ServerError.self) { try TenantName(name) }
    }
}
