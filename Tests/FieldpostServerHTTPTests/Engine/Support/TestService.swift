@testable import FieldpostServerHTTP

/// A service made of two closures.
struct TestService: HTTPService {
    var planned: @Sendable (HTTPRequestHead) -> BodyPlan = { _ in .collect(max: 1_000) }
    var handled: @Sendable (HTTPRequest) async -> HTTPResponse

    func plan(_ head: HTTPRequestHead) -> BodyPlan { planned(head) }
    func handle(_ request: HTTPRequest) async -> HTTPResponse { await handled(request) }

    /// Answers with method, path and body.
    static let echo = TestService { request in
        .text("\(request.head.method) \(request.head.path) \(String(decoding: request.body, as: UTF8.self))")
    }
}

extension HTTPResponse {
    static func text(_ text: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, body: .bytes(Array(text.utf8)))
    }
}

/// Serves on a free port for as long as `body` runs.
func withServer(
    _ service: TestService = .echo,
    limits: HTTPLimits = HTTPLimits(),
    threads: Int = 1,
    body: (HTTPServerAddress, HTTPServer) async throws -> Void
) async throws {
    let server = HTTPServer(service: service, limits: limits, threads: threads)
    let address = try server.listen(host: "127.0.0.1", port: 0)
    server.start()
    do {
        try await body(address, server)
    } catch {
        await server.stop(grace: .zero)
        throw error
    }
    await server.stop(grace: .zero)
}

/// Something that happens once and that others wait for.
final class Signal: Sendable {
    private let signal = ExitSignal()
    func fire() { signal.signal() }
    func wait() async { await signal.wait() }
}

extension HTTPLimits {
    /// Deadlines short enough for a test, looked at often.
    static var short: HTTPLimits {
        var limits = HTTPLimits()
        limits.deadlineResolution = .milliseconds(10)
        return limits
    }
}
