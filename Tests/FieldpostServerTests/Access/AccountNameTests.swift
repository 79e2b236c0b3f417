import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

/// Which tokens are one account.
@Suite struct AccountNameTests {
    private func id(
        _ tenant: String,
        _ account: String,
        role: String = "device",
        scopes: Credential.Scopes = .all
    )
        throws -> String
    {
        Credential(
            tenant: try TenantName(tenant),
            tokenID: "\(tenant)\(account)\(role)",
            role: role,
            scopes: scopes,
            account: account
        ).accountID
    }

    @Test func `an account is its tenant and its name, whatever the token may do`() throws {
        let own = try id("main", "ayu")

        #expect(try id("main", "ayu", role: "console", scopes: .only(["B1"])) == own)
        for (tenant, account) in [("main", ""), ("main", "budi"), ("other", "ayu"), ("other", "")] {
            #expect(try id(tenant, account) != own)
        }
        #expect(try id("main", "") == id("main", "", scopes: .only(["B1"])))
        // No name can be made to look like another tenant's.
        #expect(try id("a", "b\",\"c") != id("a", "b"))
    }

    @Test func `an account's name is kept with its token`() throws {
        let shop = try Shop()
        func make(_ account: String) throws -> String {
            try Tokens.create(
                shop.connection,
                name: "t",
                scopes: .all,
                account: account,
                now: Timestamp(milliseconds: 1),
                random: { count in Array(repeating: UInt8(account.utf8.count & 0xFF), count: count) }
            ).token
        }

        let token = try make("ayu")

        #expect(try Tokens.authenticate(shop.connection, token: token)?.account == "ayu")
        #expect(try Tokens.list(shop.connection).map(\.account) == ["ayu"])
        for name in [String(repeating: "x", count: 256), "a\0b"] {
            let error = #expect(throws: ServerError.self) { try make(name) }
            #expect(error?.code == .invalidAccount)
        }
    }

    @Test func `a store from before accounts gets the column, and its tokens stay valid`() throws {
        let folder = try ScratchFolder()
        let shop = try Shop(folder: folder)
        let token = try Tokens.create(
            shop.connection,
            name: "t",
            scopes: .all,
            now: Timestamp(milliseconds: 1),
            random: { Array(repeating: 7, count: $0) }
        ).token
        let before = try Tokens.authenticate(shop.connection, token: token)
        try shop.connection.execute("ALTER TABLE fieldpost_tokens DROP COLUMN account")
        shop.connection.close()

        let again = try Shop(folder: folder)

        #expect(before != nil)
        #expect(try Tokens.authenticate(again.connection, token: token) == before)
    }
}
