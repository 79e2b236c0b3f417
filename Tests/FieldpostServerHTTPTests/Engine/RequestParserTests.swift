import Testing

@testable import FieldpostServerHTTP

@Suite struct RequestParserTests {
    @Test func `a head is taken apart into method, path, query and headers`() throws {
        let transcript = Transcript.parsing("GET /a%20b?c=d?e HTTP/1.1\r\nHost: x\r\nX-Two:  a b\t\r\n\r\n")

        let head = try #require(transcript.heads.first?.head)
        #expect(head.method == "GET")
        #expect(head.path == "/a%20b")
        #expect(head.query == "c=d?e")
        #expect(head.header("x-TWO") == "a b")
        #expect(head.header("absent") == nil)
        #expect(transcript.lines.last == "end")
    }

    @Test(arguments: Strictness.table)
    func `a request that could be read in two ways is refused`(line: Strictness) {
        let transcript = Transcript.parsing(line.request)

        #expect(transcript.lines.last == "refused \(line.status)", "\(line.request.debugDescription)")
    }

    @Test(arguments: Strictness.accepted) func `what is merely unusual is accepted`(request: String) {
        let transcript = Transcript.parsing(request)

        #expect(transcript.lines.last == "end", "\(request.debugDescription)")
    }

    @Test(arguments: [1, 2, 3, 7]) func `any split of the bytes gives the same events`(seed: UInt64) {
        var random = SplitMix(state: seed)
        for request in Strictness.table.map(\.request) + Strictness.accepted + [Transcript.busyStream] {
            let whole = Transcript.parsing(request)
            #expect(Transcript.parsing(request, pieces: { 1 }) == whole, "\(request.debugDescription)")
            for _ in 0..<20 {
                let split = Transcript.parsing(request, pieces: { Int.random(in: 1...9, using: &random) })
                #expect(split == whole, "\(request.debugDescription)")
            }
        }
    }

    @Test func `no bytes make the parser trap or stand still`() {
        var random = SplitMix(state: 11)
        let seeds = Strictness.table.map(\.request) + Strictness.accepted + [Transcript.busyStream]
        for round in 0..<5_000 {
            var bytes = Array(seeds[round % seeds.count].utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = [0, 9, 10, 13, 32, 58, 59, 48, 255].randomElement(using: &random) ?? 0
            }
            let whole = Transcript.parsing(bytes, pieces: { bytes.count })
            let split = Transcript.parsing(bytes, pieces: { Int.random(in: 1...5, using: &random) })
            #expect(whole == split, "\(bytes)")
        }
    }

    @Test func `a head may have exactly as many bytes as the limit`() {
        let frame = "GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n"
        let fill = String(repeating: "a", count: HTTPLimits().headBytes - frame.utf8.count)
        let head = { (value: String) in "GET / HTTP/1.1\r\nHost: x\r\nA: \(value)\r\n\r\n" }

        #expect(Transcript.parsing(head(fill)).lines.last == "end")
        #expect(Transcript.parsing(head(fill + "a")).lines == ["refused 431"])
        #expect(Transcript.parsing(head(fill + "a"), pieces: { 1 }).lines == ["refused 431"])
    }

    @Test func `too many headers are refused`() {
        let headers = (0..<100).map { "H\($0): v\r\n" }.joined()

        let transcript = Transcript.parsing("GET / HTTP/1.1\r\nHost: x\r\n\(headers)\r\n")

        #expect(transcript.lines == ["refused 431"])
    }

    @Test func `a chunked body cannot carry endless extensions or trailers`() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        let long = String(repeating: "e", count: HTTPLimits().headBytes + 1)

        #expect(Transcript.parsing("\(head)1;\(long)\r\na\r\n0\r\n\r\n").lines.last == "refused 400")
        #expect(Transcript.parsing("\(head)0\r\nA: \(long)\r\n\r\n").lines.last == "refused 400")
    }

    @Test func `only HTTP/1.1 without close keeps the connection unasked`() throws {
        let keeps = { (text: String) in Transcript.parsing(text).heads.first?.keepsAlive }

        #expect(keeps("GET / HTTP/1.1\r\nHost: x\r\n\r\n") == true)
        #expect(keeps("GET / HTTP/1.1\r\nHost: x\r\nConnection: TE, Close\r\n\r\n") == false)
        #expect(keeps("GET / HTTP/1.1\r\nHost: x\r\nConnection: close, keep-alive\r\n\r\n") == false)
        #expect(keeps("GET / HTTP/1.0\r\n\r\n") == false)
        #expect(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") == true)
    }

    @Test func `a token is what RFC 9110 says`() {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        let allowed = Set("!#$%&'*+-.^_`|~0123456789\(letters)".utf8)

        for byte in UInt8.min...UInt8.max { #expect(byte.isHTTPToken == allowed.contains(byte), "\(byte)") }
    }
}

/// What a parser made of some bytes, with neighbouring body pieces joined.
struct Transcript: Equatable {
    private(set) var lines: [String] = []
    private(set) var heads: [ParsedHead] = []

    static let busyStream =
        "\r\nPOST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello\r\n\r\nxyGET /b?q HTTP/1.1\r\nHost: y\r\n\r\n"
        + "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n"
        + "5;a=\"b\"\r\nfirst\r\n00F\r\nfifteen letters\r\n0\r\nA: b\r\nC:\r\n\r\nGET /d HTTP/1.0\r\n\r\n"

    static func == (left: Transcript, right: Transcript) -> Bool { left.lines == right.lines }

    static func parsing(_ text: String, pieces: () -> Int = { .max }) -> Transcript {
        parsing(Array(text.utf8), pieces: pieces)
    }

    static func parsing(_ bytes: [UInt8], pieces: () -> Int) -> Transcript {
        var transcript = Transcript()
        var parser = RequestParser(limits: HTTPLimits())
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces()))
            rest = rest.dropFirst(piece.count)
            piece.withUnsafeBytes { input in
                var offset = 0
                while let event = parser.next(in: input, at: &offset) { transcript.append(event) }
                if offset != input.count { transcript.lines.append("left \(input.count - offset) bytes") }
            }
        }
        return transcript
    }

    private mutating func append(_ event: RequestParser.Event) {
        switch event {
        case .head(let parsed):
            let head = parsed.head
            lines.append("\(head.method) \(head.path) \(head.query) \(head.headers) \(parsed.framing)")
            heads.append(parsed)
        case .body(let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            if let last = lines.last, last.hasPrefix("body ") {
                lines[lines.count - 1] = last + text
            } else {
                lines.append("body " + text)
            }
        case .end: lines.append("end")
        case .refused(let refusal): lines.append("refused \(refusal.status)")
        }
    }
}

/// Numbers that are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
