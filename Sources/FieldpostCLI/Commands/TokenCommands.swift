internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import Foundation

/// `fieldpost token …`: who may talk to a server.
enum TokenCommands {
    private static let store = CommandSpec.Option.required(
        "store",
        "PATH",
        "the server's store, also as sqlite:PATH"
    )

    static let create = CommandSpec(
        path: ["token", "create"],
        summary: "Make a token and print it; it is shown only once.",
        options: [
            store, .optional("tenant", "T", "whose database it opens (default main)"),
            .init(
                name: "scope",
                value: "S",
                help: "whose rows it reaches; * for all",
                isRequired: true,
                isRepeated: true
            ),
            .optional("role", "ROLE", "device, console or admin (default device)"),
            .optional("account", "WHO", "whose it is; a device's file takes tokens of one account only"),
            .optional("name", "NAME", "what people call it"), .json,
        ],
        notes: ["Creates the store if it is absent, works beside a running server, and is valid at once."]
    ) { invocation, console in
        let path = try StoreAddress(try invocation.required("store")).path
        let tenant = try TenantName(invocation["tenant"] ?? "main")
        let names = invocation.values["scope"] ?? []
        let scopes: Credential.Scopes = names == ["*"] ? .all : .only(Set(names))
        let environment = ServerEnvironment.system
        let connection = try Connection(path: path)
        defer { connection.close() }
        try ServerCore.openForTokens(connection, now: environment.now, random: environment.random)
        let made = try Tokens.create(
            connection,
            name: invocation["name"] ?? "",
            tenant: tenant,
            role: invocation["role"] ?? "device",
            scopes: scopes,
            account: invocation["account"] ?? "",
            now: environment.now,
            random: environment.random
        )
        if invocation.has("json") {
            console.line(
                JSON.object(["ok": true, "token": .string(made.token), "id": .string(made.id)]).text()
            )
        } else {
            console.line(made.token)
        }
        return .done
    }

    static let list = CommandSpec(
        path: ["token", "list"],
        summary: "List the tokens of a server, without their secrets.",
        options: [store, .json]
    ) { invocation, console in
        let connection = try existing(invocation)
        defer { connection.close() }
        let tokens = try Tokens.list(connection)
        if invocation.has("json") {
            console.line(JSON.object(["tokens": .array(tokens.map(\.json))]).text())
        } else {
            for token in tokens { console.line(token.line) }
        }
        return .done
    }

    static let revoke = CommandSpec(
        path: ["token", "revoke"],
        summary: "Make a token useless from the next request on.",
        operands: [.init(name: "ID", help: "the token's id, from fieldpost token list")],
        options: [store, .json]
    ) { invocation, console in
        let connection = try existing(invocation)
        defer { connection.close() }
        try Tokens.revoke(connection, id: invocation.operands[0], now: ServerEnvironment.system.now)
        console.line(invocation.has("json") ? #"{"ok":true}"# : "Revoked \(invocation.operands[0]).")
        return .done
    }

    private static func existing(_ invocation: Invocation) throws -> Connection {
        let path = try StoreAddress(try invocation.required("store")).path
        let connection = try Connection(path: path, mode: .readWrite)
        guard try connection.scalar("SELECT 1 FROM sqlite_schema WHERE name = 'fieldpost_tokens'") != nil
        else {
            throw Failure(
                "not_a_store",
                "The file is no server's store; give the path that serve uses.",
                exit: .unavailable
            )
        }
        let environment = ServerEnvironment.system
        try ServerCore.openForTokens(connection, now: environment.now, random: environment.random)
        return connection
    }
}

/// What `--store` names.
struct StoreAddress: Equatable {
    let path: String

    init(_ text: String) throws {
        if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
            throw Failure(
                "unsupported",
                "A store on PostgreSQL is not built yet; give a path or sqlite:PATH.",
                exit: .unavailable
            )
        }
        path = text.hasPrefix("sqlite:") ? String(text.dropFirst("sqlite:".count)) : text
        if path.isEmpty { throw UsageError("--store names no file; give a path or sqlite:PATH.") }
    }
}

extension Tokens.Listed {
    private var scopeNames: [String] {
        switch scopes {
        case .all: ["*"]
        case .only(let names): names.sorted()
        }
    }

    fileprivate var json: JSON {
        [
            "id": .string(id), "name": .string(name), "tenant": .string(tenant.text), "role": .string(role),
            "scopes": .array(scopeNames.map(JSON.string)), "account": .string(account),
            "created_at": .integer(createdAt.milliseconds),
            "revoked_at": revokedAt.map { .integer($0.milliseconds) } ?? .null,
        ]
    }

    fileprivate var line: String {
        let state = revokedAt == nil ? "" : "  revoked"
        let who = account.isEmpty ? "" : "/\(account)"
        return "\(id)  \(role)  \(tenant.text)\(who)  \(scopeNames.joined(separator: ","))  \(name)\(state)"
    }
}
