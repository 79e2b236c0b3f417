internal import FieldpostCore
internal import FieldpostSQLite

/// Carries a store's operations to a server and brings the server's changes back.
///
/// A thin shell: it moves bytes, sleeps, and asks `SyncRun` what to do next.
///
///     let engine = SyncEngine(store: store, transport: HTTPTransport(server: url)) { await session.token() }
///     let report = await engine.sync()
public actor SyncEngine {
    /// Where the bearer token comes from; asked at send time, never stored.
    public typealias TokenSource = @Sendable (_ refresh: Bool) async throws -> String?

    private let store: Store
    private let transport: any Transport
    private let tokens: TokenKeeper
    private let owner: String
    private var settings: SyncRun.Settings
    private var batchLimit: Int?
    private var isServing = false
    private var callers: [Caller] = []
    /// Those whom the current run answers.
    private var served: [Caller] = []
    private var current: (run: Task<SyncReport, Never>, isAskedFor: Bool)?
    private var lastCaller = 0
    private let alarm = Alarm()

    /// Who waits for a run.
    private struct Caller {
        var number: Int
        /// Whether someone asked for it, rather than a timer.
        var isAskedFor: Bool
        var continuation: CheckedContinuation<SyncReport, Never>
    }

    /// An engine for `store`.
    ///
    /// - Parameters:
    ///   - store: what to keep in sync.
    ///   - transport: the way to the server.
    ///   - token: gives the token; with `refresh` a fresh one, after the server refused the last.
    public init(store: Store, transport: any Transport, token: @escaping TokenSource) {
        self.store = store
        self.transport = transport
        tokens = TokenKeeper(token)
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
    /// A caller that is cancelled is answered at once; the run goes on.
    public func sync() async -> SyncReport {
        lastCaller += 1
        let caller = lastCaller
        return await withTaskCancellationHandler {
            await join(caller, isAskedFor: true)
        } onCancel: {
            // Unstructured, since a handler cannot wait; it ends at once.
            Task { await self.leave(caller) }
        }
    }

    /// Waits for a run that begins after this call.
    ///
    /// Runs asked for and runs by the timer never overlap: each would take the lease from the other.
    private func join(_ caller: Int, isAskedFor: Bool) async -> SyncReport {
        await withCheckedContinuation { continuation in
            if Task.isCancelled { return continuation.resume(returning: SyncReport(end: .stopped)) }
            callers.append(Caller(number: caller, isAskedFor: isAskedFor, continuation: continuation))
            if !isServing {
                isServing = true
                // Unstructured, since a run serves every caller and outlives the first one's cancellation.
                Task { await self.serveCallers() }
            }
        }
    }

    private func serveCallers() async {
        while !callers.isEmpty {
            (served, callers) = (callers, [])
            let isAskedFor = served.contains(where: \.isAskedFor)
            // A task of its own, so that it can be cancelled alone.
            let run = Task { await self.runOnce(ignoringBackoff: isAskedFor) }
            current = (run, isAskedFor)
            let report = await run.value
            current = nil
            for caller in served { caller.continuation.resume(returning: report) }
            served = []
        }
        isServing = false
    }

    private func leave(_ number: Int) {
        let leaving = (callers + served).filter { $0.number == number }
        callers.removeAll { $0.number == number }
        served.removeAll { $0.number == number }
        for caller in leaving { caller.continuation.resume(returning: SyncReport(end: .stopped)) }
    }

    /// Ends the run of a timer that was cancelled; one that someone asked for goes on without it.
    private func abandon(_ number: Int) {
        if let current, !current.isAskedFor, served.contains(where: { $0.number == number }) {
            current.run.cancel()
        } else {
            leave(number)
        }
    }

    /// Runs sync whenever there is a reason to, until cancelled.
    ///
    /// Reasons are the start, ``poke()``, and a delay that is over.
    public func run() async throws {
        while !Task.isCancelled {
            lastCaller += 1
            let caller = lastCaller
            let report = await withTaskCancellationHandler {
                await join(caller, isAskedFor: false)
            } onCancel: {
                // Unstructured, since a handler cannot wait; it ends at once.
                Task { await self.abandon(caller) }
            }
            await pause(atMost: try await nextPause(after: report.end))
        }
        try Task.checkCancellation()
    }

    /// Says that there is a reason to sync: a write, a hint of connectivity, a message from the server.
    public func poke() { alarm.raise() }

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

    private func pause(atMost pause: Duration) async {
        let (alarm, sleep) = (alarm, store.environment.sleep)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await alarm.wait() }
            group.addTask { try? await sleep(pause) }
            await group.next()
            group.cancelAll()
        }
    }

    // MARK: One run

    private func runOnce(ignoringBackoff: Bool) async -> SyncReport {
        do {
            let report = try await performRun(ignoringBackoff: ignoringBackoff)
            store.noteFailure(nil)
            return report
        } catch {
            let report = SyncReport(failure: error)
            await note(report)
            return report
        }
    }

    /// Keeps in the file that it failed and that nothing is on the wire; beside it, when not even that can be written.
    private func note(_ report: SyncReport) async {
        let (owner, end) = (owner, report.end)
        let isLocked = report.storeFailure == .busy
        do {
            // Who waited for a lock in vain need not wait once more.
            if isLocked { return store.noteFailure(report.reason) }
            try await store.writer.perform { db, _, _ in
                try Lease.release(db, owner: owner)
                try Schedule(db).note(end)
            }
        } catch {
            store.noteFailure(report.reason)
        }
    }

    /// A run that holds the right to send, or why there is none now.
    private func begin(ignoringBackoff: Bool) async throws -> (run: SyncRun?, otherwise: SyncRun.End) {
        let (owner, settings, batchLimit) = (owner, settings, batchLimit)
        let isAlive = store.environment.isOwnerAlive
        return try await store.writer.perform {
            db,
            now,
            _ -> (run: SyncRun?, otherwise: SyncRun.End) in
            if try FileAccount(db).isSignedOut() {
                try Schedule(db).note(.signedOut)
                return (nil, .signedOut)
            }
            if ignoringBackoff {
                try Schedule(db).reset()
            } else if try Schedule(db).due(now: now) > now.milliseconds {
                return (nil, .busy("the next run is not due yet"))
            }
            let lease = try Lease.acquire(db, owner: owner, now: now, isAlive: isAlive)
            return (lease.map { SyncRun(lease: $0, settings: settings, batchLimit: batchLimit) }, .leaseHeld)
        }
    }

    private func performRun(ignoringBackoff: Bool) async throws -> SyncReport {
        let started = try await begin(ignoringBackoff: ignoringBackoff)
        guard var run = started.run else { return SyncReport(end: started.otherwise) }
        var fresh: String?
        var used: String?
        while true {
            let step = try await advance(run)
            run = step.run
            switch step.need {
            case .finish:
                self.batchLimit = run.workingBatch
                return SyncReport(run: run)
            case .refreshToken:
                fresh = await tokens.replacement(for: used)
                let worked = fresh != nil
                run = try await report(run) { run, db, now, _ in try run.refreshed(worked, db, now: now) }
            case .push(let batch):
                let context = await context(step, token: fresh)
                used = context.token
                run = try await push(batch, run, context)
            case .void(let operations):
                let context = await context(step, token: fresh)
                used = context.token
                run = try await void(operations, run, context)
            case .pull(let cursor):
                let context = await context(step, token: fresh)
                used = context.token
                run = try await pull(cursor, run, context)
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

    private func void(_ operations: [OperationID], _ run: SyncRun, _ context: RequestContext) async throws
        -> SyncRun
    {
        let answer: Result<PushResponse?, ExchangeFailure>
        do throws(ExchangeFailure) {
            answer = .success(try await transport.void(operations, context))
        } catch {
            answer = .failure(error)
        }
        return try await report(run, answer) { run, db, now, random in
            try run.voided(answer, db, now: now, random: &random)
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

    private func context(_ step: Step, token fresh: String?) async -> RequestContext {
        var known = fresh
        if known == nil { known = await tokens.current() }
        return RequestContext(
            token: known,
            device: step.device,
            schema: store.schema.version,
            now: store.environment.now(),
            nonce: store.environment.randomBits(),
            account: step.account
        )
    }

    private struct Step: Sendable {
        var run: SyncRun
        var need: SyncRun.Need
        var device: String
        var account: String?
    }

    private func advance(_ run: SyncRun) async throws -> Step {
        let isStopped = Task.isCancelled
        return try await store.writer.perform { db, now, _ in
            var run = run
            if isStopped, run.end == nil { try run.stopped(db, now: now) }
            let need = try run.next(db, now: now)
            let account = try FileAccount(db).boundTo()
            return Step(run: run, need: need, device: try db.deviceID(), account: account)
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
