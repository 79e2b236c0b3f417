package import FieldpostCore
internal import FieldpostSQLite

/// One run of sync: pushes until nothing more can go, pulls to a checkpoint, pushes what that released.
///
/// Everything a run decides is here, without a clock, a network or a task: the shell performs one ``Need`` after another
/// and reports what came of it. A simulator drives the same code through a virtual network.
package struct SyncRun: Sendable {
    /// What the shell must do next.
    package enum Need: Equatable, Sendable {
        /// Send this body and report to ``SyncRun/pushed(_:_:elapsed:now:random:)``.
        case push(PushBatch)
        /// Have the server void these operations, if it does not know them, and report to
        /// ``SyncRun/voided(_:_:now:random:)``.
        case void([OperationID])
        /// Ask for the page after this cursor and report to ``SyncRun/pulled(_:_:now:random:)``.
        case pull(cursor: String?)
        /// Get a fresh token and report to ``SyncRun/refreshed(_:)``.
        case refreshToken
        /// The run is over.
        case finish
    }

    /// Why a run ended.
    package enum End: Equatable, Sendable {
        /// Everything that can go has gone, and the server's changes are here.
        case done
        /// No network that leads to the server.
        case offline(String)
        /// The server asks for time.
        case busy(String)
        /// A person has to sign in.
        case needsSignIn
        /// The token is another account's than the file.
        case otherAccount
        /// The file's account has signed out.
        case signedOut
        /// The credential may not do this.
        case forbidden(String)
        /// The address is wrong.
        case misconfigured(String)
        /// The app speaks too old a protocol.
        case needsUpgrade
        /// The server's schema is older than the app's.
        case serverBehind
        /// The server knows another history of this device.
        case deviceReset
        /// Another process is sending.
        case leaseHeld
        /// The run was cancelled; that is no failure.
        case stopped
        /// The local file failed.
        case storeFailed(String)
    }

    /// How a run behaves.
    package struct Settings: Equatable, Sendable {
        package var backoff = Backoff()
        /// Operations in the first request; doubled while requests are quick, halved when they fail.
        package var firstBatch = 10
        /// Operations in a request at most; a group that is larger goes alone.
        package var largestBatch = WireLimits.operationsPerPush
        /// A request slower than this does not make the next one larger, in milliseconds.
        package var quickMilliseconds: Int64 = 1_000
        package init() {}
    }

    private enum Phase: Equatable { case pushing, pulling, pushingReleased, finished }

    private let lease: Lease
    private let settings: Settings
    private var phase = Phase.pushing
    private var batchLimit: Int
    private var hasRefreshed = false
    private var hasResynced = false
    private var hasNewIdentity = false
    private var hasFailedAlone = false
    private var calmSeconds: Int?
    private var wantsToken = false
    private var canVoid = true
    private var asked: Set<OperationID> = []

    /// What the run has done so far.
    package private(set) var pushed = PushOutcome.Summary()
    /// What the run has taken in so far.
    package private(set) var pulled = PullApply.Summary()
    /// Why it ended, once it has.
    package private(set) var end: End?
    /// Requests that were sent.
    package private(set) var requests = 0

    /// The batch size that worked last, for the next run.
    package var workingBatch: Int { batchLimit }

    /// A run under `lease`.
    package init(lease: Lease, settings: Settings = Settings(), batchLimit: Int? = nil) {
        self.lease = lease
        self.settings = settings
        self.batchLimit = min(batchLimit ?? settings.firstBatch, settings.largestBatch)
    }

    /// Decides what to do next.
    package mutating func next(_ db: LocalDatabase, now: Timestamp) throws -> Need {
        if end != nil { return .finish }
        if wantsToken { return .refreshToken }
        do {
            switch phase {
            case .pushing, .pushingReleased:
                if let doubtful = try operationsToVoid(db) {
                    requests += 1
                    return .void(doubtful)
                }
                let limits = PushPlan.Limits(operations: batchLimit)
                if let batch = try PushPlan.next(db, lease: lease, limits: limits, now: now) {
                    requests += 1
                    return .push(batch)
                }
                if phase == .pushingReleased { return try finish(.done, db, now: now) }
                phase = .pulling
                return try next(db, now: now)
            case .pulling:
                requests += 1
                return .pull(cursor: try PullApply.cursor(db))
            case .finished: return .finish
            }
        } catch is LeaseLost {
            return try finish(.leaseHeld, db, now: now)
        }
    }

    /// The operations in doubt that the server has not been asked about in this run.
    private mutating func operationsToVoid(_ db: LocalDatabase) throws -> [OperationID]? {
        guard canVoid else { return nil }
        let ids = try InDoubt(db).toVoid(limit: WireLimits.operationsPerPush).map(\.id)
        let new = ids.filter { asked.insert($0).inserted }
        return new.isEmpty ? nil : ids
    }

    /// Takes in the server's word on operations in doubt; `nil` where it has none to give.
    package mutating func voided(
        _ answer: Result<PushResponse?, ExchangeFailure>,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        do {
            switch answer {
            case .success(let response?):
                guard try accepts(response.account, db, now: now) else { return }
                let summary = try PushOutcome.voided(
                    db,
                    lease: lease,
                    results: response.results,
                    now: now,
                    backoff: settings.backoff,
                    random: &random
                )
                pushed = pushed + summary
            case .success(nil), .failure(.misconfigured): canVoid = false
            case .failure(let failure):
                if failure == .unauthenticated { asked = [] }
                try fail(failure, db, now: now, random: &random)
            }
        } catch is LeaseLost {
            _ = try finish(.leaseHeld, db, now: now)
        }
    }

    /// Takes in what came of a push; `elapsed` is in milliseconds.
    package mutating func pushed(
        _ answer: Result<PushResponse, ExchangeFailure>,
        _ batch: PushBatch,
        elapsed: Int64,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        do {
            switch answer {
            case .success(let response):
                guard try accepts(response.account, db, now: now) else { return }
                let summary = try PushOutcome.apply(
                    db,
                    lease: lease,
                    batch: batch,
                    results: response.results,
                    now: now,
                    backoff: settings.backoff,
                    random: &random
                )
                pushed = pushed + summary
                if summary == PushOutcome.Summary() {
                    // Results that name none of our operations would be asked for again and again.
                    try fail(
                        .unreachable("the answer names none of the operations sent"),
                        db,
                        now: now,
                        random: &random
                    )
                    return
                }
                calmSeconds = response.calmSeconds ?? calmSeconds
                try Schedule(db).succeeded()
                if elapsed <= settings.quickMilliseconds {
                    batchLimit = min(batchLimit * 2, settings.largestBatch)
                }
            case .failure(let failure):
                try failed(failure, batch, db, now: now, random: &random)
            }
        } catch is LeaseLost {
            _ = try finish(.leaseHeld, db, now: now)
        }
    }

    private mutating func failed(
        _ failure: ExchangeFailure,
        _ batch: PushBatch,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        let isAlone = batch.groupCount == 1
        switch failure {
        case .tooLarge where isAlone:
            pushed =
                pushed
                + (try PushOutcome.reject(
                    db,
                    lease: lease,
                    batch: batch,
                    code: "too_large",
                    message: "the server refuses a change of this size",
                    now: now,
                    random: &random
                ))
        case .invalid(let problem) where isAlone:
            pushed =
                pushed
                + (try PushOutcome.reject(
                    db,
                    lease: lease,
                    batch: batch,
                    code: problem.code,
                    message: problem.detail,
                    now: now,
                    random: &random
                ))
        case .serverError(let status) where isAlone:
            pushed =
                pushed
                + (try PushOutcome.countAttempt(
                    db,
                    lease: lease,
                    batch: batch,
                    reason: "the server failed with status \(status)",
                    now: now,
                    backoff: settings.backoff,
                    random: &random
                ))
            // One group that makes the server fail must not keep the others from going; a second says it is the server.
            if hasFailedAlone { try fail(failure, db, now: now, random: &random) }
            hasFailedAlone = true
        case .tooLarge, .invalid, .serverError:
            // Half as much finds the group at fault, and lets the others through: in this run, since on some systems each
            // run is a process of its own, which remembers nothing.
            batchLimit = max(1, batch.entries.count / 2)
        case .unreachable:
            batchLimit = max(1, batch.entries.count / 2)
            try fail(failure, db, now: now, random: &random)
        default:
            try fail(failure, db, now: now, random: &random)
        }
    }

    /// Takes in what came of a pull that was asked with `cursor`.
    package mutating func pulled(
        _ answer: Result<PullPage, ExchangeFailure>,
        askedWith cursor: String?,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        switch answer {
        case .failure(.resyncRequired) where !hasResynced:
            hasResynced = true
            try PullApply.restart(db)
        case .failure(let failure):
            try fail(failure, db, now: now, random: &random)
        case .success(let page):
            guard try accepts(page.account, db, now: now) else { return }
            // A page that leads nowhere would be asked for for ever.
            if page.more, page.cursor == cursor {
                try fail(
                    .unreachable("the server's page does not move the cursor"),
                    db,
                    now: now,
                    random: &random
                )
                return
            }
            try take(page, askedWith: cursor, db, now: now, random: &random)
        }
    }

    private mutating func take(
        _ page: PullPage,
        askedWith cursor: String?,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        let summary: PullApply.Summary
        do {
            guard
                let taken = try PullApply.page(
                    db,
                    lease: lease,
                    page,
                    askedWith: cursor,
                    now: now,
                    random: &random
                )
            else { return }
            summary = taken
        } catch is LeaseLost {
            _ = try finish(.leaseHeld, db, now: now)
            return
        }
        calmSeconds = page.calmSeconds ?? calmSeconds
        pulled.pulled += summary.pulled
        pulled.settled += summary.settled
        pulled.parked += summary.parked
        if !page.more {
            try Schedule(db).succeeded()
            phase = .pushingReleased
        }
    }

    /// Whether an answer that was given to `account` may still be taken in; if not, the run is over.
    private mutating func accepts(_ account: String?, _ db: LocalDatabase, now: Timestamp) throws -> Bool {
        let refusal = try db.connection.transaction { () -> End? in
            if try !lease.isCurrent(db) { return .leaseHeld }
            return try FileAccount(db).admits(account) ? nil : .otherAccount
        }
        if let refusal { _ = try finish(refusal, db, now: now) }
        return refusal == nil
    }

    /// Takes in whether a fresh token was got.
    package mutating func refreshed(_ worked: Bool, _ db: LocalDatabase, now: Timestamp) throws {
        wantsToken = false
        if !worked { _ = try finish(.needsSignIn, db, now: now) }
    }

    /// Ends the run because its task was cancelled: what was on the wire stays in doubt, and nothing counts as a failure.
    package mutating func stopped(_ db: LocalDatabase, now: Timestamp) throws {
        _ = try finish(.stopped, db, now: now)
    }

    private mutating func fail(
        _ failure: ExchangeFailure,
        _ db: LocalDatabase,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        let schedule = Schedule(db)
        switch failure {
        case .unauthenticated where !hasRefreshed:
            hasRefreshed = true
            wantsToken = true
            return
        case .unauthenticated: _ = try finish(.needsSignIn, db, now: now)
        case .otherAccount: _ = try finish(.otherAccount, db, now: now)
        case .forbidden(let reason): _ = try finish(.forbidden(reason), db, now: now)
        case .misconfigured(let reason): _ = try finish(.misconfigured(reason), db, now: now)
        case .needsUpgrade: _ = try finish(.needsUpgrade, db, now: now)
        case .serverBehind: _ = try finish(.serverBehind, db, now: now)
        case .deviceReset where !hasNewIdentity:
            // A restored or cloned file: a new name, under which the same operations go again.
            hasNewIdentity = true
            try db.setMeta("device", .text(UUIDText.version7(at: now, using: &random)))
        case .deviceReset: _ = try finish(.deviceReset, db, now: now)
        case .unreachable(let reason):
            try schedule.offline(settings.backoff, now: now, random: &random)
            _ = try finish(.offline(reason), db, now: now)
        case .busy(let seconds):
            try schedule.failed(settings.backoff, atLeast: seconds, now: now, random: &random)
            _ = try finish(.busy("the server asks for time"), db, now: now)
        case .inProgress:
            try schedule.failed(settings.backoff, now: now, random: &random)
            _ = try finish(.busy("the server is still working on the last request"), db, now: now)
        case .serverError(let status):
            try schedule.failed(settings.backoff, now: now, random: &random)
            _ = try finish(.busy("the server failed with status \(status)"), db, now: now)
        case .tooLarge, .invalid, .resyncRequired:
            try schedule.failed(settings.backoff, now: now, random: &random)
            _ = try finish(.busy("the server refuses the request"), db, now: now)
        }
    }

    private mutating func finish(_ end: End, _ db: LocalDatabase, now: Timestamp) throws -> Need {
        self.end = end
        phase = .finished
        try Schedule(db).note(end)
        if end == .done, let calmSeconds { try Schedule(db).calm(seconds: calmSeconds, now: now) }
        try lease.release(db)
        return .finish
    }
}
