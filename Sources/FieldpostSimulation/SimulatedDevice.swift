internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// One phone: a real file, the real engine decisions, and a process that can be killed between any two statements.
final class SimulatedDevice {
    let name: String
    let path: String
    let schema: Schema
    private(set) var database: LocalDatabase
    /// The run in progress, lost when the process dies.
    var run: SyncRun?
    /// What the run waits for.
    var exchange: Exchange?
    var workingBatch: Int?
    var isOnline = true
    private var incarnation = 0
    /// The process, as the lease names it.
    var owner: String { "\(name)/\(incarnation)" }
    /// The operations of every write that returned to the user, less those the server has settled.
    private(set) var unsettled: Set<String> = []
    /// What the user was told was added to each counter.
    private(set) var counted: [String: Int64] = [:]

    /// A request on its way, or its answer.
    enum Exchange {
        case push(PushBatch, sentAt: Int64)
        case pull(cursor: String?)
        case void([OperationID])
    }

    init(name: String, path: String, schema: Schema, now: Timestamp, random: inout SeededRandom) throws {
        self.name = name
        self.path = path
        self.schema = schema
        database = try Self.open(path, schema, now, &random)
    }

    private static func open(
        _ path: String,
        _ schema: Schema,
        _ now: Timestamp,
        _ random: inout SeededRandom
    ) throws -> LocalDatabase {
        var options = LocalDatabase.Options()
        options.synchronous = .off
        let database = try LocalDatabase(
            path: path,
            schema: schema,
            options: options,
            now: now,
            random: &random
        )
        // Operation ids are drawn by SQL; with the seed's numbers a run replays bit for bit.
        var own = SeededRandom(seed: random.next())
        try database.connection.overrideFunction(name: "random", argumentCount: 0) { _ in
            .integer(Int64(bitPattern: own.next()))
        }
        return database
    }

    func forget(settled: Set<String>) { unsettled.subtract(settled) }

    /// The process ends here; what was not committed is gone, and so is everything in memory.
    func restart(now: Timestamp, random: inout SeededRandom) throws {
        database.connection.close()
        run = nil
        exchange = nil
        incarnation += 1
        database = try Self.open(path, schema, now, &random)
    }

    /// Runs `body`; with `statements` the process is killed before that many more statements have begun.
    ///
    /// - Returns: `nil` when it was killed.
    func living<Result>(killedAfter statements: Int?, _ body: (LocalDatabase) throws -> Result) throws
        -> Result?
    {
        try SimulatedProcess.living(database.connection, killedAfter: statements) { try body(database) }
    }

    /// A write as the app makes it; its operations count as confirmed once it returns.
    func write(at now: Timestamp, killedAfter statements: Int?, _ change: Workload.Change) throws -> Bool {
        let recorded = try living(killedAfter: statements) { database -> [String] in
            try database.write(at: now) {
                for statement in change.statements {
                    try database.connection.run(statement.sql, statement.arguments)
                }
                return try database.connection.query(
                    "SELECT id FROM fieldpost_outbox WHERE seq >= (SELECT grp FROM fieldpost_session) ORDER BY seq"
                ).compactMap { $0[0].text }
            }
        }
        guard let recorded else { return false }
        unsettled.formUnion(recorded)
        for (row, amount) in change.counted { counted[row, default: 0] += amount }
        return true
    }
}

/// A process on a connection, which a countdown of statements can end.
enum SimulatedProcess {
    static func living<Result>(
        _ connection: Connection,
        killedAfter statements: Int?,
        _ body: () throws -> Result
    ) throws -> Result? {
        guard var left = statements else { return try body() }
        connection.willStep = { _ throws(StoreError) in
            if left == 0 { throw .killed }
            left -= 1
        }
        defer { if connection.isOpen { connection.willStep = nil } }
        do {
            return try body()
        } catch let error as StoreError where error.code == .killed {
            return nil
        }
    }
}
