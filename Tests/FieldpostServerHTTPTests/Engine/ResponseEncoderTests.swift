import Testing

@testable import FieldpostServerHTTP

@Suite struct ResponseEncoderTests {
    @Test(arguments: [
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    ])
    func `dates are as HTTP wants them`(unixTime: Int, text: String) {
        #expect(HTTPDate.text(unixTime: unixTime) == text)
    }

    @Test func `a head has status, date, headers and length`() {
        let response = HTTPResponse(status: 404, headers: [("X-A", "b")], body: .bytes([1, 2]))

        #expect(
            encode(response)
                == "HTTP/1.1 404 Not Found\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-A: b\r\nContent-Length: 2\r\n\r\n"
        )
    }

    @Test func `a value cannot start a header of its own`() {
        let response = HTTPResponse(status: 200, headers: [("X-A", "b\r\nSet-Cookie: c\0")])

        #expect(encode(response).contains("\r\nX-A: b  Set-Cookie: c \r\n"))
    }

    @Test func `framing headers given by a handler are left out`() {
        let owned = ["date", "Content-length", "TRANSFER-ENCODING", "Connection"]

        let text = encode(HTTPResponse(status: 200, headers: owned.map { ($0, "wrong") }))

        #expect(!text.contains("wrong"))
    }

    @Test(arguments: [204, 304]) func `an answer that must not have a body has no length`(status: Int) {
        #expect(!encode(HTTPResponse(status: status, body: .bytes([1]))).contains("Content-Length"))
    }

    private func encode(_ response: HTTPResponse) -> String {
        var output: [UInt8] = []
        ResponseEncoder.appendHead(
            of: response,
            framing: response.framing(isVersion10: false),
            closes: false,
            dateLine: ResponseEncoder.dateLine(unixTime: 0),
            to: &output
        )
        return String(decoding: output, as: UTF8.self)
    }
}
