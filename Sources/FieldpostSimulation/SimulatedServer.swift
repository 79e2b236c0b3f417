internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostTesting

/// The real server core on a real file, which can be killed between any two statements.
final class SimulatedServer {
    private let path: String
    private let schema: Schema
    private(set) var connection: Connection
    private var core: ServerCore
    let credential = Credential(tokenID: "simulation", scopes: .all)

    init(path: String, schema: Schema, now: Timestamp, random: inout SeededRandom) throws {
        self.path = path
        self.schema = schema
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
    func push(_ body: [UInt8], from device: String, killedAfter statements: Int?, now: Timestamp) throws
        -> HTTPAnswer?
    {
        try answer(killedAfter: statements) {
            try core.push(
                body,
                on: connection,
                credential: credential,
                device: Device(id: device, schema: schema.version),
                now: now
            )
        }
    }

    /// Answers what became of operations, voiding those it does not know.
    func void(_ operations: [OperationID], from device: String, killedAfter statements: Int?, now: Timestamp)
        throws
        -> HTTPAnswer?
    {
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
