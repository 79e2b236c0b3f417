internal import FieldpostCore
internal import FieldpostCrypto
internal import FieldpostGzip
internal import FieldpostServer

/// The protocol's routes on top of a server: it reads requests, asks the server, and writes answers.
///
/// What can be refused by the head alone is refused before a byte of the body is read.
struct Routes: HTTPService {
    let server: SQLiteServer
    let log: RequestLog
    let clock: HTTPServerClock
    let streams: EventStreams
    private let schema: [UInt8]

    /// What the engine refuses is a problem document like any other refusal.
    func refusal(status: Int, reason: String) -> HTTPResponse {
        let code = status == 413 ? "body-too-large" : status == 408 ? "timeout" : "malformed"
        return Answer.problem(Problem(code, status: status, detail: reason)).response(acceptEncoding: nil)
    }

    /// - Parameters:
    ///   - server: What it serves.
    ///   - log: Where requests are written down.
    ///   - clock: The time.
    ///   - eventStreams: Streams of events that may be open at once.
    init(server: SQLiteServer, log: RequestLog, clock: HTTPServerClock, eventStreams: Int = 8_000) {
        self.server = server
        streams = EventStreams(limit: eventStreams, sleep: clock.sleep)
        self.log = log
        self.clock = clock
        schema = server.schema.json.bytes()
    }

    // MARK: Head

    func plan(_ head: HTTPRequestHead) -> BodyPlan {
        let started = clock.now()
        do throws(Refusal) {
            let route = try Routes.route(head)
            try Routes.check(head, route)
            guard route == .push || route == .status else { return .collect(max: 0) }
            guard head.header("Content-Length") != nil else {
                // A body of unknown length is counted here, because the engine's own refusal has none of our headers.
                return .stream(highWater: WireLimits.compressedBytes)
            }
            return .collect(max: WireLimits.compressedBytes)
        } catch {
            let context = RequestContext(head: head, id: requestID(), started: started)
            return .reject(finish(context, error.answer, compress: false))
        }
    }

    /// A refusal by the head.
    private struct Refusal: Error {
        var answer: Answer

        init(_ problem: Problem, headers: [(name: String, value: String)] = []) {
            answer = .problem(problem)
            answer.headers += headers
        }

        init(_ code: String, _ status: Int, _ detail: String, headers: [(name: String, value: String)] = []) {
            self.init(Problem(code, status: status, detail: detail), headers: headers)
        }
    }

    private static func route(_ head: HTTPRequestHead) throws(Refusal) -> Route {
        guard let route = Route(rawValue: head.path) else {
            throw Refusal("not-found", 404, "There is nothing at this path.")
        }
        guard route.methods.contains(head.method) else {
            let allowed = route.methods.joined(separator: ", ")
            throw Refusal("method-not-allowed", 405, "Use \(allowed).", headers: [("Allow", allowed)])
        }
        return route
    }

    private static func check(_ head: HTTPRequestHead, _ route: Route) throws(Refusal) {
        if let text = head.header("Fieldpost-Protocol") {
            guard let version = Int(text), version > 0 else {
                throw Refusal("malformed", 400, "Fieldpost-Protocol is no version.")
            }
            guard version <= WireLimits.protocolVersion else {
                throw Refusal(
                    "protocol-too-new",
                    400,
                    "This server speaks protocol version \(WireLimits.protocolVersion)."
                )
            }
        }
        if route.needsToken, bearer(head) == nil { throw Refusal(.unauthenticated) }
        if let id = head.header("Fieldpost-Device"), Device(id: id) == nil {
            throw Refusal("malformed", 400, "Fieldpost-Device is no UUID.")
        }
        if let text = head.header("Fieldpost-Schema"), Int(text).map({ $0 > 0 }) != true {
            throw Refusal("malformed", 400, "Fieldpost-Schema is no version.")
        }
        if let coding = head.header("Content-Encoding")?.lowercased(), coding != "gzip", coding != "identity"
        {
            throw Refusal(
                "unsupported-encoding",
                415,
                "Send the body as gzip or as it is.",
                headers: [("Accept-Encoding", "gzip")]
            )
        }
        if let length = head.header("Content-Length").flatMap({ Int($0) }), length > route.maxBody {
            throw Refusal("body-too-large", 413, "A body here holds at most \(route.maxBody) bytes.")
        }
    }

    static func bearer(_ head: HTTPRequestHead) -> String? {
        guard let header = head.header("Authorization") else { return nil }
        let parts = header.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    // MARK: Requests

    func handle(_ request: HTTPRequest) async -> HTTPResponse {
        var context = RequestContext(head: request.head, id: requestID(), started: clock.now())
        do {
            guard let token = try await authenticate(request.head, &context) else {
                return await finishOffLoop(context, try await openAnswer(request.head))
            }
            if request.head.path == Route.events.rawValue {
                return try await events(request.head, token.text, token.credential, context)
            }
            let answer = try await answer(request, token.credential, &context)
            return await finishOffLoop(context, answer)
        } catch {
            let problem = Problem(failure: error)
            if problem.status >= 500 {
                log.failed(error, request: context.id, at: server.environment.milliseconds())
            }
            return await finishOffLoop(context, .problem(problem))
        }
    }

    /// Who asks; `nil` for what anybody may ask.
    private func authenticate(_ head: HTTPRequestHead, _ context: inout RequestContext) async throws -> (
        text: String, credential: Credential
    )? {
        guard Route(rawValue: head.path)?.needsToken ?? false else { return nil }
        guard let token = Routes.bearer(head), let credential = try await server.authenticate(token) else {
            throw Problem.unauthenticated
        }
        context.token = credential.tokenID
        context.account = credential.accountID
        if let bound = head.header("Fieldpost-Account"), bound != credential.accountID {
            throw Problem(
                "other-account",
                status: 403,
                detail: "The token belongs to another account than the device's file; sign in to that one."
            )
        }
        return (token, credential)
    }

    private func openAnswer(_ head: HTTPRequestHead) async throws -> Answer {
        switch Route(rawValue: head.path) {
        case .health: return .json(Array(#"{"status":"ok"}"#.utf8))
        case .ready: return await ready()
        case .probe: return try probe(head)
        default: throw Problem("not-found", status: 404, detail: "There is nothing at this path.")
        }
    }

    private func answer(
        _ request: HTTPRequest,
        _ credential: Credential,
        _ context: inout RequestContext
    ) async throws -> Answer {
        switch Route(rawValue: request.head.path) {
        case .push: return try await push(request, credential, &context)
        case .status: return try await status(request, credential, &context)
        case .pull: return try await pull(request.head, credential, context)
        default: return .json(schema)
        }
    }

    private func ready() async -> Answer {
        if await server.isReady() { return .json(Array(#"{"status":"ready"}"#.utf8)) }
        return .problem(
            Problem(
                "not-ready",
                status: 503,
                detail: "The store cannot be read or written now.",
                retryAfterSeconds: 5
            )
        )
    }

    /// Characters of a nonce: enough to be one of its kind, and nothing that means something in a header.
    private static let maxNonce = 128

    private func probe(_ head: HTTPRequestHead) throws(Problem) -> Answer {
        guard let nonce = Query(head.query)["nonce"], nonce.utf8.count <= Routes.maxNonce,
            nonce.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw Problem(
                "malformed",
                status: 400,
                detail: "Give a nonce of up to \(Routes.maxNonce) characters."
            )
        }
        return Answer(status: 204, headers: [("Fieldpost-Probe", nonce)])
    }

    private func push(
        _ request: HTTPRequest,
        _ credential: Credential,
        _ context: inout RequestContext
    ) async throws -> Answer {
        let body = try await body(of: request)
        let response = try await server.push(body, credential: credential, device: context.device)
        context.operations = response.results.count
        // Committed, and nobody told yet: a kill from here on is the one that loses an answer and no operation.
        let settled = response.results.filter {
            $0.status != .blocked && $0.status != .retry && $0.code != "group"
        }
        log.committed(
            settled.map(\.id),
            request: context.id,
            at: server.environment.milliseconds(),
            device: context.device?.id
        )
        return .json(response.bytes())
    }

    private func status(
        _ request: HTTPRequest,
        _ credential: Credential,
        _ context: inout RequestContext
    ) async throws -> Answer {
        let query = try StatusRequest(bytes: try await body(of: request))
        context.operations = query.ids.count
        return .json(try await server.status(query, credential: credential, device: context.device).bytes())
    }

    private func pull(_ head: HTTPRequestHead, _ credential: Credential, _ context: RequestContext)
        async throws -> Answer
    {
        let query = Query(head.query)
        var limit: Int?
        if let text = query["limit"] {
            guard let number = Int(text), number > 0 else {
                throw Problem("malformed", status: 400, detail: "The limit is no positive number.")
            }
            limit = number
        }
        return .json(
            try await server.pull(
                cursor: query["cursor"],
                limit: limit,
                credential: credential,
                device: context.device
            )
        )
    }

    // MARK: Bodies

    private func body(of request: HTTPRequest) async throws -> [UInt8] {
        var bytes = request.body
        if let stream = request.stream {
            for try await piece in stream {
                bytes += piece
                if bytes.count > WireLimits.compressedBytes {
                    throw Routes.tooLarge(WireLimits.compressedBytes)
                }
            }
        }
        guard request.head.header("Content-Encoding")?.lowercased() == "gzip" else { return bytes }
        return try await Routes.unpacked(bytes)
    }

    /// Takes up to a few tens of milliseconds, so never on the loop's thread.
    @concurrent private static func unpacked(_ bytes: [UInt8]) async throws -> [UInt8] {
        do { return try Gzip.decompress(bytes, limit: WireLimits.unpackedBytes) } catch {
            if error.code == .tooLarge { throw tooLarge(WireLimits.unpackedBytes) }
            throw Problem("malformed", status: 400, detail: "The body is no sound gzip.")
        }
    }

    private static func tooLarge(_ limit: Int) -> Problem {
        Problem(
            "body-too-large",
            status: 413,
            detail: "A body here holds at most \(limit) bytes; send fewer operations."
        )
    }

    // MARK: Ends

    private func requestID() -> String { Hex.encode(server.environment.random(8)) }

    @concurrent private func finishOffLoop(_ context: RequestContext, _ answer: Answer) async -> HTTPResponse
    {
        finish(context, answer, compress: true)
    }

    func finish(_ context: RequestContext, _ answer: Answer, compress: Bool) -> HTTPResponse {
        var answer = answer
        answer.headers.append(("Fieldpost-Request", context.id))
        if let account = context.account { answer.headers.append(("Fieldpost-Account", account)) }
        let response = answer.response(
            acceptEncoding: compress ? context.head.header("Accept-Encoding") : nil
        )
        log.answered(
            RequestLog.Entry(
                at: server.environment.milliseconds(),
                request: context.id,
                method: context.head.method,
                path: context.head.path,
                status: answer.status,
                duration: context.started.duration(to: clock.now()),
                device: context.device?.id,
                token: context.token,
                operations: context.operations
            )
        )
        return response
    }
}

/// What is known of a request while it is answered.
struct RequestContext {
    let head: HTTPRequestHead
    let id: String
    let started: ContinuousClock.Instant
    let device: Device?
    var token: String?
    /// The account of a credential that was accepted.
    var account: String?
    var operations: Int?

    init(head: HTTPRequestHead, id: String, started: ContinuousClock.Instant) {
        self.head = head
        self.id = id
        self.started = started
        device = head.header("Fieldpost-Device").flatMap {
            Device(id: $0, schema: head.header("Fieldpost-Schema").flatMap { Int($0) })
        }
    }
}

extension Route {
    /// The most bytes a body may have as sent.
    fileprivate var maxBody: Int {
        switch self {
        case .push, .status: WireLimits.compressedBytes
        case .pull, .events, .probe, .schema, .health, .ready: 0
        }
    }
}

extension Problem {
    /// Without `WWW-Authenticate`: at a challenge, the client's library may wait for ever for a password.
    fileprivate static let unauthenticated = Problem(
        "unauthenticated",
        status: 401,
        detail: "Send a valid token as Authorization: Bearer."
    )
}
