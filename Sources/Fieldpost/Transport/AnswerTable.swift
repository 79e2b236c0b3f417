public import FieldpostCore

/// One HTTP answer, read whole.
public struct HTTPAnswer: Equatable, Sendable {
    /// The status.
    public var status: Int
    /// Header fields by lower-case name.
    public var headers: [String: String]
    /// The body, unpacked.
    public var body: [UInt8]

    /// An answer of the given parts; names of `headers` are lowered.
    public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = Dictionary(
            headers.map { ($0.key.lowercased(), $0.value) },
            uniquingKeysWith: { first, _ in first }
        )
        self.body = body
    }
}

/// What each answer of a server means: the one table from status, header and body to what the device does.
///
/// Total: an answer it has no line for is a network failure, and never an acknowledgement.
public enum AnswerTable {
    /// The answer to a push.
    public static func push(_ answer: HTTPAnswer, now: Timestamp) throws(ExchangeFailure) -> PushResponse {
        try check(answer, now: now)
        do {
            var response = try PushResponse(bytes: answer.body)
            response.calmSeconds = calm(answer)
            response.account = answer.headers["fieldpost-account"]
            return response
        } catch {
            throw .unreachable("the answer to the push is malformed: \(error)")
        }
    }

    /// The answer to a pull.
    public static func pull(_ answer: HTTPAnswer, now: Timestamp) throws(ExchangeFailure) -> PullPage {
        try check(answer, now: now)
        do {
            var page = try PullPage(bytes: answer.body)
            page.calmSeconds = calm(answer)
            page.account = answer.headers["fieldpost-account"]
            return page
        } catch {
            throw .unreachable("the page is malformed: \(error)")
        }
    }

    /// The answer to a wish to listen, before any event.
    public static func events(_ answer: HTTPAnswer, now: Timestamp) throws(ExchangeFailure) {
        try check(answer, now: now)
        guard answer.headers["content-type"]?.hasPrefix("text/event-stream") ?? false else {
            throw .unreachable("the answer is no stream of events")
        }
    }

    /// The answer to a probe with `nonce`: 204 and the nonce, which a portal cannot fake by accident.
    public static func probe(_ answer: HTTPAnswer, nonce: String) -> Bool {
        answer.status == 204 && answer.headers["fieldpost-probe"] == nonce
    }

    /// Seconds the server asks to be left in peace after a success.
    public static func calm(_ answer: HTTPAnswer) -> Int? {
        answer.headers["backoff"].flatMap(RetryAfter.whole)
    }

    /// Returns for an answer of 200 that a Fieldpost server gave.
    private static func check(_ answer: HTTPAnswer, now: Timestamp) throws(ExchangeFailure) {
        let version = answer.headers["fieldpost-protocol"]
        let isHTML = answer.headers["content-type"]?.contains("html") ?? false
        if [408, 425, 429, 502, 503, 504].contains(answer.status) {
            throw .busy(retryAfterSeconds: RetryAfter.seconds(answer.headers["retry-after"], now: now))
        }
        // Whatever else it says, it says in another protocol.
        if let version, Int(version).map({ (1...WireLimits.protocolVersion).contains($0) }) != true {
            throw .needsUpgrade
        }
        switch answer.status {
        case 413: throw .tooLarge
        case 404 where version != nil || !isHTML, 405 where version != nil || !isHTML:
            throw .misconfigured("the server has no such endpoint (\(answer.status)); correct its address")
        case 300..<400:
            throw .unreachable("the request was redirected (\(answer.status)): a portal or a wrong address")
        default: break
        }
        guard version != nil else {
            throw .unreachable("something that is not a Fieldpost server answered (\(answer.status))")
        }
        if answer.status != 200 { throw failure(answer) }
    }

    private static func failure(_ answer: HTTPAnswer) -> ExchangeFailure {
        let problem = Problem(bytes: answer.body, status: answer.status)
        let code = problem?.code ?? ""
        switch answer.status {
        case 401: return .unauthenticated
        case 403 where code == "token-expired": return .unauthenticated
        case 403 where code == "other-account": return .otherAccount
        case 403:
            return .forbidden(problem?.detail ?? "the server refuses this credential and gives no reason")
        case 409 where code == "device-reset": return .deviceReset
        case 409 where code == "server-behind": return .serverBehind
        case 409: return .inProgress
        case 410: return .resyncRequired
        case 426: return .needsUpgrade
        case 400 where code == "protocol-too-new": return .needsUpgrade
        case 400..<500:
            return .invalid(problem ?? Problem("refused", status: answer.status, detail: "no reason given"))
        case 500...: return .serverError(answer.status)
        default: return .unreachable("an answer with status \(answer.status) means nothing here")
        }
    }
}
