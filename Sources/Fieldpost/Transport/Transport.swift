public import FieldpostCore

/// Carries requests to a server.
///
/// The engine never learns which network library, or which server, it was.
///
/// A transport throws ``ExchangeFailure`` for everything that is not an answer that counts, and never retries by itself.
public protocol Transport: Sendable {
    /// Sends operations; returns one result for each.
    func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure) -> PushResponse

    /// Asks what became of operations, and has the server void those it does not know: should a request with one of them
    /// arrive later, it is refused.
    ///
    /// - Returns: one result for each; `nil` where the server can do no such thing, which is the default.
    func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?

    /// Asks for what changed since `cursor`; `nil` asks from the beginning.
    func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage

    /// Whether the server itself answers, rather than a portal or nobody.
    func probe(_ context: RequestContext) async -> Bool

    /// Listens to what the server says has changed since `cursor`; `nil` when this server says nothing by itself.
    func events(cursor: String?, _ context: RequestContext) -> ServerEvents?
}

extension Transport {
    /// `nil`: this server says nothing by itself.
    public func events(cursor: String?, _ context: RequestContext) -> ServerEvents? { nil }
}

extension Transport {
    /// A server that voids nothing: what it may have is sent again until it answers.
    public func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?
    { nil }
}

/// Operations on their way: the fixed bytes of our own protocol, and the same as values.
public struct OutgoingPush: Sendable {
    /// The JSON body of `POST /v1/push`.
    public let body: [UInt8]

    /// A push with this body.
    public init(body: [UInt8]) { self.body = body }

    /// The operations by group, read from ``body``.
    public func request() throws(WireError) -> PushRequest { try PushRequest(bytes: body) }
}

/// Who asks, and when.
public struct RequestContext: Sendable {
    /// The bearer token, if someone is signed in.
    public var token: String?
    /// The identity of this installation.
    public var device: String
    /// The app's schema version.
    public var schema: Int
    /// The time, for dates in answers.
    public var now: Timestamp
    /// Random bits for a probe's nonce.
    public var nonce: UInt64
    /// The server's name for the account that the file belongs to, once it is known; a token of another is refused.
    public var account: String?

    /// A context of the given parts.
    public init(
        token: String?,
        device: String,
        schema: Int,
        now: Timestamp,
        nonce: UInt64 = 0,
        account: String? = nil
    ) {
        self.token = token
        self.device = device
        self.schema = schema
        self.now = now
        self.nonce = nonce
        self.account = account
    }
}
