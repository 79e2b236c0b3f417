internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostTesting

/// The real server core on a real file, which can be killed between any two statements.
final class SimulatedServer {
    private let path: String
    private let schema = Workload.serverSchema
    /// The longest body it reads, in bytes: a few ordinary requests are longer, some single changes too.
    private static let longestBody = 20_000
    private(set) var connection: Connection
    private var core: ServerCore
    let credential = Credential(tokenID: "simulation", scopes: .all)

    init(path: String, now: Timestamp, random: inout SeededRandom) throws {
        self.path = path
        (connection, core) = try Self.open(path, schema, now, &random)
    }

    private static func open(
        _ path: String,
        _ schema: Schema,
        _ now: Timestamp,
        _ random: inout SeededRandom
    ) throws -> (Connection, ServerCore) {
        let connection = try Connection(path: path)
        try connection.configureWriter(synchronous: .off)
        var own = SeededRandom(seed: random.next())
        let core = try ServerCore.open(connection, schema: schema, now: now) { own.bytes($0) }
        return (connection, core)
    }

    func restart(now: Timestamp, random: inout SeededRandom) throws {
        connection.close()
        (connection, core) = try Self.open(path, schema, now, &random)
    }

    /// Answers a push as HTTP would; `nil` when the server died before it could answer.
    ///
    /// - Parameter waiting: the groups, by index, that it cannot take now, and for how many milliseconds.
    func push(
        _ body: [UInt8],
        from device: String,
        waiting: [Int: Int64] = [:],
        killedAfter statements: Int? = nil,
        now: Timestamp
    ) throws -> HTTPAnswer? {
        if body.count > Self.longestBody { return Self.refusal(413) }
        if String(decoding: body, as: UTF8.self).contains(Workload.poison) { return Self.refusal(500) }
        let device = Device(id: device, schema: schema.version)
        return try answer(killedAfter: statements) {
            if waiting.isEmpty {
                return try core.push(body, on: connection, credential: credential, device: device, now: now)
            }
            let request = try ServerCore.request(body)
            return try connection.transaction(.immediate) {
                var results: [OperationResult] = []
                for (index, group) in request.groups.enumerated() {
                    if let delay = waiting[index] {
                        results += group.operations.map { Self.later($0.id, delay) }
                    } else {
                        results += try core.apply(
                            PushRequest(groups: [group]),
                            on: connection,
                            credential: credential,
                            device: device,
                            now: now
                        ).results
                    }
                }
                return PushResponse(results: results, serverTime: now).bytes()
            }
        }
    }

    private static func later(_ id: OperationID, _ delay: Int64) -> OperationResult {
        var result = OperationResult(id: id, status: .retry)
        result.afterMilliseconds = delay
        return result
    }

    /// An answer that says nothing of single operations.
    static func refusal(_ status: Int, headers: [String: String] = [:]) -> HTTPAnswer {
        HTTPAnswer(
            status: status,
            headers: headers.merging(["Fieldpost-Protocol": "1"]) { own, _ in own },
            body: Problem("simulated", status: status, detail: "The simulation refuses.").bytes()
        )
    }

    /// Answers what became of operations, voiding those it does not know.
    func void(
        _ operations: [OperationID],
        from device: String,
        killedAfter statements: Int? = nil,
        now: Timestamp
    ) throws -> HTTPAnswer? {
        try answer(killedAfter: statements) {
            try connection.transaction {
                try core.status(
                    StatusRequest(ids: operations, void: true),
                    on: connection,
                    credential: credential,
                    device: Device(id: device, schema: schema.version),
                    now: now
                )
            }.bytes()
        }
    }

    /// Answers a pull.
    func pull(_ cursor: String?, limit: Int, from device: String, now: Timestamp) throws -> HTTPAnswer? {
        try answer(killedAfter: nil) {
            try core.pull(
                cursor: cursor,
                limit: limit,
                on: connection,
                credential: credential,
                device: Device(id: device, schema: schema.version),
                now: now
            )
        }
    }

    private func answer(killedAfter statements: Int?, _ body: () throws -> [UInt8]) throws -> HTTPAnswer? {
        do {
            let bytes = try SimulatedProcess.living(connection, killedAfter: statements, body)
            return bytes.map { HTTPAnswer(status: 200, headers: ["Fieldpost-Protocol": "1"], body: $0) }
        } catch let problem as Problem {
            return HTTPAnswer(
                status: problem.status,
                headers: ["Fieldpost-Protocol": "1"],
                body: problem.bytes()
            )
        }
    }
}
