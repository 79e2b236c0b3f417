public import FieldpostServer

/// Serves the Fieldpost protocol over HTTP/1.1.
///
/// The whole of an app's own server:
///
///     let server = try await SQLiteServer(path: "shop.db", schema: schema, intents: ["payment.settle": settle])
///     let http = FieldpostHTTPServer(server: server, listen: .init(host: "0.0.0.0", port: 8080)) { print($0) }
///     print("listening on \(try http.start())")
///     …
///     await http.stop(grace: .seconds(10))
///     await server.close()
///
/// TLS belongs to a proxy in front.
public final class FieldpostHTTPServer: Sendable {
    /// Where a server listens.
    public struct Address: Sendable, Hashable, CustomStringConvertible {
        /// An IPv4 or IPv6 address, or `localhost`.
        public var host: String
        /// The port; 0 asks for a free one.
        public var port: UInt16

        /// An address of the given parts.
        public init(host: String = "127.0.0.1", port: UInt16 = 8080) {
            self.host = host
            self.port = port
        }

        /// As it stands in a URL.
        public var description: String { HTTPServerAddress(host: host, port: port).description }
    }

    private let address: Address
    private let http: HTTPServer

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - server: What it serves; the caller closes it after ``stop(grace:)``.
    ///   - listen: Where.
    ///   - threads: Threads that move bytes; one is enough for tens of thousands of requests a second.
    ///   - eventStreams: Devices that may listen for changes at once; further ones are told to come again later, and pull
    ///     now and then. All connections together are at most 10,000.
    ///   - log: Takes one JSON object for each line: requests, committed operations, failures. It is called on the threads
    ///     that serve and must return quickly. Tokens and payloads never reach it.
    public init(
        server: SQLiteServer,
        listen: Address = Address(),
        threads: Int = 1,
        eventStreams: Int = 8_000,
        log: @escaping @Sendable (_ line: String) -> Void = { _ in }
    ) {
        address = listen
        http = HTTPServer(
            service: Routes(
                server: server,
                log: RequestLog(write: log),
                clock: .system,
                eventStreams: eventStreams
            ),
            threads: threads
        )
    }

    /// Takes the address and begins to serve.
    ///
    /// - Returns: The address with its real port.
    /// - Throws: An error whose description names the remedy: the address is taken, forbidden or not this machine's.
    public func start() throws -> Address {
        let bound = try http.listen(host: address.host, port: address.port)
        http.start()
        return Address(host: bound.host, port: bound.port)
    }

    /// Accepts nobody any more, finishes what runs and cuts what is left after `grace`.
    public func stop(grace: Duration = .seconds(10)) async { await http.stop(grace: grace) }
}
