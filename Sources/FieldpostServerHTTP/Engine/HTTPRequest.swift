/// The head of one request, as the client sent it.
///
/// Nothing is percent-decoded: routes decode what they understand. Bytes that are not UTF-8 arrive as U+FFFD.
package struct HTTPRequestHead: Sendable {
    package var method: String
    /// The target before `?`; always begins with `/`.
    package var path: String
    /// The target after the first `?`, or empty.
    package var query: String
    /// In the order sent, names in the client's own spelling, values without surrounding blanks.
    package var headers: [(name: String, value: String)]
    /// The client's address without its port, numeric; IPv4 in dotted form even on a dual-stack socket.
    package var remoteAddress: String

    package init(
        method: String,
        path: String,
        query: String = "",
        headers: [(name: String, value: String)] = [],
        remoteAddress: String = ""
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.remoteAddress = remoteAddress
    }

    /// The first value of a header, whatever the case of its name.
    package func header(_ name: String) -> String? {
        headers.first { $0.name.isEqualIgnoringASCIICase(name) }?.value
    }
}

/// What the server does with a request's body, decided from the head alone.
///
/// The decision comes before any body byte is read and before `100 Continue` is sent.
package enum BodyPlan: Sendable {
    /// Gathers the body in memory and answers 413 as soon as it must exceed `max` bytes.
    case collect(max: Int)
    /// Starts the handler at once and hands it the body as it arrives, reading no further while more than
    /// `highWater` bytes wait for the handler.
    case stream(highWater: Int)
    /// Answers without a handler and without reading the body.
    case reject(HTTPResponse)
}

/// One request, as its handler gets it.
package struct HTTPRequest: Sendable {
    package var head: HTTPRequestHead
    /// The whole body under ``BodyPlan/collect(max:)``, else empty.
    package var body: [UInt8]
    /// The body as it arrives under ``BodyPlan/stream(highWater:)``, else `nil`.
    package var stream: BodyStream?

    package init(head: HTTPRequestHead, body: [UInt8] = [], stream: BodyStream? = nil) {
        self.head = head
        self.body = body
        self.stream = stream
    }
}

extension String {
    /// Equality as HTTP defines it for field names: only A–Z fold.
    func isEqualIgnoringASCIICase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension UInt8 {
    var asciiLowercased: UInt8 { self &- 65 < 26 ? self | 0x20 : self }
}
