import Testing

@testable import FieldpostServerHTTP

@Suite struct HTTPServerStreamTests {
    @Test func `a body is handed over as it arrives`() async throws {
        let service = TestService(planned: { _ in .stream(highWater: 1_000) }) { request in
            var count = 0
            do {
                while let piece = try await request.stream?.next() { count += piece.count }
                return .text("\(count)")
            } catch {
                return .text("cut", status: 500)
            }
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
            _ = await client.sendAll([UInt8](repeating: 1, count: 2_000_000))

            #expect(try await client.answer().body == "2000000")
        }
    }

    @Test func `a body that ends while its handler is slow still ends`() async throws {
        let mayRead = Signal()
        let service = TestService(
            planned: { $0.path == "/slow" ? .stream(highWater: 0) : .collect(max: 0) },
            handled: { request in
                guard let stream = request.stream else { return .text("") }
                await mayRead.wait()
                var body: [UInt8] = []
                while let piece = try? await stream.next() { body += piece }
                return .text(String(decoding: body, as: UTF8.self))
            }
        )
        try await withServer(service) { address, _ in
            let client = try RawClient(address)
            let other = try RawClient(address)

            client.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
            // The loop takes what is ready in order: when this is answered, the body above has come.
            other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            _ = try await other.answer()
            mayRead.fire()

            #expect(try await client.answer().body == "abc")
        }
    }

    @Test func `a handler may answer before the body has come`() async throws {
        let service = TestService(planned: { _ in .stream(highWater: 1_000) }) { _ in
            .text("enough", status: 413)
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
            let answer = try await client.answer()
            _ = await client.sendAll([UInt8](repeating: 1, count: 1_000_000))

            #expect(answer.status == 413)
            #expect(answer.headers["connection"] == "close")
            #expect(try await client.textUntilClosed() == "")
        }
    }

    @Test func `a handler that does not read stops the client`() async throws {
        let mayRead = Signal()
        let service = TestService(planned: { _ in .stream(highWater: 1_000) }) { request in
            await mayRead.wait()
            var count = 0
            while let piece = try? await request.stream?.next() { count += piece.count }
            return .text("\(count)")
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)
            let size = 30_000_000
            let sent = Guarded(false)

            client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n")
            let sending = Task {
                _ = await client.sendAll([UInt8](repeating: 1, count: size))
                sent.withLock { $0 = true }
            }
            // Another client's requests show that the loop has had its turns.
            for _ in 0..<20 {
                let other = try RawClient(address)
                other.send("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n")
                _ = try await other.answer()
            }
            let finishedEarly = sent.withLock { $0 }
            mayRead.fire()
            await sending.value

            #expect(!finishedEarly)
            #expect(try await client.answer().body == "\(size)")
        }
    }

    @Test func `pieces of a streamed answer go out at once`() async throws {
        let mayEnd = Signal()
        let service = TestService { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try await writer.write("one")
                    await mayEnd.wait()
                    try await writer.write("two")
                }
            )
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            let first = try await client.text(through: "one\r\n")
            mayEnd.fire()

            #expect(first.hasSuffix("\r\n\r\n3\r\none\r\n"))
            #expect(try await client.text(through: "0\r\n\r\n") == "3\r\ntwo\r\n0\r\n\r\n")
        }
    }

    @Test(arguments: [true, false]) func `a client that leaves cancels its streamed answer`(
        waits: Bool
    ) async throws {
        let cancelled = Signal()
        let service = TestService { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    defer { cancelled.fire() }
                    try await writer.write("begun")
                    if waits {
                        try await Task.sleep(for: .seconds(3_600))
                    } else {
                        while true { try await writer.write([UInt8](repeating: 0, count: 10_000)) }
                    }
                }
            )
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            _ = try await client.text(through: "begun")
            client.leave()

            await cancelled.wait()
        }
    }

    @Test func `a client that leaves cancels the handler it waits for`() async throws {
        let begun = Signal()
        let cancelled = Signal()
        let service = TestService { _ in
            begun.fire()
            try? await Task.sleep(for: .seconds(3_600))
            cancelled.fire()
            return .text("late")
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            client.leave()

            await cancelled.wait()
        }
    }

    @Test func `a client that leaves in the middle of its body fails the stream`() async throws {
        let outcome = Guarded("")
        let done = Signal()
        let service = TestService(planned: { _ in .stream(highWater: 1_000) }) { request in
            do {
                while try await request.stream?.next() != nil {}
                outcome.withLock { $0 = "complete" }
            } catch {
                outcome.withLock { $0 = "\(type(of: error))" }
            }
            done.fire()
            return .text("")
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
            client.leave()
            await done.wait()

            #expect(outcome.withLock { $0 } == "CancellationError")
        }
    }

    @Test func `an answer whose stream fails is cut without its end mark`() async throws {
        struct Failure: Error {}
        let service = TestService { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try await writer.write("part")
                    throw Failure()
                }
            )
        }
        try await withServer(service) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(try await client.textUntilClosed().hasSuffix("part\r\n"))
        }
    }
}
