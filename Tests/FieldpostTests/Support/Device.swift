import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// One device file without a shell around it: tests drive the decisions themselves, and can kill it at any statement.
final class Device {
    let folder: TemporaryFolder
    let schema: Schema
    private(set) var db: LocalDatabase
    var now = Timestamp(milliseconds: 1_764_460_800_000)
    var random = SeededRandom(seed: 7)
    private(set) var lease: Lease!

    init(_ schema: Schema = Samples.shop) throws {
        folder = try TemporaryFolder()
        self.schema = schema
        db = try Self.open(folder.path("device.db"), schema, now, &random)
        lease = try Lease.acquire(db, owner: "test", now: now)
    }

    private static func open(
        _ path: String,
        _ schema: Schema,
        _ now: Timestamp,
        _ random: inout SeededRandom
    ) throws -> LocalDatabase {
        var options = LocalDatabase.Options()
        options.synchronous = .off
        return try LocalDatabase(path: path, schema: schema, options: options, now: now, random: &random)
    }

    /// Opens the file anew, as after the process ended.
    func reopen() throws {
        db.connection.close()
        db = try Self.open(folder.path("device.db"), schema, now, &random)
        lease = try Lease.acquire(db, owner: "test", now: now)
    }

    func takeLease(_ owner: String = "test") throws { lease = try Lease.acquire(db, owner: owner, now: now) }

    func advance(_ milliseconds: Int64) { now = now.adding(milliseconds: milliseconds) }

    /// Runs `body` in a process that is killed before that many more statements have begun, and opens the file anew.
    ///
    /// - Returns: whether it was killed.
    func killed(after statements: Int, _ body: () throws -> Void) throws -> Bool {
        var left = statements
        // An error may be swallowed on the way out, as by what tidies up behind a transaction.
        var wasKilled = false
        db.connection.willStep = { _ throws(StoreError) in
            if left == 0 {
                wasKilled = true
                throw .killed
            }
            left -= 1
        }
        do { try body() } catch let error as StoreError where error.code == .killed {}
        if wasKilled { try reopen() } else { db.connection.willStep = nil }
        return wasKilled
    }

    // MARK: Writing

    /// Runs statements as one transaction of the app; the ids of the operations made or changed.
    @discardableResult
    func write(_ statements: String...) throws -> [OperationID] {
        try db.write(at: now) {
            for statement in statements { try db.connection.execute(statement) }
            return try db.recordedOperations()
        }
    }

    // MARK: Syncing

    /// The next batch.
    func plan(operations: Int = 100, bytes: Int = 1 << 20) throws -> PushBatch? {
        try PushPlan.next(db, lease: lease, limits: .init(operations: operations, bytes: bytes), now: now)
    }

    /// Takes in results for the next batch.
    @discardableResult
    func push(_ answer: (Operation) -> OperationResult?) throws -> PushOutcome.Summary {
        let batch = try #require(try plan())
        return try settle(batch, answer)
    }

    @discardableResult
    func settle(
        _ batch: PushBatch,
        backoff: Backoff = Backoff(),
        _ answer: (Operation) -> OperationResult?
    ) throws -> PushOutcome.Summary {
        let operations = try PushRequest(bytes: batch.body).groups.flatMap(\.operations)
        return try PushOutcome.apply(
            db,
            lease: lease,
            batch: batch,
            results: operations.compactMap(answer),
            now: now,
            backoff: backoff,
            random: &random
        )
    }

    @discardableResult
    func pull(_ changes: [PulledChange], settled: [OperationResult] = [], cursor: String = "c1") throws
        -> PullApply.Summary
    {
        let page = PullPage(changes: changes, cursor: cursor, more: false, settled: settled, serverTime: now)
        return try #require(try PullApply.page(db, page, askedWith: try PullApply.cursor(db), now: now))
    }

    /// One whole run against `server`, whose answers may be spoilt.
    @discardableResult
    func sync(with server: MockServer) async throws -> SyncRun {
        var run = SyncRun(lease: lease)
        while true {
            let context = RequestContext(
                token: MockServer.everyScope,
                device: try db.deviceID(),
                schema: schema.version,
                now: now
            )
            switch try run.next(db, now: now) {
            case .finish:
                try takeLease()
                return run
            case .refreshToken: try run.refreshed(false, db, now: now)
            case .push(let batch):
                let answer: Result<PushResponse, ExchangeFailure>
                do throws(ExchangeFailure) {
                    answer = .success(try await server.push(OutgoingPush(body: batch.body), context))
                } catch { answer = .failure(error) }
                try run.pushed(answer, batch, elapsed: 1, db, now: now, random: &random)
            case .void(let operations):
                let answer: Result<PushResponse?, ExchangeFailure>
                do throws(ExchangeFailure) {
                    answer = .success(try await server.void(operations, context))
                } catch { answer = .failure(error) }
                try run.voided(answer, db, now: now, random: &random)
            case .pull(let cursor):
                let answer: Result<PullPage, ExchangeFailure>
                do throws(ExchangeFailure) {
                    answer = .success(try await server.pull(cursor: cursor, context))
                } catch { answer = .failure(error) }
                try run.pulled(answer, askedWith: cursor, db, now: now, random: &random)
            }
        }
    }

    // MARK: Looking

    func scalar(_ sql: String, _ arguments: Value...) throws -> Value? {
        try db.connection.query(sql, arguments).first?[0]
    }

    /// The title of a note.
    func title(_ row: String) throws -> String? {
        try scalar("SELECT title FROM notes WHERE id = ?", .text(row))?.text
    }

    func entry(_ id: OperationID) throws -> OutboxEntry? {
        try db.entries(where: "id = ?", .text(id.text)).first
    }

    /// Every unsettled operation: its place's state by id, in order.
    func states() throws -> [OutboxEntry.State] { try db.entries(where: "1").map(\.state) }

    var outboxCount: Int { get throws { try db.entries(where: "1").count } }
}

extension OperationResult {
    static func applied(_ version: Int64, row: JSONObject? = nil) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: .applied)
            (result.version, result.row) = (version, row)
            return result
        }
    }

    static func rejected(_ code: String) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: .rejected)
            (result.code, result.message) = (code, "the test says so")
            return result
        }
    }

    static func conflict(_ version: Int64?, row: JSONObject?) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: .conflict)
            (result.version, result.row, result.deleted) = (version, row, row == nil)
            return result
        }
    }

    static func retry(_ milliseconds: Int64?) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: .retry)
            result.afterMilliseconds = milliseconds
            return result
        }
    }

    static func blocked(by id: OperationID) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: .blocked)
            result.by = id
            return result
        }
    }

    static func mate(_ status: Status, of id: OperationID) -> (Operation) -> OperationResult {
        { operation in
            var result = OperationResult(id: operation.id, status: status)
            (result.code, result.by) = ("group", id)
            return result
        }
    }
}

extension PullApply {
    /// A page taken in by whoever holds the right to send.
    static func page(_ db: LocalDatabase, _ page: PullPage, askedWith cursor: String?, now: Timestamp) throws
        -> Summary?
    {
        let fence = try db.connection.scalar("SELECT fence FROM fieldpost_lease")?.integer ?? 0
        var random = SeededRandom(seed: 3)
        return try self.page(
            db,
            lease: Lease(fence: fence),
            page,
            askedWith: cursor,
            now: now,
            random: &random
        )
    }
}
