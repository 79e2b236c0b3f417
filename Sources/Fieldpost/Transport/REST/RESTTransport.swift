public import FieldpostCore
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Speaks to a REST server that is not Fieldpost's, as a ``RESTProfile`` says.
///
///     let profile = RESTProfile.kinto(server: url, bucket: "shop", tables: ["notes"])
///     let transport = try RESTTransport(profile: profile, store: store)
///     let engine = SyncEngine(store: store, transport: transport) { _ in "ayu:secret" }
///
/// One request for each operation, in order. Exactly once holds as far as the server lets it: an operation is sent with
/// the same bytes until it is settled, a lost answer is recognised by comparing the record with what was sent, and an
/// `Idempotency-Key: {operation}` header serves servers that know it.
///
/// What such a server cannot give: a transaction of several rows is not atomic (those after a failed one are not sent,
/// those before it stay), counters and sets are not merged (a schema that has them is refused), and an edit that was
/// applied, lost its answer and was overwritten by another device is taken for a conflict.
public final class RESTTransport: Transport {
    private let profile: RESTProfile
    private let schema: Schema
    private let knowledge: RESTKnowledge
    private let environment: Environment
    private let loader: Loader

    /// How long one push may go on, in milliseconds, well within the time that the right to send lasts.
    private static let longestPush: Int64 = 20_000

    /// A transport for `store`.
    ///
    /// - Parameters:
    ///   - profile: how the server's API maps to operations.
    ///   - store: what is synced; its settled versions and bases are read for conditions.
    ///   - stall: how long a request may go without a byte moving.
    /// - Throws: ``RESTProfileError`` naming every place where the profile does not fit the store's schema.
    public convenience init(
        profile: RESTProfile,
        store: Store,
        stall: Duration = .seconds(8)
    ) throws(RESTProfileError) {
        try self.init(
            profile: profile,
            schema: store.schema,
            knowledge: RESTKnowledge(store),
            environment: store.environment,
            stall: stall
        )
    }

    package init(
        profile: RESTProfile,
        schema: Schema,
        knowledge: RESTKnowledge = RESTKnowledge(),
        environment: Environment = .live,
        stall: Duration = .seconds(8)
    ) throws(RESTProfileError) {
        try profile.validate(for: schema)
        self.profile = profile
        self.schema = schema
        self.knowledge = knowledge
        self.environment = environment
        loader = Loader(stall: stall, sleep: environment.sleep)
    }

    deinit { loader.invalidate() }

    /// Sends the operations, one request each; results that are missing are not settled.
    public func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse
    {
        let groups: [OperationGroup]
        do { groups = try push.request().groups } catch {
            throw .invalid(Problem("malformed", status: 400, detail: "the body is no push: \(error)"))
        }
        var work = RESTPush(
            profile: profile,
            schema: schema,
            knowledge: knowledge,
            now: context.now,
            load: { [self] request throws(ExchangeFailure) in try await load(request, context) },
            health: { [self] in await isHealthy(context) }
        )
        let (start, environment) = (environment.now().milliseconds, environment)
        let results = try await work.send(groups) {
            let spent = environment.now().milliseconds - start
            return (0..<Self.longestPush).contains(spent)
        }
        var response = PushResponse(results: results, serverTime: context.now)
        response.calmSeconds = work.calmSeconds
        return response
    }

    /// Asks the tables' lists, one page a call, for what is newer than `cursor`.
    public func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        guard let place = cursor.map({ RESTCursor($0) }) ?? RESTCursor() else { throw .resyncRequired }
        let pull = RESTPull(profile: profile, schema: schema)
        guard let (table, target) = pull.request(place, now: context.now) else {
            return PullPage(changes: [], cursor: place.text, more: false, serverTime: context.now)
        }
        let answer = try await load("GET", target, [:], nil, context)
        return try pull.page(answer, place, table, now: context.now)
    }

    /// Asks the profile's health path, or the base: whether a server answers that is neither a portal nor ill.
    public func probe(_ context: RequestContext) async -> Bool {
        if let isHealthy = await isHealthy(context) { return isHealthy }
        guard let answer = try? await load("GET", .below(""), [:], nil, context) else { return false }
        return answer.status < 300
            || answer.status >= 400 && !(answer.headers["content-type"]?.contains("html") ?? false)
    }

    private func isHealthy(_ context: RequestContext) async -> Bool? {
        guard let health = profile.health else { return nil }
        guard let answer = try? await load("GET", .below(health), [:], nil, context) else { return false }
        return answer.status == 200 && RESTValues.json(answer) != nil
    }

    private func load(_ request: RESTRequest, _ context: RequestContext) async throws(ExchangeFailure)
        -> HTTPAnswer
    {
        try await load(request.method, .below(request.path), request.headers, request.body, context)
    }

    private func load(
        _ method: String,
        _ target: RESTTarget,
        _ headers: [String: String],
        _ body: [UInt8]?,
        _ context: RequestContext
    ) async throws(ExchangeFailure) -> HTTPAnswer {
        guard let url = profile.url(target) else {
            throw .misconfigured("the profile's path makes no address")
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if let body {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(body)
        }
        for (name, value) in profile.headers.merging(headers, uniquingKeysWith: { $1 }) {
            request.setValue(
                value.replacingOccurrences(of: "{token}", with: context.token ?? ""),
                forHTTPHeaderField: name
            )
        }
        if let token = context.token, let value = profile.authorization.header(token) {
            request.setValue(value, forHTTPHeaderField: "Authorization")
        }
        return try await loader.load(request)
    }
}

extension RESTProfile {
    /// The path of the base, without a slash at its end.
    var basePath: String {
        let path = base.path(percentEncoded: true)
        return path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// The address of a request; always of the base's own server.
    func url(_ target: RESTTarget) -> URL? {
        guard let scheme = base.scheme, let host = base.host(percentEncoded: true) else { return nil }
        let port = base.port.map { ":\($0)" } ?? ""
        switch target {
        case .below(let path): return URL(string: "\(scheme)://\(host)\(port)\(basePath)\(path)")
        case .absolute(let path): return URL(string: "\(scheme)://\(host)\(port)\(path)")
        }
    }
}

extension RESTProfile.Authorization {
    func header(_ token: String) -> String? {
        switch self {
        case .bearer: "Bearer \(token)"
        case .basic: "Basic \(Base64.encode(Array(token.utf8)))"
        case .none: nil
        }
    }
}
