internal import FieldpostCore
internal import FieldpostServer
internal import FieldpostServerHTTP

/// `fieldpost serve`.
enum ServeCommand {
    static let spec = CommandSpec(
        path: ["serve"],
        summary: "Serve devices over HTTP, on an SQLite file.",
        options: [
            .required("schema", "FILE", "the app's schema"),
            .required("store", "PATH", "where the data lives, made if absent; also as sqlite:PATH"),
            .optional(
                "listen",
                "HOST:PORT",
                "where to listen (default 127.0.0.1:8080; port 0 takes a free one)"
            ),
        ],
        notes: [
            #"Prints {"event":"listening","address":"127.0.0.1:8080"} once devices can connect; logs go to standard error, "#
                + "one JSON object a line. SIGTERM or Ctrl-C finishes what runs and ends with 0. TLS belongs to a proxy in "
                + "front.",
            "An older store is migrated; a newer one is refused with 65.",
        ]
    ) { invocation, console in
        let address = try ListenAddress(invocation["listen"] ?? "127.0.0.1:8080").address
        let path = try StoreAddress(try invocation.required("store")).path
        let schema = try Files.schema(try invocation.required("schema"))
        let stopped = await console.watchForStop()
        let server = try await SQLiteServer(path: path, schema: schema)
        let http = FieldpostHTTPServer(server: server, listen: address) { console.errorLine($0) }
        do {
            let bound = try http.start()
            console.line(JSON.object(["event": "listening", "address": .string(bound.description)]).text())
        } catch {
            await server.close()
            throw error
        }
        await stopped()
        await http.stop(grace: grace)
        await server.close()
        return .done
    }

    /// What runs may take so long after a signal; with closing the files it stays below ten seconds.
    private static let grace = Duration.seconds(8)
}

/// What `--listen` names.
struct ListenAddress {
    let address: FieldpostHTTPServer.Address

    /// `HOST:PORT`, `[IPv6]:PORT` or `:PORT`.
    init(_ text: String) throws(UsageError) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw UsageError(
                "--listen takes an address and a port, such as 127.0.0.1:8080.",
                command: "serve"
            )
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        address = FieldpostHTTPServer.Address(host: host.isEmpty ? "127.0.0.1" : host, port: port)
    }
}
