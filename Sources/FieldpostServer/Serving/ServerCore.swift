package import FieldpostCore
package import FieldpostSQLite

/// The whole server of one tenant without threads, sockets or a clock: bytes in, bytes out, on a connection that it is lent.
///
/// The async server and the simulator both call it, so that whatever is decided, is decided here.
package struct ServerCore: Sendable {
    package let schema: Schema
    package let tenant: TenantName
    let tables: [String: TableAccess]
    let signingKey: [UInt8]
    let intents: [String: IntentHandler]

    /// Makes the file behind `connection` ready for `schema`: creates it, upgrades an older one, repairs its triggers.
    ///
    /// - Throws: ``ServerError`` when the file or the schema is refused, or a `StoreError`.
    package static func open(
        _ connection: Connection,
        schema: Schema,
        tenant: TenantName = .main,
        intents: [String: IntentHandler] = [:],
        now: Timestamp,
        random: (Int) -> [UInt8]
    ) throws -> ServerCore {
        let key = try withoutActuallyEscaping(random) { random in
            try StoreOpening(connection: connection, now: now, random: random).open(schema)
        }
        return ServerCore(schema, tenant, key, intents)
    }

    /// Creates what tokens need where there is no store yet; the schema comes with the first ``open(_:schema:tenant:intents:now:random:)``.
    package static func openForTokens(
        _ connection: Connection,
        now: Timestamp,
        random: (Int) -> [UInt8]
    ) throws {
        try withoutActuallyEscaping(random) { random in
            try StoreOpening(connection: connection, now: now, random: random).openForTokens()
        }
    }

    private init(_ schema: Schema, _ tenant: TenantName, _ key: [UInt8], _ intents: [String: IntentHandler]) {
        self.schema = schema
        self.tenant = tenant
        signingKey = key
        self.intents = intents
        tables = Dictionary(
            schema.tables.map { ($0.name, TableAccess($0, schema: schema)) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    // MARK: Push

    /// Applies a push in a transaction of its own; it has happened once this returns.
    ///
    /// - Throws: ``Problem`` when the request as a whole is refused, or a `StoreError`; nothing is then changed.
    package func push(
        _ body: [UInt8],
        on connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) throws -> [UInt8] {
        let request = try ServerCore.request(body)
        return try connection.transaction(.immediate) {
            try apply(request, on: connection, credential: credential, device: device, now: now)
        }.bytes()
    }

    /// Applies a push inside the caller's transaction.
    package func apply(
        _ request: PushRequest,
        on connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) throws -> PushResponse {
        let apply = Apply(self, connection, credential: credential, device: device, now: now)
        return PushResponse(results: try apply.push(request), serverTime: now)
    }

    /// Reads the body of a push.
    ///
    /// - Throws: ``Problem`` that names the place of the fault.
    package static func request(_ body: [UInt8]) throws(Problem) -> PushRequest {
        do { return try PushRequest(bytes: body) } catch {
            throw Problem("malformed", status: 400, detail: "The body is no push: \(error).")
        }
    }

    // MARK: Pull

    /// One page of the feed as bytes, from a read transaction of its own.
    ///
    /// - Throws: ``Problem`` `resync-required`, or a `StoreError`.
    package func pull(
        cursor: String?,
        limit: Int? = nil,
        on connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) throws -> [UInt8] {
        try connection.transaction(.deferred) {
            try page(
                cursor: cursor,
                limit: limit,
                on: connection,
                credential: credential,
                device: device,
                now: now
            )
        }.bytes()
    }

    /// One page of the feed, inside the caller's read transaction.
    package func page(
        cursor: String?,
        limit: Int? = nil,
        on connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) throws -> PullPage {
        let feed = Feed(self, connection, credential: credential)
        return try feed.page(cursor: cursor, limit: limit, device: device, now: now)
    }

    /// How far a device has read that was given `cursor`.
    func version(of cursor: String) -> Int64? { Cursor(cursor, key: signingKey)?.version }

    // MARK: What became of operations

    /// Answers `POST /v1/operations/status` inside the caller's transaction, which writes only for `void`.
    package func status(
        _ query: StatusRequest,
        on connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) throws -> PushResponse {
        let log = OperationLog(connection: connection, credential: credential, device: device, now: now)
        var results: [OperationResult] = []
        for id in query.ids {
            if let entry = try log.entry(id) {
                results.append(entry.result)
            } else if query.void {
                var result = OperationResult(id: id, status: .rejected)
                result.code = "voided"
                result.message = "It was withdrawn before it arrived."
                try log.void(id, result)
                results.append(result)
            }
        }
        return PushResponse(results: results, serverTime: now)
    }
}

/// A question about operations that may or may not have arrived.
package struct StatusRequest: Sendable {
    package var ids: [OperationID]
    /// Whether those that have not arrived never shall.
    package var void: Bool

    package init(ids: [OperationID], void: Bool = false) {
        self.ids = ids
        self.void = void
    }

    /// Reads a JSON body.
    ///
    /// - Throws: ``Problem`` `malformed`, or `too-many-operations`.
    package init(bytes: [UInt8]) throws(Problem) {
        guard let object = try? JSON(bytes: bytes, maxDepth: WireLimits.jsonDepth).object,
            let list = object["ids"]?.array
        else {
            throw Problem("malformed", status: 400, detail: "The body is not {\"ids\": [operation ids]}.")
        }
        guard list.count <= WireLimits.operationsPerPush else {
            throw Problem(
                "too-many-operations",
                status: 413,
                detail: "Ask for at most \(WireLimits.operationsPerPush) at once."
            )
        }
        let ids = list.compactMap { $0.string.flatMap { OperationID($0) } }
        guard ids.count == list.count else {
            throw Problem("malformed", status: 400, detail: "One of the ids is no UUID.")
        }
        self.init(ids: ids, void: object["void"]?.bool ?? false)
    }
}
