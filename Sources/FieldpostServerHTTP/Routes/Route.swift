/// What a request asks for, by method and path.
enum Route: String, CaseIterable {
    case push = "/v1/push"
    case status = "/v1/operations/status"
    case pull = "/v1/pull"
    case events = "/v1/events"
    case probe = "/v1/probe"
    case schema = "/v1/schema"
    case health = "/healthz"
    case ready = "/readyz"

    /// The methods it answers; HEAD is GET without a body.
    var methods: [String] {
        switch self {
        case .push, .status: ["POST"]
        // A stream without its body is nothing.
        case .events: ["GET"]
        case .pull, .probe, .schema, .health, .ready: ["GET", "HEAD"]
        }
    }

    /// Whether it asks for a token.
    var needsToken: Bool {
        switch self {
        case .push, .status, .pull, .events, .schema: true
        case .probe, .health, .ready: false
        }
    }
}

/// The parameters of a query string.
struct Query {
    private let parameters: [(name: String, value: String)]

    init(_ text: String) {
        parameters = text.split(separator: "&").map { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Query.decoded(pair[0]), pair.count > 1 ? Query.decoded(pair[1]) : "")
        }
    }

    /// The first value called `name`; an empty one counts as absent.
    subscript(name: String) -> String? {
        parameters.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    /// Percent escapes resolved; what is no escape stays as it is.
    private static func decoded(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) || text.utf8.contains(UInt8(ascii: "+")) else {
            return String(text)
        }
        let bytes = Array(text.utf8)
        var out: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = UInt8(String(decoding: bytes[index + 1...index + 2], as: UTF8.self), radix: 16)
            {
                out.append(value)
                index += 3
            } else {
                out.append(bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
                index += 1
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
