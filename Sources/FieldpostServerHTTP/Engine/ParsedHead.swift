import Glibc

/// A request head that passed every rule, with what the engine itself needs from it.
///
/// Strict where two readers of the same bytes could disagree about where a request ends (RFC 9112, 11.2): one Host, one
/// plain Content-Length or one `chunked`, never both, no folded line, no blank before a colon, origin form only.
struct ParsedHead {
    enum Framing: Equatable {
        case none
        case length(Int)
        case chunked
    }

    var head: HTTPRequestHead
    private(set) var framing = Framing.none
    /// HTTP/1.0: no chunked answers, no `100 Continue`, closed after the answer unless asked otherwise.
    private(set) var isVersion10 = false
    private(set) var keepsAlive = true
    private(set) var expectsContinue = false
    private var hostCount = 0
    private var asksClose = false

    /// Reads the lines of a head, each with its CR LF.
    init(lines: UnsafeRawBufferPointer, limits: HTTPLimits) throws(RequestRefusal) {
        head = HTTPRequestHead(method: "", path: "/")
        var start = try readRequestLine(lines)
        keepsAlive = !isVersion10
        head.headers.reserveCapacity(8)
        while start < lines.count {
            start = try readField(lines, from: start)
            guard head.headers.count <= limits.headerCount else { throw .headTooLarge }
        }
        guard hostCount == 1 || (isVersion10 && hostCount == 0) else {
            throw .malformed("A request needs exactly one Host header.")
        }
        if asksClose { keepsAlive = false }
        if isVersion10 { expectsContinue = false }
    }

    private mutating func readRequestLine(_ lines: UnsafeRawBufferPointer) throws(RequestRefusal) -> Int {
        let wrong = RequestRefusal.malformed("The request line is malformed.")
        guard let methodEnd = lines.index(of: .space, from: 0), methodEnd > 0,
            let targetEnd = lines.index(of: .space, from: methodEnd + 1),
            let lineEnd = lines.index(of: .carriageReturn, from: targetEnd + 1),
            lines[lineEnd + 1] == .lineFeed,
            lines[0..<methodEnd].allSatisfy(\.isHTTPToken)
        else { throw wrong }
        try readVersion(UnsafeRawBufferPointer(rebasing: lines[targetEnd + 1..<lineEnd]))
        let target = lines[methodEnd + 1..<targetEnd]
        guard target.first == UInt8(ascii: "/") else {
            throw .malformed("The request target does not begin with a slash.")
        }
        guard target.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "#") }) else { throw wrong }
        head.method = lines.text(0..<methodEnd)
        if let mark = target.firstIndex(of: UInt8(ascii: "?")) {
            head.path = lines.text(target.startIndex..<mark)
            head.query = lines.text(mark + 1..<targetEnd)
        } else {
            head.path = lines.text(target.indices)
        }
        return lineEnd + 2
    }

    private mutating func readVersion(_ version: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard version.count == 8, version.starts(with: "HTTP/".utf8), version[6] == UInt8(ascii: "."),
            let major = version[5].hexadecimalValue, let minor = version[7].hexadecimalValue, major < 10,
            minor < 10
        else { throw .malformed("The request line does not end with an HTTP version.") }
        guard major == 1, minor < 2 else {
            throw RequestRefusal(status: 505, reason: "This server speaks HTTP/1.1 and HTTP/1.0.")
        }
        isVersion10 = minor == 0
    }

    /// Reads the field line that begins at `start` and returns where the next one begins.
    private mutating func readField(_ lines: UnsafeRawBufferPointer, from start: Int) throws(RequestRefusal)
        -> Int
    {
        guard let lineEnd = lines.index(of: .carriageReturn, from: start), lines[lineEnd + 1] == .lineFeed,
            let colon = lines.index(of: UInt8(ascii: ":"), from: start), colon > start, colon < lineEnd,
            lines[start..<colon].allSatisfy(\.isHTTPToken)
        else { throw .malformed("A header line is malformed.") }
        var value = colon + 1..<lineEnd
        while let first = lines[value].first, first == .space || first == .tab { value.removeFirst() }
        while let last = lines[value].last, last == .space || last == .tab { value.removeLast() }
        guard lines[value].allSatisfy(\.isHTTPFieldValue) else {
            throw .malformed("A header contains a control character.")
        }
        try interpret(
            name: UnsafeRawBufferPointer(rebasing: lines[start..<colon]),
            value: UnsafeRawBufferPointer(rebasing: lines[value])
        )
        head.headers.append((lines.text(start..<colon), lines.text(value)))
        return lineEnd + 2
    }

    private mutating func interpret(
        name: UnsafeRawBufferPointer,
        value: UnsafeRawBufferPointer
    ) throws(RequestRefusal) {
        // The length is compared first: most fields match none of these.
        switch name.count {
        case 4 where name.isEqual("host"): try readHost(value)
        case 6 where name.isEqual("expect"): try readExpect(value)
        case 10 where name.isEqual("connection"): readConnection(value)
        case 14 where name.isEqual("content-length"): try readContentLength(value)
        case 17 where name.isEqual("transfer-encoding"): try readTransferEncoding(value)
        default: break
        }
    }

    private mutating func readHost(_ value: UnsafeRawBufferPointer) throws(RequestRefusal) {
        hostCount += 1
        guard !value.isEmpty, value.allSatisfy({ $0.isHTTPToken || ":[]".utf8.contains($0) }) else {
            throw .malformed("The Host header is malformed.")
        }
    }

    private mutating func readExpect(_ value: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard value.isEqual("100-continue") else {
            throw RequestRefusal(status: 417, reason: "The only expectation known here is 100-continue.")
        }
        expectsContinue = true
    }

    private mutating func readConnection(_ value: UnsafeRawBufferPointer) {
        for option in value.split(separator: UInt8(ascii: ",")) {
            let name = UnsafeRawBufferPointer(rebasing: option.trimmingBlanks)
            if name.isEqual("close") { asksClose = true }
            if name.isEqual("keep-alive") { keepsAlive = true }
        }
    }

    private mutating func readContentLength(_ value: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard framing == .none else { throw .malformed("The length of the body is given twice.") }
        // Eighteen digits cannot overflow.
        guard !value.isEmpty, value.count <= 18, value.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else {
            throw .malformed("Content-Length is not a plain number.")
        }
        framing = .length(value.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
    }

    private mutating func readTransferEncoding(_ value: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard framing == .none else { throw .malformed("The length of the body is given twice.") }
        guard !isVersion10 else { throw .malformed("HTTP/1.0 has no Transfer-Encoding.") }
        guard value.isEqual("chunked") else {
            throw RequestRefusal(status: 501, reason: "The only transfer coding known here is chunked.")
        }
        framing = .chunked
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func index(of byte: UInt8, from start: Int) -> Int? {
        guard let baseAddress, start < count,
            let found = memchr(baseAddress + start, Int32(byte), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - baseAddress
    }

    fileprivate func text(_ range: Range<Int>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: self[range]), as: UTF8.self)
    }

    /// Whether these bytes are `lowercase`, whatever their case.
    fileprivate func isEqual(_ lowercase: StaticString) -> Bool {
        count == lowercase.utf8CodeUnitCount
            && indices.allSatisfy { self[$0].asciiLowercased == lowercase.utf8Start[$0] }
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate var trimmingBlanks: Self {
        var trimmed = self
        while let first = trimmed.first, first == .space || first == .tab { trimmed.removeFirst() }
        while let last = trimmed.last, last == .space || last == .tab { trimmed.removeLast() }
        return trimmed
    }
}
