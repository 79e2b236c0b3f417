public import FieldpostCore
internal import FieldpostSQLite

/// A server on SQLite files: one for each tenant, the main one at the path itself.
///
/// It holds the files and decides nothing: each call moves to the right file and thread and runs `ServerCore` there. One
/// process at a time may own a path; other programs may read and write the tables beside it.
///
///     let server = try await SQLiteServer(path: "shop.db", schema: schema)
///     let http = FieldpostHTTPServer(server: server, listen: .init(port: 8080))
///     let address = try await http.start()
public final class SQLiteServer: Sendable {
    /// The schema served.
    public let schema: Schema
    /// Where the time and the randomness come from.
    public let environment: ServerEnvironment
    private let tenants: TenantDirectory
    private let main: TenantStore

    /// Opens the main tenant's file: creates it, upgrades an older one, repairs its triggers.
    ///
    /// - Parameters:
    ///   - path: Where the main tenant lives; tenant `T` lives in `PATH-T`.
    ///   - schema: The app's tables.
    ///   - intents: What devices may ask for by name.
    ///   - environment: The clock and the randomness.
    /// - Throws: ``ServerError`` when the file or the schema is refused; a store error when the file cannot be used.
    public init(
        path: String,
        schema: Schema,
        intents: [String: IntentHandler] = [:],
        environment: ServerEnvironment = .system
    ) async throws {
        self.schema = schema
        self.environment = environment
        tenants = TenantDirectory { tenant in
            try TenantStore(
                path: path,
                tenant: tenant,
                schema: schema,
                intents: intents,
                environment: environment
            )
        }
        main = try await tenants.store(.main)
    }

    /// Finishes what runs and closes every file; every later call throws ``ServerError/Code/closed``.
    public func close() async { await tenants.close() }

    // MARK: Tokens

    /// What `token` allows, or `nil` when it is unknown or revoked.
    public func authenticate(_ token: String) async throws -> Credential? {
        try await main.readers.read { connection in try Tokens.authenticate(connection, token: token) }
    }

    /// Makes a token and returns it; it is not kept and cannot be shown again.
    ///
    /// - Parameters:
    ///   - name: What people call it, such as `Tablet 3`.
    ///   - tenant: Whose database it opens.
    ///   - role: `device`, `console` or `admin`.
    ///   - scopes: Whose rows it reaches.
    ///   - account: Whose it is. A device's file takes tokens of one account only; tokens that name none are all one.
    /// - Returns: The secret, and the id by which it is revoked.
    /// - Throws: ``ServerError`` with `invalidRole`, `invalidScope` or `invalidAccount`.
    public func createToken(
        name: String,
        tenant: TenantName = .main,
        role: String = "device",
        scopes: Credential.Scopes,
        account: String = ""
    ) async throws -> (token: String, id: String) {
        let environment = environment
        return try await main.commits.write { connection in
            try Tokens.create(
                connection,
                name: name,
                tenant: tenant,
                role: role,
                scopes: scopes,
                account: account,
                now: environment.now,
                random: environment.random
            )
        }
    }

    /// Makes a token useless from the next request on.
    ///
    /// - Throws: ``ServerError/Code/unknownToken``.
    public func revokeToken(id: String) async throws {
        let now = environment.now
        try await main.commits.write { connection in try Tokens.revoke(connection, id: id, now: now) }
    }

    // MARK: Requests

    /// Applies the body of a push and returns once it is committed.
    ///
    /// - Throws: ``Problem`` when the request as a whole is refused; a store error, and then it may be sent again.
    package func push(_ body: [UInt8], credential: Credential, device: Device?) async throws -> PushResponse {
        let request = try await SQLiteServer.parse(body)
        let store = try await tenants.store(credential.tenant)
        let now = environment.now
        let (response, scopes) = try await store.commits.write { connection in
            try store.writeSightings(on: connection)
            let before = try Feed.version(connection)
            let response = try store.core.apply(
                request,
                on: connection,
                credential: credential,
                device: device,
                now: now
            )
            return (response, try Feed.scopes(connection, changedSince: before))
        }
        store.news.publish(scopes, by: device)
        return response
    }

    /// Tells the credential, from now on, when something in its scopes is new; at once when something is since `cursor`.
    ///
    /// - Returns: The listener, and what keeps it known.
    package func listen(_ credential: Credential, device: Device?, cursor: String?) async throws -> (
        NewsListener, NewsLease
    ) {
        let store = try await tenants.store(credential.tenant)
        let listener = NewsListener(credential, device: device)
        // Known before it is looked whether something is new already, so that nothing falls between.
        let lease = store.news.add(listener)
        let hasNews = try await store.readers.read { connection in
            try Feed(store.core, connection, credential: credential).hasNews(since: cursor)
        }
        if hasNews { listener.post(.changed) }
        return (listener, lease)
    }

    /// Reading eight megabytes of JSON takes a while; never on the thread that serves connections.
    @concurrent private static func parse(_ body: [UInt8]) async throws(Problem) -> PushRequest {
        try ServerCore.request(body)
    }

    /// One page of the feed as the body of an answer.
    ///
    /// - Throws: ``Problem`` `resync-required`, or a store error.
    package func pull(cursor: String?, limit: Int?, credential: Credential, device: Device?) async throws
        -> [UInt8]
    {
        let store = try await tenants.store(credential.tenant)
        let now = environment.now
        let (body, next) = try await store.readers.read { connection in
            let page = try store.core.page(
                cursor: cursor,
                limit: limit,
                on: connection,
                credential: credential,
                device: device,
                now: now
            )
            return (page.bytes(), page.cursor)
        }
        store.saw(device, credential: credential, cursor: store.core.version(of: next), at: now)
        return body
    }

    /// What became of operations; `void` settles those that have not arrived.
    ///
    /// - Throws: ``Problem`` when the request is refused; a store error.
    package func status(_ query: StatusRequest, credential: Credential, device: Device?) async throws
        -> PushResponse
    {
        let store = try await tenants.store(credential.tenant)
        let now = environment.now
        if query.void {
            return try await store.commits.write { connection in
                try store.core.status(query, on: connection, credential: credential, device: device, now: now)
            }
        }
        return try await store.readers.read { connection in
            try store.core.status(query, on: connection, credential: credential, device: device, now: now)
        }
    }

    /// Whether the main tenant's file can be read and its writer takes turns.
    package func isReady() async -> Bool {
        do {
            try await main.readers.read { connection in
                _ = try connection.scalar("SELECT version FROM fieldpost_sequence")
            }
            try await main.commits.write { _ in }
            return true
        } catch {
            return false
        }
    }

    /// How many transactions were committed in the main tenant, and how many pushes they held.
    package var commitStatistics: (commits: Int, writes: Int) { main.commits.statistics }
}

/// The open tenants.
///
/// Opening a file blocks, so it happens on the actor's own queue; a tenant that is open is found without a turn there.
private actor TenantDirectory {
    private let open: @Sendable (TenantName) throws -> TenantStore
    private let executor = SerialQueueExecutor(label: "fieldpost.tenants")
    private let stores = Guarded<[TenantName: TenantStore]>([:])
    private let isClosed = Guarded(false)

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(open: @escaping @Sendable (TenantName) throws -> TenantStore) { self.open = open }

    nonisolated func store(_ tenant: TenantName) async throws -> TenantStore {
        if isClosed.withLock({ $0 }) { throw ServerError(.closed, "The server is closed.") }
        if let store = stores.withLock({ $0[tenant] }) { return store }
        return try await opened(tenant)
    }

    private func opened(_ tenant: TenantName) throws -> TenantStore {
        if let store = stores.withLock({ $0[tenant] }) { return store }
        let store = try open(tenant)
        stores.withLock { $0[tenant] = store }
        return store
    }

    func close() async {
        isClosed.withLock { $0 = true }
        let open = stores.withLock { stores in
            defer { stores = [:] }
            return stores
        }
        for store in open.values { await store.close() }
    }
}
