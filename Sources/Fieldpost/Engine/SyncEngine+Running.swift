public import FieldpostCore

extension SyncEngine {
    /// Runs sync whenever there is a reason to, until cancelled.
    ///
    /// A second call while one is going on adds nothing, and waits for its own cancellation. Reasons are the start, a write that leaves operations (by another process too), a network that came back
    /// (``Environment/connectivity``), a message of the server, ``foreground()``, ``poke()``, a delay that is over, and five
    /// minutes without any of these. After a run that found no network, the server's own answer to a small request
    /// decides whether anything else is sent.
    ///
    /// - Throws: `CancellationError` once cancelled; a store error when the file fails.
    public func run() async throws {
        if isFollowing {
            // One loop serves everybody; this call ends with its task, as the first does.
            while true { try await store.environment.sleep(.seconds(3_600)) }
        }
        isFollowing = true
        defer { isFollowing = false }
        // Begun before the first run, so that nothing that happens from now on is missed.
        let hints = store.environment.connectivity.hints()
        let writes = store.hub.listen { [weak self] in self?.note(.wrote) }
        defer { withExtendedLifetime(writes) {} }
        note(.asked)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { for await hint in hints { self.note(.connectivity(hint)) } }
            group.addTask { await self.hearServer() }
            try await self.followTriggers()
        }
        try Task.checkCancellation()
    }

    /// Says that there is a reason to sync, which only the app knows.
    public nonisolated func poke() { note(.asked) }

    /// Says that the app came to the foreground: it syncs at once, whatever delay earlier failures have left.
    public nonisolated func foreground() { note(.foreground) }

    /// Syncs once, as ``sync()`` does, and stops in time: for a while in the background that the system grants.
    ///
    /// A second before `deadline` the request that is out is cut. Its operations stay in the outbox and go again with the
    /// same bytes, other processes may send at once, and nothing counts as a failure.
    ///
    ///     let report = await engine.run(until: deadline)
    ///
    /// - Returns: what the run did; one that was cut says so in ``SyncReport/reason``.
    public func run(until deadline: Timestamp) async -> SyncReport {
        let environment = store.environment
        let left = deadline.milliseconds - environment.now().milliseconds - Self.closingMilliseconds
        if left <= 0 { return SyncReport(end: .stopped) }
        return await withTaskGroup(of: SyncReport?.self) { group in
            group.addTask { await self.run(for: .background) }
            group.addTask {
                try? await environment.sleep(.milliseconds(left))
                return nil
            }
            var report: SyncReport?
            for await ended in group {
                // Whichever is first ends the other: a run that is over needs no alarm, and the alarm cuts the run.
                group.cancelAll()
                report = ended ?? report
            }
            return report ?? SyncReport(end: .stopped)
        }
    }

    /// What it takes to write down how a run ended, on slow storage.
    private static let closingMilliseconds: Int64 = 1_000
    /// The longest time between two runs when nothing is known to be waiting.
    private static let idleMilliseconds: Int64 = 300_000
    /// The time between two looks at a lease that another process holds.
    private static let leasePollMilliseconds: Int64 = 2_000

    nonisolated func note(_ event: RunTriggers.Event) {
        takeIn(event)
        alarm.raise()
    }

    private nonisolated func takeIn(_ event: RunTriggers.Event) {
        let environment = store.environment
        var random = environment.random
        triggers.withLock { $0.note(event, at: environment.uptime(), using: &random) }
    }

    private func followTriggers() async throws {
        while !Task.isCancelled {
            let now = store.environment.uptime()
            switch triggers.withLock({ $0.next(at: now) }) {
            case .wait(let milliseconds): await pause(atMost: .milliseconds(milliseconds))
            case .run(let forgettingBackoff):
                let report = await run(for: .trigger(forgettingBackoff: forgettingBackoff))
                takeIn(.ended(nextIn: try await nextPause(after: report.end)))
                // Cut by another's deadline: the reason for it stands.
                if report.end == .stopped, !Task.isCancelled { takeIn(.wrote) }
            }
        }
    }

    private func nextPause(after end: SyncRun.End) async throws -> Int64 {
        let due = try await store.writer.perform { db, now, _ in
            let run = try Schedule(db).due(now: now)
            // A run that ended early has not looked at what waits: to come back for it at once would never end.
            let operation = end == .done ? try PushPlan.nextDue(db) : nil
            let next =
                run > now.milliseconds
                ? run : min(operation ?? .max, now.milliseconds + Self.idleMilliseconds)
            return end == .leaseHeld ? Self.leasePollMilliseconds : next - now.milliseconds
        }
        return min(due, Self.idleMilliseconds)
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

    // MARK: How a run begins

    /// Why no run is to begin; `nil` when one is.
    func open(for causes: [Cause]) async throws -> SyncRun.End? {
        let isAsked = causes.contains { $0 == .asked || $0 == .background }
        let forgets = isAsked || causes.contains(.trigger(forgettingBackoff: true))
        let (opening, device) = try await store.writer.perform {
            db,
            now,
            _ -> (RunTriggers.Opening?, String) in
            let schedule = Schedule(db)
            if try FileAccount(db).isSignedOut() {
                try schedule.note(.signedOut)
                return (nil, "")
            }
            if forgets { try schedule.reset() }
            let opening = RunTriggers.opening(
                isAsked: isAsked,
                delay: try schedule.due(now: now) - now.milliseconds,
                wasOffline: try schedule.wasOffline()
            )
            return (opening, try db.deviceID())
        }
        switch opening {
        case nil: return .signedOut
        case .run: return nil
        case .notDue: return .busy("the next run is not due yet")
        case .probe: return try await probe(device)
        }
    }

    private func probe(_ device: String) async throws -> SyncRun.End? {
        let environment = store.environment
        let context = RequestContext(
            token: nil,
            device: device,
            schema: store.schema.version,
            now: environment.now(),
            nonce: environment.randomBits()
        )
        if await transport.probe(context) { return nil }
        if Task.isCancelled { return .stopped }
        let backoff = settings.backoff
        let end = SyncRun.End.offline("the server does not answer")
        try await store.writer.perform { db, now, random in
            try Schedule(db).offline(backoff, now: now, random: &random)
            try Schedule(db).note(end)
        }
        return end
    }
}
