import Foundation
import Testing

@testable import FieldpostServerHTTP

@Suite struct HTTPServerRequestTests {
    @Test(arguments: Strictness.table) func `a refused request is answered and the connection closed`(
        line: Strictness
    ) async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)

            client.send(line.request)
            let text = try await client.textUntilClosed()

            #expect(text.hasPrefix("HTTP/1.1 \(line.status) "))
            #expect(text.contains("\r\nConnection: close\r\n"))
            #expect(text.components(separatedBy: "Date: ").count == 2)
        }
    }

    @Test(arguments: [true, false])
    func `a hundred requests at once are answered in order`(inline: Bool) async throws {
        let service = TestService { request in
            if !inline { await Task.yield() }
            return .text(request.head.path)
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send((0..<100).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())

            for number in 0..<100 {
                #expect(try await client.answer().body == "/\(number)")
            }
        }
    }

    @Test func `a chunked body may come byte by byte with trailers`() async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)
            let request =
                "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "5;x=y\r\nfirst\r\n1\r\n \r\n6\r\nsecond\r\n0\r\nDigest: z\r\n\r\n"

            for byte in request.utf8 { client.send([byte]) }
            let answer = try await client.answer()
            client.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(answer.body == "POST /a first second")
            #expect(try await client.answer().body == "GET /next ")
        }
    }

    @Test func `a client that asks first is told to continue`() async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)

            client.send("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.answer().status == 100)
            client.send("abc")

            #expect(try await client.answer().body == "PUT /a abc")
        }
    }

    @Test func `a client that asks first is refused before it sends`() async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)

            client.send("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")

            #expect(try await client.answer().status == 413)
            #expect(try await client.textUntilClosed() == "")
        }
    }

    @Test func `a plan can refuse a request and the connection goes on when there is no body`() async throws {
        let service = TestService(
            planned: { $0.path == "/no" ? .reject(.text("no", status: 401)) : .collect(max: 10) },
            handled: TestService.echo.handled
        )
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET /no HTTP/1.1\r\nHost: x\r\n\r\nGET /yes HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(try await client.answer().status == 401)
            #expect(try await client.answer().body == "GET /yes ")
        }
    }

    @Test func `HTTP 1.0 is closed after the answer unless asked otherwise`() async throws {
        try await withServer { address, _ in
            let plain = try RawClient(address)
            let keeping = try RawClient(address)

            plain.send("GET /a HTTP/1.0\r\n\r\n")
            keeping.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            let text = try await plain.textUntilClosed()
            _ = try await keeping.answer()
            keeping.send("GET /b HTTP/1.0\r\n\r\n")

            #expect(text.hasSuffix("\r\n\r\nGET /a "))
            #expect(try await keeping.answer().body == "GET /b ")
        }
    }

    @Test func `HTTP 1.0 gets a stream without chunks`() async throws {
        let service = TestService { _ in
            HTTPResponse(status: 200, body: .stream { try await $0.write("all") })
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

            #expect(try await client.textUntilClosed().hasSuffix("Connection: close\r\n\r\nall"))
        }
    }

    @Test func `HEAD gets the head of the answer only`() async throws {
        let produced = Guarded(false)
        let service = TestService { request in
            guard request.head.path == "/stream" else { return .text("12345") }
            return HTTPResponse(status: 200, body: .stream { _ in produced.withLock { $0 = true } })
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n")
            client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(try await client.answer(toHead: true).headers["content-length"] == "5")
            #expect(try await client.answer(toHead: true).headers["transfer-encoding"] == "chunked")
            #expect(try await client.answer().body == "12345")
            #expect(produced.withLock { $0 } == false)
        }
    }

    @Test func `a client that asks for the end gets it`() async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)

            client.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

            #expect(try await client.answer().headers["connection"] == "close")
            #expect(try await client.textUntilClosed() == "")
        }
    }

    @Test(arguments: ["Content-Length: 5000000", "Transfer-Encoding: chunked"])
    func `a body that is too large is refused while the client still sends`(framing: String) async throws {
        try await withServer { address, _ in
            let client = try RawClient(address)
            let body = framing.hasPrefix("T") ? Array("4C4B40\r\n".utf8) : []

            client.send("POST / HTTP/1.1\r\nHost: x\r\n\(framing)\r\n\r\n")
            let sent = await client.sendAll(body + [UInt8](repeating: 97, count: 5_000_000))
            let answer = try await client.answer()

            #expect(sent == body.count + 5_000_000)
            #expect(answer.status == 413)
        }
    }

    @Test func `a large answer and a file arrive whole`() async throws {
        let size = 3_000_000
        let path = NSTemporaryDirectory() + "fieldpost-http-\(UUID().uuidString)"
        defer { unlink(path) }
        let content = Data((0..<size).map { UInt8(ascii: "a") + UInt8($0 % 26) })
        try content.write(to: URL(fileURLWithPath: path))
        let service = TestService { request in
            guard request.head.path == "/file" else {
                return HTTPResponse(status: 200, body: .bytes(Array(content)))
            }
            let file = HTTPFile(takingOver: open(path, O_RDONLY | O_CLOEXEC))
            return HTTPResponse(status: 200, body: .file(file, offset: 10, length: size - 10))
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address, receiveBuffer: 16 * 1024)

            client.send("GET /bytes HTTP/1.1\r\nHost: x\r\n\r\nGET /file HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(Data(try await client.answer().body.utf8) == content)
            #expect(Data(try await client.answer().body.utf8) == content.dropFirst(10))
        }
    }
}
