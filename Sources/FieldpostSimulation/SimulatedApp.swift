internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// One process on a phone's file, the app or its extension: the real engine decisions, and a connection that can be
/// killed between any two statements.
final class SimulatedApp {
    let name: String
    private let path: String
    private(set) var database: LocalDatabase
    /// The run in progress, lost when the process dies.
    var run: SyncRun?
    /// Tells the run's lease from others.
    var fence: Int64 = 0
    /// What the run waits for.
    var exchange: Exchange?
    var workingBatch: Int?
    private var incarnation = 0
    /// The process, as the lease names it.
    var owner: String { "\(name)/\(incarnation)" }

    /// A request on its way, or its answer.
    enum Exchange {
        case push(PushBatch, sentAt: Int64)
        case pull(cursor: String?)
        case void([OperationID])
    }

    init(name: String, path: String, now: Timestamp, random: inout SeededRandom) throws {
        self.name = name
        self.path = path
        database = try Self.open(path, now, &random)
    }

    private static func open(_ path: String, _ now: Timestamp, _ random: inout SeededRandom) throws
        -> LocalDatabase
    {
        var options = LocalDatabase.Options()
        options.synchronous = .off
        let database = try LocalDatabase(
            path: path,
            schema: Workload.schema,
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

    /// The process ends here; what was not committed is gone, and so is everything in memory.
    func restart(now: Timestamp, random: inout SeededRandom) throws {
        database.connection.close()
        run = nil
        exchange = nil
        workingBatch = nil
        incarnation += 1
        database = try Self.open(path, now, &random)
    }

    /// Runs `body`; with `statements` the process is killed before that many more statements have begun.
    ///
    /// - Returns: `nil` when it was killed.
    func living<Result>(killedAfter statements: Int?, _ body: (LocalDatabase) throws -> Result) throws
        -> Result?
    {
        try SimulatedProcess.living(database.connection, killedAfter: statements) { try body(database) }
    }

    /// Whether its connection works, which it does not after a kill.
    var isAlive: Bool { (try? database.connection.scalar("SELECT 1")) != nil }

    /// Whether another process has taken over since the run began.
    func isStale() throws -> Bool {
        try database.connection.scalar("SELECT fence FROM fieldpost_lease") != .integer(fence)
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
