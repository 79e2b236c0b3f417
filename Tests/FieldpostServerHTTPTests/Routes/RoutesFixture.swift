import FieldpostCore
import FieldpostGzip
import FieldpostServer
import Foundation

@testable import FieldpostServerHTTP

/// A server with one table, a token, and its log, asked without sockets: through the same two calls the engine makes.
final class RoutesFixture: Sendable {
    let server: SQLiteServer
    let routes: Routes
    let token: String
    let lines: LogLines
    let path: String
    private let folder: String

    static let schema = Schema(version: 1) {
        Table("notes", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("title", .text)
        }
    }

    init(scopes: Credential.Scopes = .all) async throws {
        folder = NSTemporaryDirectory() + "fieldpost-routes-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        path = folder + "/shop.db"
        server = try await SQLiteServer(path: path, schema: RoutesFixture.schema)
        token = try await server.createToken(name: "test", scopes: scopes).token
        let lines = LogLines()
        self.lines = lines
        routes = Routes(server: server, log: RequestLog { lines.append($0) }, clock: .system)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    static func id(_ number: Int) -> String {
        "00000000-0000-7000-8000-" + String(repeating: "0", count: 12 - String(number).count) + String(number)
    }

    static let device = id(900)

    /// The body of a push that creates one note for each number.
    static func push(_ numbers: Int..., title: String = "secret words") -> [UInt8] {
        let groups = numbers.map { number in
            """
            {"ops":[{"id":"\(id(500 + number))","table":"notes","row":"\(id(number))","action":"create",\
            "seq":\(number),"schema":1,"at":0,"set":{"branch_id":"B1","title":"\(title)"}}]}
            """
        }
        return Array("{\"groups\":[\(groups.joined(separator: ","))]}".utf8)
    }

    /// An answer as a client reads it.
    struct Reply {
        var status: Int
        var headers: [String: String]
        var bytes: [UInt8]
        var json: JSONObject { (try? JSON(bytes: bytes))?.object ?? [:] }
        /// The last part of a problem's type.
        var problem: String? { Problem(bytes: bytes, status: status)?.code }

        init(_ response: HTTPResponse) {
            status = response.status
            headers = Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in
                first
            }
            if case .bytes(let body) = response.body { bytes = body } else { bytes = [] }
        }
    }

    /// Sends a request with a valid token unless `headers` has its own; `nil` leaves a header out.
    func send(
        _ method: String,
        _ target: String,
        _ body: [UInt8] = [],
        headers: [String: String?] = [:]
    ) async throws -> Reply {
        var all: [String: String?] = [
            "Authorization": "Bearer \(token)", "Fieldpost-Device": RoutesFixture.device,
            "Fieldpost-Schema": "1",
            "Content-Length": body.isEmpty ? nil : String(body.count),
        ]
        for (name, value) in headers { all[name] = .some(value) }
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let head = HTTPRequestHead(
            method: method,
            path: parts[0],
            query: parts.count > 1 ? parts[1] : "",
            headers: all.compactMap { name, value in value.map { (name, $0) } }
        )
        switch routes.plan(head) {
        case .reject(let response): return Reply(response)
        case .collect(let max):
            if body.count > max { throw TooLong() }
            return Reply(await routes.handle(HTTPRequest(head: head, body: body)))
        case .stream(let highWater):
            let stream = BodyStream(highWater: highWater, onDrained: {})
            for start in stride(from: 0, to: body.count, by: 60_000) {
                _ = stream.append(Array(body[start..<min(start + 60_000, body.count)]))
            }
            stream.finish()
            return Reply(await routes.handle(HTTPRequest(head: head, stream: stream)))
        }
    }

    /// The engine would have refused the body.
    struct TooLong: Error {}
}

/// Log lines, as they come.
final class LogLines: @unchecked Sendable {
    // Safe because: the lines are only reached under the lock.
    private let lock = NSLock()
    private var lines: [String] = []

    func append(_ line: String) { lock.withLock { lines.append(line) } }
    var all: [String] { lock.withLock { lines } }
    var objects: [JSONObject] { all.compactMap { try? JSON(text: $0).object } }
}
