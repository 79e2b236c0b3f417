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

    let store: Store
    let transport: any Transport
    private let tokens: TokenKeeper
    private let owner: String
    private(set) var settings: SyncRun.Settings
    private var batchLimit: Int?
    private var isServing = false
    /// Whether a ``run()`` is going on.
    var isFollowing = false
    private var callers: [Caller] = []
    /// Those whom the current run answers.
    private var served: [Caller] = []
    private var current: Task<SyncReport, Never>?
    private var lastCaller = 0
    let alarm = Alarm()
    let triggers = Locked(RunTriggers())
    let reach = ServerReach()

    /// Why a run is wanted.
    enum Cause: Equatable {
        /// Someone waits for it.
        case asked
        /// The system lets the app work in the background for a while.
        case background
        /// Something happened, or nothing for long enough.
        case trigger(forgettingBackoff: Bool)
    }

    /// Who waits for a run.
    private struct Caller {
        var number: Int
        var cause: Cause
        var continuation: CheckedContinuation<SyncReport, Never>

        var isTrigger: Bool { if case .trigger = cause { true } else { false } }
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

    /// How many operations a request carries at most, from 1 to 1,000, which is the default.
    ///
    /// A transaction is never split: one that is larger goes in a request of its own.
    public func setLargestRequest(operations: Int) {
        settings.largestBatch = min(max(operations, 1), WireLimits.operationsPerPush)
    }

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
            await join(caller, .asked)
        } onCancel: {
            // Unstructured, since a handler cannot wait; it ends at once.
            Task { await self.leave(caller) }
        }
    }

    /// A run that is cut when this task is cancelled, unless others wait for it.
    func run(for cause: Cause) async -> SyncReport {
        lastCaller += 1
        let caller = lastCaller
        return await withTaskCancellationHandler {
            await join(caller, cause)
        } onCancel: {
            // Unstructured, since a handler cannot wait; it ends at once.
            Task { await self.abandon(caller) }
        }
    }

    /// Waits for a run that begins after this call.
    ///
    /// Runs asked for and runs by the timer never overlap: each would take the lease from the other.
    private func join(_ caller: Int, _ cause: Cause) async -> SyncReport {
        await withCheckedContinuation { continuation in
            if Task.isCancelled { return continuation.resume(returning: SyncReport(end: .stopped)) }
            callers.append(Caller(number: caller, cause: cause, continuation: continuation))
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
            let causes = served.map(\.cause)
            // A task of its own, so that it can be cancelled alone.
            let run = Task { await self.runOnce(for: causes) }
            current = run
            let report = await run.value
            current = nil
            reach.ended(report.end)
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

    /// Ends the run of one that was cancelled; when someone else waits for it, it goes on without him.
    private func abandon(_ number: Int) {
        let isServed = served.contains { $0.number == number }
        if let current, isServed, served.allSatisfy({ $0.number == number || $0.isTrigger }) {
            current.cancel()
        } else {
            leave(number)
        }
    }

    // MARK: One run

    private func runOnce(for causes: [Cause]) async -> SyncReport {
        do {
            let end = try await open(for: causes)
            let report = if let end { SyncReport(end: end) } else { try await performRun() }
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

    private func performRun() async throws -> SyncReport {
        let (owner, settings, batchLimit) = (owner, settings, batchLimit)
        let isAlive = store.environment.isOwnerAlive
        let started = try await store.writer.perform { db, now, _ in
            try Lease.acquire(db, owner: owner, now: now, isAlive: isAlive).map {
                SyncRun(lease: $0, settings: settings, batchLimit: batchLimit)
            }
        }
        guard var run = started else { return SyncReport(end: .leaseHeld) }
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
                let context = await context(step.device, account: step.account, token: fresh)
                used = context.token
                run = try await push(batch, run, context)
            case .void(let operations):
                let context = await context(step.device, account: step.account, token: fresh)
                used = context.token
                run = try await void(operations, run, context)
            case .pull(let cursor):
                let context = await context(step.device, account: step.account, token: fresh)
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

    func context(_ device: String, account: String?, token fresh: String? = nil) async -> RequestContext {
        var known = fresh
        if known == nil { known = await tokens.current() }
        return RequestContext(
            token: known,
            device: device,
            schema: store.schema.version,
            now: store.environment.now(),
            nonce: store.environment.randomBits(),
            account: account
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
