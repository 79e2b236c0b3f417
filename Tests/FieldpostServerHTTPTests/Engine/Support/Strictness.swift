import Testing

/// A request that must be refused, and how.
struct Strictness: Sendable, CustomTestStringConvertible {
    let name: String
    let request: String
    var status = 400

    var testDescription: String { name }

    static let table: [Strictness] =
        heads + lengths + chunks

    private static let heads = [
        Strictness(name: "no Host", request: "GET / HTTP/1.1\r\n\r\n"),
        Strictness(name: "two Hosts", request: "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"),
        Strictness(name: "two Hosts in 1.0", request: "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
        Strictness(name: "empty Host", request: "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        Strictness(name: "Host with a slash", request: "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        Strictness(name: "bare LF after the request line", request: "GET / HTTP/1.1\nHost: x\r\n\r\n"),
        Strictness(name: "bare LF after a header", request: "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"),
        Strictness(name: "bare LF as the end", request: "GET / HTTP/1.1\r\nHost: x\r\n\n"),
        Strictness(name: "bare CR in a value", request: "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n"),
        Strictness(name: "CR CR LF", request: "GET / HTTP/1.1\r\nHost: x\r\r\n\r\n"),
        Strictness(name: "folded line", request: "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
        Strictness(name: "folded first line", request: "GET / HTTP/1.1\r\n Host: x\r\n\r\n"),
        Strictness(name: "blank before the colon", request: "GET / HTTP/1.1\r\nHost : x\r\n\r\n"),
        Strictness(name: "no colon", request: "GET / HTTP/1.1\r\nHost: x\r\nNothing\r\n\r\n"),
        Strictness(name: "empty name", request: "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"),
        Strictness(name: "NUL in a value", request: "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"),
        Strictness(name: "NUL in a name", request: "GET / HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n"),
        Strictness(name: "NUL in the target", request: "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "absolute form", request: "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "authority form", request: "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "asterisk form", request: "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "fragment", request: "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "blank in the target", request: "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "raw UTF-8 in the target", request: "GET /ü HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "two blanks", request: "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "no version", request: "GET /\r\nHost: x\r\n\r\n"),
        Strictness(name: "no method", request: " / HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "method with a colon", request: "G:T / HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "lower-case version", request: "GET / http/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "two empty lines first", request: "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        Strictness(name: "TLS hello", request: "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\n"),
        Strictness(name: "HTTP/2 preface", request: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 505),
        Strictness(name: "HTTP/1.2", request: "GET / HTTP/1.2\r\nHost: x\r\n\r\n", status: 505),
        Strictness(
            name: "unknown Expect",
            request: "GET / HTTP/1.1\r\nHost: x\r\nExpect: a\r\n\r\n",
            status: 417
        ),
    ]

    private static let lengths = [
        post("signed length", "Content-Length: +1\r\n\r\na"),
        post("negative length", "Content-Length: -1\r\n\r\na"),
        post("empty length", "Content-Length:\r\n\r\na"),
        post("hexadecimal length", "Content-Length: 0x1\r\n\r\na"),
        post("length with a blank", "Content-Length: 1 1\r\n\r\na"),
        post("list of lengths", "Content-Length: 1, 1\r\n\r\na"),
        post("length beyond all numbers", "Content-Length: 99999999999999999999\r\n\r\na"),
        post("two equal lengths", "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        post("two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        post("length, then chunked", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        post("chunked, then length", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"),
        post("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Strictness(
            name: "chunked in 1.0",
            request: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        post("other coding", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", status: 501),
        post("disguised coding", "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", status: 501),
    ]

    private static let chunks = [
        chunked("no size", "\r\n"),
        chunked("size is no number", "x\r\n"),
        chunked("signed size", "+1\r\na\r\n0\r\n\r\n"),
        chunked("prefixed size", "0x1\r\na\r\n0\r\n\r\n"),
        chunked("blank after the size", "1 \r\na\r\n0\r\n\r\n"),
        chunked("nine digits", "000000001\r\na\r\n0\r\n\r\n"),
        chunked("bare LF after the size", "1\na\r\n0\r\n\r\n"),
        chunked("NUL in an extension", "1;\0\r\na\r\n0\r\n\r\n"),
        chunked("bare CR in an extension", "1;a\rb\r\na\r\n0\r\n\r\n"),
        chunked("data too long", "1\r\nab\r\n0\r\n\r\n"),
        chunked("bare LF after the data", "1\r\na\n0\r\n\r\n"),
        chunked("bare LF as the end", "0\r\n\n"),
        chunked("folded trailer", "0\r\nA: b\r\n c\r\n\r\n"),
        chunked("trailer without a colon", "0\r\nA\r\n\r\n"),
        chunked("bare LF in a trailer", "0\r\nA: b\n\r\n"),
        chunked("NUL in a trailer", "0\r\nA: \0\r\n\r\n"),
    ]

    static let accepted = [
        "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nhOST:x:8080\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nEmpty:\r\nB: \u{e9}\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0003\r\n\r\nabc",
        "M-SEARCH /?a HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\n\r\n0A;x=\"y z\"\r\n0123456789\r\n0;q\r\nT: \r\n\r\n",
    ]

    private static func post(_ name: String, _ rest: String, status: Int = 400) -> Strictness {
        Strictness(name: name, request: "POST / HTTP/1.1\r\nHost: x\r\n\(rest)", status: status)
    }

    private static func chunked(_ name: String, _ body: String) -> Strictness {
        post("chunked: \(name)", "Transfer-Encoding: chunked\r\n\r\n\(body)")
    }
}
