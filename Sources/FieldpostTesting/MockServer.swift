public import Fieldpost
public import FieldpostCore
internal import FieldpostSQLite
public import FieldpostServer
internal import Foundation

/// The real server in the test's own process, without a network: a transport for any number of stores.
///
/// It keeps everything in memory and lives as long as the object. Merging, checks, scopes and exactly-once are the
/// real ones; only bytes on a wire are missing.
///
///     let server = try MockServer(schema: schema)
///     let engine = SyncEngine(store: store, transport: server) { _ in "B1" }
///
/// A token is the name of a scope, or several with commas; ``everyScope`` reaches all; none is refused.
public final class MockServer: Transport, @unchecked Sendable {
    // Safe because: the connection and the counters are used under the lock alone.
    private let lock = NSLock()
    private let connection: Connection
    private let core: ServerCore
    private var loseNext = 0
    private var isOffline = false
    private var counts = (pushes: 0, pulls: 0)

    /// The token that reaches every scope.
    public static let everyScope = "*"

    /// A server with an empty store.
    ///
    /// - Throws: ``ServerError`` for a schema that a server cannot serve.
    public init(schema: Schema, intents: [String: IntentHandler] = [:], seed: UInt64 = 1) throws {
        connection = try Connection(path: ":memory:")
        try connection.run("PRAGMA foreign_keys = ON")
        var random = SeededRandom(seed: seed)
        core = try ServerCore.open(
            connection,
            schema: schema,
            intents: intents,
            now: Timestamp(milliseconds: 1_764_460_800_000)
        ) { random.bytes($0) }
    }

    /// Does the next `count` pushes and loses their answers.
    public func loseAnswers(_ count: Int = 1) { lock.withLock { loseNext = count } }

    /// Whether nobody reaches it.
    public func setOffline(_ isOffline: Bool) { lock.withLock { self.isOffline = isOffline } }

    /// Pushes and pulls that have reached it.
    public var requests: (pushes: Int, pulls: Int) { lock.withLock { counts } }

    /// The rows of a query on the server's own tables, for a test's expectations.
    public func query(_ sql: String, _ arguments: [Value] = []) throws -> [[Value]] {
        try lock.withLock { try connection.query(sql, arguments) }
    }

    /// Runs SQL on the server's tables, as another program or a console would.
    public func execute(_ sql: String, _ arguments: [Value] = []) throws {
        try lock.withLock { try connection.run(sql, arguments) }
    }

    // MARK: Transport

    /// Applies operations, and loses the answer where ``loseAnswers(_:)`` says so.
    public func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse
    {
        try AnswerTable.push(
            try answer(context) { server, credential, device in
                server.counts.pushes += 1
                let bytes = try server.core.push(
                    push.body,
                    on: server.connection,
                    credential: credential,
                    device: device,
                    now: context.now
                )
                guard server.loseNext > 0 else { return bytes }
                server.loseNext -= 1
                throw ExchangeFailure.unreachable("the answer was lost")
            },
            now: context.now
        )
    }

    /// What became of the operations; those it does not know never shall.
    public func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?
    {
        try AnswerTable.push(
            try answer(context) { server, credential, device in
                try server.connection.transaction {
                    try server.core.status(
                        StatusRequest(ids: operations, void: true),
                        on: server.connection,
                        credential: credential,
                        device: device,
                        now: context.now
                    )
                }.bytes()
            },
            now: context.now
        )
    }

    /// One page of the feed.
    public func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        try AnswerTable.pull(
            try answer(context) { server, credential, device in
                server.counts.pulls += 1
                return try server.core.pull(
                    cursor: cursor,
                    on: server.connection,
                    credential: credential,
                    device: device,
                    now: context.now
                )
            },
            now: context.now
        )
    }

    /// Whether the server is not set offline.
    public func probe(_ context: RequestContext) async -> Bool { lock.withLock { !isOffline } }

    private func answer(
        _ context: RequestContext,
        _ body: (MockServer, Credential, Device?) throws -> [UInt8]
    ) throws(ExchangeFailure) -> HTTPAnswer {
        var headers = ["Fieldpost-Protocol": "\(WireLimits.protocolVersion)"]
        guard let credential = Self.credential(context.token) else {
            return HTTPAnswer(status: 401, headers: headers)
        }
        headers["Fieldpost-Account"] = credential.accountID
        let device = Device(id: context.device, schema: context.schema)
        lock.lock()
        defer { lock.unlock() }
        if isOffline { throw .unreachable("the server is offline") }
        do {
            return HTTPAnswer(status: 200, headers: headers, body: try body(self, credential, device))
        } catch let failure as ExchangeFailure {
            throw failure
        } catch let problem as Problem {
            return HTTPAnswer(status: problem.status, headers: headers, body: problem.bytes())
        } catch {
            return HTTPAnswer(status: 500, headers: headers)
        }
    }

    private static func credential(_ token: String?) -> Credential? {
        guard let token, !token.isEmpty else { return nil }
        if token == everyScope { return Credential(tokenID: "mock", scopes: .all) }
        return Credential(tokenID: "mock", scopes: .only(Set(token.split(separator: ",").map(String.init))))
    }
}
