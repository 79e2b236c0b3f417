/// Writes the head of an answer and the frames of a chunked one.
///
/// Pure: it appends to the buffer that it is given.
enum ResponseEncoder {
    /// How the client learns where the body ends.
    enum Framing: Equatable {
        case length(Int)
        case chunked
        /// With the end of the connection: HTTP/1.0 knows nothing else for a body of unknown length.
        case close
        /// There is none: 204 and 304 must not have a body nor its length.
        case none
    }

    static let continueHead = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
    static let chunkEnd = Array("\r\n".utf8)
    static let lastChunk = Array("0\r\n\r\n".utf8)

    static func appendHead(
        of response: HTTPResponse,
        framing: Framing,
        closes: Bool,
        dateLine: [UInt8],
        to output: inout [UInt8]
    ) {
        append("HTTP/1.1 ", to: &output)
        append(response.status, to: &output)
        output.append(.space)
        append(reason(response.status), to: &output)
        append("\r\n", to: &output)
        output.append(contentsOf: dateLine)
        for (name, value) in response.headers where !isOwnedByServer(name) {
            appendText(name, to: &output)
            append(": ", to: &output)
            appendText(value, to: &output)
            append("\r\n", to: &output)
        }
        switch framing {
        case .length(let count):
            append("Content-Length: ", to: &output)
            append(count, to: &output)
            append("\r\n", to: &output)
        case .chunked: append("Transfer-Encoding: chunked\r\n", to: &output)
        case .close, .none: break
        }
        if closes { append("Connection: close\r\n", to: &output) }
        append("\r\n", to: &output)
    }

    static func dateLine(unixTime: Int) -> [UInt8] {
        Array("Date: \(HTTPDate.text(unixTime: unixTime))\r\n".utf8)
    }

    static func appendChunkStart(size: Int, to output: inout [UInt8]) {
        output.append(contentsOf: String(size, radix: 16).utf8)
        append("\r\n", to: &output)
    }

    private static func isOwnedByServer(_ name: String) -> Bool {
        switch name.utf8.count {
        case 4: name.isEqualIgnoringASCIICase("Date")
        case 10: name.isEqualIgnoringASCIICase("Connection")
        case 14: name.isEqualIgnoringASCIICase("Content-Length")
        case 17: name.isEqualIgnoringASCIICase("Transfer-Encoding")
        default: false
        }
    }

    private static func append(_ text: StaticString, to output: inout [UInt8]) {
        output.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private static func append(_ number: Int, to output: inout [UInt8]) {
        if number >= 10 { append(number / 10, to: &output) }
        output.append(UInt8(ascii: "0") + UInt8(number % 10))
    }

    private static func appendText(_ text: String, to output: inout [UInt8]) {
        let start = output.count
        output.append(contentsOf: text.utf8)
        for index in start..<output.count where !output[index].isHTTPFieldValue { output[index] = .space }
    }

    private static func reason(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        // A reason phrase says nothing (RFC 9112, 4), but some clients refuse a line without one.
        default: "Status"
        }
    }
}
