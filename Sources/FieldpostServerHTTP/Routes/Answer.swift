internal import FieldpostCore
internal import FieldpostGzip

/// An answer before it is encoded for its client.
struct Answer {
    var status = 200
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var contentType = "application/json"

    /// A JSON body.
    static func json(_ body: [UInt8], status: Int = 200) -> Answer { Answer(status: status, body: body) }

    /// A problem document.
    static func problem(_ problem: Problem) -> Answer {
        var answer = Answer(
            status: problem.status,
            body: problem.bytes(),
            contentType: "application/problem+json"
        )
        if let seconds = problem.retryAfterSeconds { answer.headers.append(("Retry-After", String(seconds))) }
        return answer
    }

    /// Below this a compressed answer saves nothing worth a client's time.
    private static let smallestCompressed = 1_024

    /// The HTTP answer to a client that accepts what `acceptEncoding` says.
    ///
    /// A large body is compressed, which takes a while: not on the loop's thread.
    func response(acceptEncoding: String?) -> HTTPResponse {
        var headers = headers
        headers.append(("Fieldpost-Protocol", String(WireLimits.protocolVersion)))
        headers.append(("Cache-Control", "no-store"))
        var body = body
        if !body.isEmpty {
            headers.append(("Content-Type", contentType))
            headers.append(("Vary", "Accept-Encoding"))
            if body.count > Answer.smallestCompressed, Answer.acceptsGzip(acceptEncoding) {
                // Level 1: a third of the time of level 6 for a few percent more bytes.
                body = Gzip.compress(body, level: 1)
                headers.append(("Content-Encoding", "gzip"))
            }
        }
        return HTTPResponse(status: status, headers: headers, body: .bytes(body))
    }

    /// Whether `Accept-Encoding` names gzip with a weight above zero.
    static func acceptsGzip(_ header: String?) -> Bool {
        guard let header else { return false }
        return header.split(separator: ",").contains { item in
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
            guard let name = parts.first, name == "gzip" || name == "*" else { return false }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) }
            return (weight ?? 1) > 0
        }
    }
}
