public import FieldpostCore
internal import FieldpostGzip
public import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Speaks to a Fieldpost server over HTTP, by `URLSession`.
///
/// It follows no redirect, keeps no cookie and no cache, and gives up when no byte has moved for a while; a slow link
/// that still moves is never cut off.
public final class HTTPTransport: Transport {
    /// How the transport behaves.
    public struct Settings: Sendable {
        /// How long a request may go without a byte moving.
        public var stall = Duration.seconds(8)
        /// Bodies longer than this are compressed.
        public var compressAbove = 1_024
        /// Rows asked for in one page.
        public var pageLimit = WireLimits.rowsPerPage

        /// The defaults.
        public init() {}
    }

    private let base: URL
    private let settings: Settings
    private let loader: Loader
    let sleep: @Sendable (Duration) async throws -> Void

    /// A transport to the server at `server`, such as `https://sync.example.com`.
    public init(server: URL, settings: Settings = Settings(), environment: Environment = .live) {
        base = server
        self.settings = settings
        sleep = environment.sleep
        loader = Loader(stall: settings.stall, sleep: environment.sleep)
    }

    deinit { loader.invalidate() }

    /// Sends operations to `POST /v1/push`.
    public func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse
    {
        var request = request("v1/push", [], context)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if push.body.count > settings.compressAbove {
            request.setValue("gzip", forHTTPHeaderField: "Content-Encoding")
            request.httpBody = Data(Gzip.compress(push.body))
        } else {
            request.httpBody = Data(push.body)
        }
        return try AnswerTable.push(try await loader.load(request), now: context.now)
    }

    /// Asks `POST /v1/operations/status`, voiding what the server does not know.
    public func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?
    {
        var request = request("v1/operations/status", [], context)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let ids = JSON.array(operations.map { .string($0.text) })
        request.httpBody = Data(JSON.object(["ids": ids, "void": true]).bytes())
        return try AnswerTable.push(try await loader.load(request), now: context.now)
    }

    /// Asks `GET /v1/pull` for a page.
    public func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        var query = [("limit", "\(settings.pageLimit)")]
        if let cursor { query.append(("cursor", cursor)) }
        return try AnswerTable.pull(
            try await loader.load(request("v1/pull", query, context)),
            now: context.now
        )
    }

    /// Asks `GET /v1/probe`, without the token.
    public func probe(_ context: RequestContext) async -> Bool {
        let (request, nonce) = probeRequest(context)
        guard let answer = try? await loader.load(request) else { return false }
        return AnswerTable.probe(answer, nonce: nonce)
    }

    func probeRequest(_ context: RequestContext) -> (request: URLRequest, nonce: String) {
        let nonce = String(context.nonce, radix: 16)
        var anonymous = context
        (anonymous.token, anonymous.account) = (nil, nil)
        return (request("v1/probe", [("nonce", nonce)], anonymous), nonce)
    }

    func request(_ path: String, _ query: [(String, String)], _ context: RequestContext) -> URLRequest {
        var url = base.appending(path: path)
        if !query.isEmpty { url.append(queryItems: query.map { URLQueryItem(name: $0, value: $1) }) }
        // Foundation leaves a `+` as it is, which servers read as a space: a cursor is opaque and may hold one.
        if var parts = URLComponents(url: url, resolvingAgainstBaseURL: false),
            let text = parts.percentEncodedQuery
        {
            parts.percentEncodedQuery = text.replacingOccurrences(of: "+", with: "%2B")
            url = parts.url ?? url
        }
        var request = URLRequest(url: url)
        if let token = context.token {
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        request.setValue(context.device, forHTTPHeaderField: "Fieldpost-Device")
        request.setValue("\(context.schema)", forHTTPHeaderField: "Fieldpost-Schema")
        request.setValue("\(WireLimits.protocolVersion)", forHTTPHeaderField: "Fieldpost-Protocol")
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if let account = context.account {
            request.setValue(account, forHTTPHeaderField: "Fieldpost-Account")
        }
        return request
    }
}
