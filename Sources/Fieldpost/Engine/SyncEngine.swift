internal import FieldpostCore
internal import FieldpostSQLite

/// Carries a store's operations to a server and brings the server's changes back.
///
/// A thin shell: it moves bytes, sleeps, and asks ``SyncRun`` what to do next.
///
///     let engine = SyncEngine(store: store, transport: HTTPTransport(server: url)) { await session.token() }
///     let report = await engine.sync()
public actor SyncEngine {
    /// Where the bearer token comes from; asked at send time, never stored.
    public typealias TokenSource = @Sendable (_ refresh: Bool) async throws -> String?

    private let store: Store
    private let transport: any Transport
    private let token: TokenSource
    private let owner: String
    private var settings: SyncRun.Settings
    private var batchLimit: Int?
    private var isRunning = false
    private var callers: [Int: CheckedContinuation<SyncReport, Never>] = [:]
    private var served: [Int: CheckedContinuation<SyncReport, Never>] = [:]
    private var nextCaller = 0
    private let bell = Bell()

    /// An engine for `store`.
    ///
    /// - Parameter token: gives the token; with `refresh` a fresh one, after the server refused the last.
    public init(store: Store, transport: any Transport, token: @escaping TokenSource) {
        self.store = store
        self.transport = transport
        self.token = token
        settings = SyncRun.Settings()
        owner = store.environment.ownerName()
    }

    /// How delays after failures are computed.
    public func setBackoff(_ backoff: Backoff) { settings.backoff = backoff }

    /// Pushes until nothing more can go, pulls to a checkpoint, and pushes what that released.
    ///
    /// Any number of calls at once make one run; a call during a run makes one more after it. Every caller is answered
    /// by a run that began after its call.
    ///
    /// A caller that is cancelled is answered at once; the run goes on for the others.
    public func sync() async -> SyncReport {
        nextCaller += 1
        let caller = nextCaller
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: SyncReport(end: .stopped)) }
                callers[caller] = continuation
                if !isRunning {
                    isRunning = true
                    // Unstructured, since the run serves every caller and outlives the first one's cancellation.
                    Task { await self.serveCallers() }
                }
            }
        } onCancel: {
            // Unstructured, since a cancellation handler cannot wait for the actor.
            Task { await self.leave(caller) }
        }
    }

    private func leave(_ caller: Int) {
        let waiting = callers.removeValue(forKey: caller) ?? served.removeValue(forKey: caller)
        waiting?.resume(returning: SyncReport(end: .stopped))
    }

    private func serveCallers() async {
        while !callers.isEmpty {
            (served, callers) = (callers, [:])
            let report = await runOnce(ignoringBackoff: true)
            for caller in served.values { caller.resume(returning: report) }
            served = [:]
        }
        isRunning = false
    }

    /// Runs sync whenever there is a reason to, until cancelled: at the start, after ``poke()``, and when a delay is over.
    public func run() async throws {
        while !Task.isCancelled {
            let report = await runOnce(ignoringBackoff: false)
            let pause = try await nextPause(after: report.end)
            await bell.heard(orAfter: pause, sleep: store.environment.sleep)
        }
        try Task.checkCancellation()
    }

    /// Says that there is a reason to sync: a write, a hint of connectivity, a message from the server.
    public func poke() { bell.ring() }

    /// The longest time between two runs when nothing is known to be waiting.
    private static let idleMilliseconds: Int64 = 300_000
    /// The time between two looks at a lease that another process holds.
    private static let leasePollMilliseconds: Int64 = 2_000

    private func nextPause(after end: SyncRun.End) async throws -> Duration {
        let due = try await store.writer.perform { db, now, _ in
            let run = try Schedule(db).due(now: now)
            let operation = try PushPlan.nextDue(db) ?? Int64.max
            let next = run > now.milliseconds ? run : min(operation, now.milliseconds + Self.idleMilliseconds)
            return max(end == .leaseHeld ? Self.leasePollMilliseconds : 0, next - now.milliseconds)
        }
        return .milliseconds(min(due, Self.idleMilliseconds))
    }

    // MARK: One run

    private func runOnce(ignoringBackoff: Bool) async -> SyncReport {
        do {
            return try await performRun(ignoringBackoff: ignoringBackoff)
        } catch {
            return SyncReport(failure: error)
        }
    }

    private func performRun(ignoringBackoff: Bool) async throws -> SyncReport {
        let (owner, settings, batchLimit) = (owner, settings, batchLimit)
        let isAlive = store.environment.isOwnerAlive
        let started = try await store.writer.perform {
            db,
            now,
            _ -> (run: SyncRun?, otherwise: SyncRun.End) in
            if ignoringBackoff {
                try Schedule(db).reset()
            } else if try Schedule(db).due(now: now) > now.milliseconds {
                return (nil, .busy("the next run is not due yet"))
            }
            let lease = try Lease.acquire(db, owner: owner, now: now, isAlive: isAlive)
            return (lease.map { SyncRun(lease: $0, settings: settings, batchLimit: batchLimit) }, .leaseHeld)
        }
        guard var run = started.run else { return SyncReport(end: started.otherwise) }
        var fresh: String?
        while true {
            let step = try await advance(run)
            run = step.run
            switch step.need {
            case .finish:
                self.batchLimit = run.workingBatch
                return SyncReport(run: run)
            case .refreshToken:
                fresh = try? await token(true)
                let worked = fresh != nil
                run = try await report(run) { run, db, now, _ in try run.refreshed(worked, db, now: now) }
            case .push(let batch):
                run = try await push(batch, run, await context(step.device, token: fresh))
            case .pull(let cursor):
                run = try await pull(cursor, run, await context(step.device, token: fresh))
            }
        }
    }

    private func push(_ batch: PushBatch, _ run: SyncRun, _ context: RequestContext) async throws -> SyncRun {
        let answer: Result<PushResponse, ExchangeFailure>
        do throws(ExchangeFailure) {
            answer = .success(try await transport.push(OutgoingPush(body: batch.body), context))
        } catch {
            answer = .failure(error)
        }
        return try await report(run, answer) { run, db, now, random in
            try run.pushed(
                answer,
                batch,
                elapsed: now.milliseconds - context.now.milliseconds,
                db,
                now: now,
                random: &random
            )
        }
    }

    private func pull(_ cursor: String?, _ run: SyncRun, _ context: RequestContext) async throws -> SyncRun {
        let answer: Result<PullPage, ExchangeFailure>
        do throws(ExchangeFailure) {
            answer = .success(try await transport.pull(cursor: cursor, context))
        } catch {
            answer = .failure(error)
        }
        return try await report(run, answer) { run, db, now, random in
            try run.pulled(answer, askedWith: cursor, db, now: now, random: &random)
        }
    }

    private func context(_ device: String, token fresh: String?) async -> RequestContext {
        var known = fresh
        if known == nil { known = try? await token(false) }
        return RequestContext(
            token: known,
            device: device,
            schema: store.schema.version,
            now: store.environment.now(),
            nonce: store.environment.randomBits()
        )
    }

    private struct Step: Sendable {
        var run: SyncRun
        var need: SyncRun.Need
        var device: String
    }

    private func advance(_ run: SyncRun) async throws -> Step {
        let isStopped = Task.isCancelled
        return try await store.writer.perform { db, now, _ in
            var run = run
            if isStopped, run.end == nil { try run.stopped(db, now: now) }
            let need = try run.next(db, now: now)
            return Step(run: run, need: need, device: try db.deviceID())
        }
    }

    /// Reports an answer, but for a failure that is only the cancellation of this task.
    private func report<Answer: Sendable>(
        _ run: SyncRun,
        _ answer: Result<Answer, ExchangeFailure>,
        _ body: @Sendable (inout SyncRun, LocalDatabase, Timestamp, inout EnvironmentRandom) throws -> Void
    ) async throws -> SyncRun {
        if case .failure = answer, Task.isCancelled { return run }
        return try await report(run, body)
    }

    private func report(
        _ run: SyncRun,
        _ body: @Sendable (inout SyncRun, LocalDatabase, Timestamp, inout EnvironmentRandom) throws -> Void
    ) async throws -> SyncRun {
        try await store.writer.perform { db, now, random in
            var run = run
            try body(&run, db, now, &random)
            return run
        }
    }
}
