import Glibc
import Testing

@testable import FieldpostServerHTTP

@Suite struct HTTPServerStopTests {
    @Test func `a graceful stop finishes what runs and closes what is idle`() async throws {
        let begun = Signal()
        let mayEnd = Signal()
        let service = TestService { request in
            if request.head.path == "/slow" {
                begun.fire()
                await mayEnd.wait()
            }
            return .text("done")
        }
        let server = HTTPServer(service: service)
        let address = try server.listen(host: "127.0.0.1", port: 0)
        server.start()
        let idle = try RawClient(address)
        let busy = try RawClient(address)
        idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await idle.answer()
        busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()

        async let stopped: Void = server.stop(grace: .seconds(20))
        let idleEnd = try await idle.textUntilClosed()
        mayEnd.fire()
        let answer = try await busy.answer()
        let busyEnd = try await busy.textUntilClosed()
        busy.leave()
        await stopped

        #expect(idleEnd == "")
        #expect(answer.body == "done")
        #expect(answer.headers["connection"] == "close")
        #expect(busyEnd == "")
        #expect(throws: RawClient.Broken.self) { try RawClient(address) }
        #expect(server.connectionCount == 0)
    }

    @Test func `a graceful stop ends an endless stream cleanly`() async throws {
        let service = TestService { _ in
            HTTPResponse(
                status: 200,
                body: .stream(.endless) { writer in
                    try await writer.write("event")
                    try await Task.sleep(for: .seconds(3_600))
                }
            )
        }
        let server = HTTPServer(service: service)
        let address = try server.listen(host: "127.0.0.1", port: 0)
        server.start()
        let client = try RawClient(address)
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await client.text(through: "event\r\n")

        async let stopped: Void = server.stop(grace: .seconds(20))
        let end = try await client.textUntilClosed()
        client.leave()
        await stopped

        #expect(end == "0\r\n\r\n")
    }

    @Test func `a stop does not wait longer than it may`() async throws {
        let begun = Signal()
        let cancelled = Signal()
        let service = TestService { _ in
            begun.fire()
            try? await Task.sleep(for: .seconds(3_600))
            cancelled.fire()
            return .text("late")
        }
        let server = HTTPServer(service: service)
        let address = try server.listen(host: "127.0.0.1", port: 0)
        server.start()
        let client = try RawClient(address)
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()

        await server.stop(grace: .milliseconds(20))

        await cancelled.wait()
        #expect(server.connectionCount == 0)
    }

    @Test func `a second stop hurries the first`() async throws {
        let begun = Signal()
        let server = HTTPServer(
            service: TestService { _ in
                begun.fire()
                try? await Task.sleep(for: .seconds(3_600))
                return .text("late")
            }
        )
        let address = try server.listen(host: "127.0.0.1", port: 0)
        server.start()
        let client = try RawClient(address)
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()

        async let first: Void = server.stop(grace: .seconds(3_600))
        async let second: Void = server.stop(grace: .zero)

        await first
        await second
        #expect(server.connectionCount == 0)
    }

    @Test func `a stopped server does not listen any more`() async {
        let server = HTTPServer(service: TestService.echo)
        await server.stop(grace: .zero)

        let error = #expect(throws: HTTPServerError.self) { try server.listen(host: "127.0.0.1", port: 0) }

        #expect(error?.code == .stopped)
    }

    @Test func `a cancelled run stops the server`() async throws {
        let server = HTTPServer(service: TestService.echo)
        let address = try server.listen(host: "127.0.0.1", port: 0)
        let running = Task { await server.run(grace: .seconds(20)) }
        let client = try RawClient(address)
        client.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        _ = try await client.answer()

        running.cancel()
        await running.value

        #expect(throws: RawClient.Broken.self) { try RawClient(address) }
    }

    @Test func `a server that never started can be stopped`() async throws {
        let server = HTTPServer(service: TestService.echo)
        let address = try server.listen(host: "127.0.0.1", port: 0)

        await server.stop(grace: .zero)

        #expect(throws: RawClient.Broken.self) { try RawClient(address) }
    }

    @Test func `several threads share one port`() async throws {
        try await withServer(threads: 3) { address, _ in
            for number in 0..<20 {
                let client = try RawClient(address)
                client.send("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try await client.answer().body == "GET /\(number) ")
            }
        }
    }
}

@Suite struct HTTPServerListenTests {
    @Test(arguments: [1, 2]) func `a taken port is named with its remedy`(threads: Int) async throws {
        try await withServer { address, _ in
            let second = HTTPServer(service: TestService.echo, threads: threads)

            let error = #expect(throws: HTTPServerError.self) {
                try second.listen(host: "127.0.0.1", port: address.port)
            }

            #expect(error?.code == .addressInUse)
            #expect(error?.message.contains("choose another port") == true)
        }
    }

    @Test func `hosts are addresses or localhost`() async throws {
        #expect(try listened("localhost").host == "127.0.0.1")
        #expect(try listened("::1").description.hasPrefix("[::1]:"))
        let error = #expect(throws: HTTPServerError.self) { try listened("example.org") }
        #expect(error?.code == .invalidHost)
        let foreign = #expect(throws: HTTPServerError.self) { try listened("192.0.2.1") }
        #expect(foreign?.code == .addressNotAvailable)
    }

    @Test func `a forbidden port is named with its remedy`() {
        let error = HTTPServerError.listening(on: "127.0.0.1:80", failed: EACCES)

        #expect(error.code == .permissionDenied)
        #expect(error.description.contains("CAP_NET_BIND_SERVICE"))
    }

    @Test func `the IPv6 wildcard takes IPv4 clients too`() async throws {
        let server = HTTPServer(service: TestService { .text($0.head.remoteAddress) })
        let address = try server.listen(host: "::", port: 0)
        server.start()
        let client = try RawClient(address)

        client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let answer = try await client.answer()
        await server.stop(grace: .zero)

        #expect(answer.body == "127.0.0.1")
    }

    private func listened(_ host: String) throws -> HTTPServerAddress {
        try HTTPServer(service: TestService.echo).listen(host: host, port: 0)
    }
}
