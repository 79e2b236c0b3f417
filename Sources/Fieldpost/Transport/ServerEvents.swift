internal import FieldpostCore

/// What a server says by itself, while it is listened to.
public enum ServerEvent: Equatable, Sendable {
    /// The server listens back: from now on nothing is missed.
    case opened
    /// Something in the scopes of this credential is new since the cursor.
    case changed
    /// Whoever loses the server is to wait about so many milliseconds before he comes again.
    case retry(milliseconds: Int64)
}

/// What a server says; it ends when the server ends it, and fails with an ``ExchangeFailure``.
public typealias ServerEvents = AsyncThrowingStream<ServerEvent, any Error>

/// Reads server-sent events (HTML, 9.2.6) from bytes that come in any pieces.
struct EventParser {
    /// One thing that was read.
    enum Item: Equatable {
        case event(name: String, data: String)
        case retry(milliseconds: Int64)
    }

    /// A line longer than this is no event of ours.
    private static let longestLine = 8_192

    private var line: [UInt8] = []
    private var name = ""
    private var data: [String] = []
    private var isAfterReturn = false
    private var isFirstLine = true

    /// Takes in the next bytes; what they complete.
    ///
    /// - Throws: for a line longer than any that a server of ours sends.
    mutating func take(_ bytes: [UInt8]) throws(ExchangeFailure) -> [Item] {
        var items: [Item] = []
        for byte in bytes {
            defer { isAfterReturn = byte == 0x0D }
            switch byte {
            // The second half of one line end.
            case 0x0A where isAfterReturn: break
            case 0x0A, 0x0D: if let item = endLine() { items.append(item) }
            default:
                if line.count >= Self.longestLine { throw .unreachable("the server's events are malformed") }
                line.append(byte)
            }
        }
        return items
    }

    private mutating func endLine() -> Item? {
        var text = String(decoding: line, as: UTF8.self)
        line.removeAll(keepingCapacity: true)
        if isFirstLine, text.hasPrefix("\u{FEFF}") { text.removeFirst() }
        isFirstLine = false
        if text.isEmpty { return dispatch() }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? parts[1] : ""
        if value.hasPrefix(" ") { value.removeFirst() }
        switch parts[0] {
        case "event": name = String(value)
        case "data": data.append(String(value))
        case "retry":
            return RetryAfter.digits(String(value)).map { .retry(milliseconds: $0) }
        // A comment, or a field that means nothing here.
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> Item? {
        defer { (name, data) = ("", []) }
        if data.isEmpty { return nil }
        return .event(name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
    }
}
