import Glibc
import Testing

@testable import FieldpostServerHTTP

@Suite struct HTTPServerLimitTests {
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHo",
        "G",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    ])
    func `a slow head or body is cut off`(beginning: String) async throws {
        var limits = HTTPLimits.short
        limits.headTime = .milliseconds(50)
        limits.bodyGrace = .milliseconds(50)
        try await withServer(limits: limits) { address, _ in
            let client = try RawClient(address)

            client.send(beginning)

            #expect(try await client.textUntilClosed().hasPrefix("HTTP/1.1 408 "))
        }
    }

    @Test func `an idle connection is closed without a word`() async throws {
        var limits = HTTPLimits.short
        limits.idleTime = .milliseconds(50)
        try await withServer(limits: limits) { address, _ in
            let fresh = try RawClient(address)
            let used = try RawClient(address)

            used.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(try await used.answer().status == 200)
            #expect(try await used.textUntilClosed() == "")
            #expect(try await fresh.textUntilClosed() == "")
        }
    }

    @Test func `a client that takes no bytes is closed`() async throws {
        var limits = HTTPLimits.short
        limits.writeStall = .milliseconds(50)
        let cancelled = Signal()
        let service = TestService { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    defer { cancelled.fire() }
                    while true { try await writer.write([UInt8](repeating: 0, count: 50_000)) }
                }
            )
        }
        try await withServer(service, limits: limits) { address, _ in
            let client = try RawClient(address, receiveBuffer: 4_096)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

            await cancelled.wait()
        }
    }

    @Test func `one connection too many is told so`() async throws {
        var limits = HTTPLimits()
        limits.connections = 1
        try await withServer(limits: limits) { address, _ in
            let first = try RawClient(address)
            first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
            _ = try await first.answer()

            let second = try RawClient(address)
            let answer = try await second.answer()
            first.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(answer.status == 503)
            #expect(answer.headers["retry-after"] == "1")
            #expect(try await first.answer().status == 200)
        }
    }

    @Test func `running out of descriptors is survived`() async {
        await #expect(processExitsWith: .success) {
            try await withServer(limits: .short) { address, _ in
                let clients = try (0..<4).map { _ in try RawClient(address) }
                for client in clients { client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") }
                for client in clients { _ = try await client.answer() }
                var limit = rlimit(rlim_cur: rlim_t(dup(0)) + 4, rlim_max: 4_096)
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                var taken: [Int32] = []
                while case let descriptor = dup(0), descriptor >= 0 { taken.append(descriptor) }

                // The client takes the only descriptor that is left.
                close(taken.removeLast())
                let late = try RawClient(address)
                late.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
                for client in clients { client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n") }
                for client in clients { #expect(try await client.answer().body == "GET /b ") }
                for descriptor in taken { close(descriptor) }

                #expect(try await late.answer().body == "GET /late ")
            }
        }
    }

    @Test func `connections are counted by address and given back`() {
        var limits = HTTPLimits()
        limits.connections = 3
        limits.connectionsPerAddress = 2
        let census = ConnectionCensus(limits: limits)
        let one = PeerAddress(ipv4: [10, 0, 0, 1]).network
        let mapped = PeerAddress(ipv6: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]).network
        let far = PeerAddress(ipv6: [32, 1] + [UInt8](repeating: 0, count: 14)).network
        let neighbour = PeerAddress(ipv6: [32, 1] + [UInt8](repeating: 0, count: 13) + [9]).network

        #expect(one == mapped)
        #expect(far == neighbour)
        #expect([one, mapped, one].map(census.admit) == [true, true, false])
        #expect([far, neighbour].map(census.admit) == [true, false])
        census.release(one)
        #expect(census.admit(one))
        #expect(census.count == 3)
    }

    @Test func `a client's address is given to the handler`() async throws {
        try await withServer(TestService { .text($0.head.remoteAddress) }) { address, _ in
            let client = try RawClient(address)

            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

            #expect(try await client.answer().body == "127.0.0.1")
        }
    }
}
