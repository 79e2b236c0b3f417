internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostTesting

/// Runs of sync, step by step, over a network that loses, doubles, delays and refuses.
extension World {
    /// Takes one step of a process's run: begin, send, or receive.
    func advance(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        do {
            if app.run == nil { return try begin(device, app) }
            if app.exchange == nil { return try send(device, app) }
            try exchange(device, app)
        } catch let error as StoreError where error.code == .killed {
            try restart(device, app, "killed")
        }
    }

    private func begin(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        let (time, batch) = (device.clock(now), app.workingBatch)
        let isImpatient = random.chance(30)
        // On some systems a process cannot see whether another one lives, and waits for the lease to run out.
        let knowsOwners = random.chance(50)
        let begun = try app.living(killedAfter: countdown(3, upTo: 6)) { database -> Lease? in
            if isImpatient { try Schedule(database).reset() }
            if try Schedule(database).due(now: time) > time.milliseconds { return nil }
            return try Lease.acquire(database, owner: app.owner, now: time) {
                !knowsOwners || device.isRunning($0)
            }
        }
        guard let begun else { return try restart(device, app, "killed while starting a run") }
        guard let lease = begun else { return }
        app.fence = lease.fence
        app.run = SyncRun(lease: lease, batchLimit: batch)
        note(app === device.apps[0] ? "app run" : "extension run", "\(app.name) began a run")
    }

    private func send(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        guard var run = app.run else { return }
        let time = device.clock(now)
        let need = try app.living(killedAfter: countdown(4, upTo: 12)) { try run.next($0, now: time) }
        guard let need else { return try restart(device, app, "killed while planning") }
        switch need {
        case .finish:
            app.workingBatch = run.workingBatch
            note("run", "\(app.name) ended a run: \(run.end.map { "\($0)" } ?? "")")
            app.run = nil
            return try Checks(self).nothingLost(on: device)
        case .push(let batch): app.exchange = .push(batch, sentAt: time.milliseconds)
        case .pull(let cursor): app.exchange = .pull(cursor: cursor)
        case .void(let operations): app.exchange = .void(operations)
        case .refreshToken:
            let isSignedIn = random.chance(80)
            note("sign-in", "\(app.name) \(isSignedIn ? "got" : "did not get") a fresh token")
            try run.refreshed(isSignedIn, app.database, now: time)
        }
        app.run = run
    }

    private func exchange(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        guard let exchange = app.exchange else { return }
        app.exchange = nil
        let time = device.clock(now)
        let kill = countdown(8, upTo: 60)
        let isAlive: Bool
        switch exchange {
        case .push(let batch, let sentAt):
            let answer = try self.answer(to: batch, from: device)
            isAlive = try receive(device, app, kill) { run, database, random in
                try run.pushed(
                    answer,
                    batch,
                    elapsed: time.milliseconds - sentAt,
                    database,
                    now: time,
                    random: &random
                )
            }
        case .void(let operations):
            let answer = try self.answer(toVoid: operations, from: device)
            isAlive = try receive(device, app, kill) { run, database, random in
                try run.voided(answer, database, now: time, random: &random)
            }
        case .pull(let cursor):
            let answer = try self.answer(toPull: cursor, from: device)
            let before = try Checks.unsent(device)
            isAlive = try receive(device, app, kill) { run, database, random in
                try run.pulled(answer, askedWith: cursor, database, now: time, random: &random)
            }
            if isAlive { try Checks(self).unsentEditsSurvive(before, on: device) }
        }
        if !isAlive { try restart(device, app, "killed while taking in an answer") }
    }

    /// Reports an answer to the run; one for an owner that has lost the lease must change no operation.
    ///
    /// - Returns: whether the process survived it.
    private func receive(
        _ device: SimulatedDevice,
        _ app: SimulatedApp,
        _ kill: Int?,
        _ body: (inout SyncRun, LocalDatabase, inout SeededRandom) throws -> Void
    ) throws -> Bool {
        guard var run = app.run else { return true }
        let (isStale, before, pushed) = (try app.isStale(), try Checks.outbox(device), run.pushed)
        var draws = random
        let done: Void? = try app.living(killedAfter: kill) { try body(&run, $0, &draws) }
        random = draws
        guard done != nil else { return false }
        app.run = run
        if !app.isAlive {
            note("device killed", "\(app.name) was killed after it took in an answer")
            try app.restart(now: device.clock(now), random: &random)
        }
        let after = try Checks.outbox(device)
        if isStale {
            note("stale answer", "\(app.name) had lost the lease when an answer came")
            if run.pushed != pushed || after != before {
                throw Violation(message: "a stale owner's answer changed the outbox of \(device.name)")
            }
        }
        noteRenames(of: device, before, after)
        note("rejection", run.pushed.rejected - pushed.rejected, "\(app.name) has new dead letters")
        note("conflict", run.pushed.conflicts - pushed.conflicts, "\(app.name) lost edits")
        note("held", run.pushed.held - pushed.held, "\(app.name) holds what depends on a dead letter")
        return true
    }

    /// An edit that waited for an answer gives its group new ids once it is here.
    func noteRenames(of device: SimulatedDevice, _ before: [[Value]], _ after: [[Value]]) {
        let ids = Dictionary(uniqueKeysWithValues: after.map { ($0[0], $0[1]) })
        for entry in before {
            if let new = ids[entry[0]], new != entry[1] {
                device.rename(entry[1].text ?? "", to: new.text ?? "")
                device.sentAgain.insert(entry[2].integer ?? 0)
                note("edit carried out", "\(entry[1]) of \(device.name) is \(new) now")
            }
        }
    }

    // MARK: The network

    private func answer(to batch: PushBatch, from device: SimulatedDevice) throws -> Result<
        PushResponse, ExchangeFailure
    > {
        guard device.isOnline else { return .failure(.unreachable("offline")) }
        let id = try device.database.deviceID()
        if random.chance(10) {
            note("request lost", "\(device.name): a push of \(batch.entries.count) was lost on the way")
            if random.chance(50) { strays.append((id, batch.body)) }
            return .failure(.unreachable("lost"))
        }
        if let refusal = gate(device) { return push(refusal) }
        guard let answer = try deliver(batch.body, id) else { return .failure(.unreachable("reset")) }
        if random.chance(8) {
            note("request doubled", "\(device.name): the network delivered a push twice")
            _ = try deliver(batch.body, id)
        }
        if random.chance(8) { strays.append((id, batch.body)) }
        if random.chance(12) {
            note("answer lost", "\(device.name): the answer to a push of \(batch.entries.count) was lost")
            return .failure(.unreachable("answer lost"))
        }
        if random.chance(3) {
            note("gave up", "\(device.name): a gateway gave up on a push that arrived")
            return .failure(.busy(retryAfterSeconds: nil))
        }
        note("push", "\(device.name): a push of \(batch.entries.count) was answered \(answer.status)")
        return push(answer)
    }

    func push(_ answer: HTTPAnswer) -> Result<PushResponse, ExchangeFailure> {
        if answer.status == 500 { note("poison", "the server failed on a push") }
        if answer.status == 413 { note("too large", "the server found a push too large") }
        return Result { () throws(ExchangeFailure) in try AnswerTable.push(answer, now: now) }
    }

    func page(_ answer: HTTPAnswer) -> Result<PullPage, ExchangeFailure> {
        Result { () throws(ExchangeFailure) in try AnswerTable.pull(answer, now: now) }
    }

    /// What stands before the server and may answer in its place.
    private func gate(_ device: SimulatedDevice) -> HTTPAnswer? {
        switch random.below(100) {
        case 0..<3:
            let status = [429, 502, 503, 504][random.below(4)]
            let seconds = random.chance(70) ? ["Retry-After": "\(random.below(300))"] : [:]
            note("busy", "\(device.name) was asked to come back later (\(status))")
            return SimulatedServer.refusal(status, headers: seconds)
        case 3..<6:
            note("signed out", "\(device.name)'s token had run out")
            return SimulatedServer.refusal(401)
        default: return nil
        }
    }

    /// Delivers a push to the server, which may die over it; `nil` when it gave no answer.
    private func deliver(_ body: [UInt8], _ device: String) throws -> HTTPAnswer? {
        let kill = countdown(8, upTo: 80)
        var waiting: [Int: Int64] = [:]
        for index in 0..<10 where random.chance(2) { waiting[index] = Int64(random.below(30_000)) }
        let answer = try server.push(body, from: device, waiting: waiting, killedAfter: kill, now: now)
        if let answer {
            let text = String(decoding: answer.body, as: UTF8.self)
            if text.contains(#""status":"retry""#) {
                note("retry later", "the server could not take all of a push")
            }
            return answer
        }
        note("server killed", "the server was killed during a push")
        try server.restart(now: now, random: &random)
        for device in devices { try Checks(self).groupsWhole(of: device) }
        return nil
    }

    func deliverStray() throws {
        guard !strays.isEmpty else { return }
        let stray = strays.remove(at: random.below(strays.count))
        note("late request", "a push that was on its way for long arrived")
        _ = try deliver(stray.body, stray.device)
    }

    private func answer(toVoid operations: [OperationID], from device: SimulatedDevice) throws -> Result<
        PushResponse?, ExchangeFailure
    > {
        guard device.isOnline, !random.chance(8) else { return .failure(.unreachable("offline")) }
        if let refusal = gate(device) { return push(refusal).map(Optional.some) }
        let id = try device.database.deviceID()
        let kill = countdown(8, upTo: 20)
        guard let answer = try server.void(operations, from: id, killedAfter: kill, now: now) else {
            note("server killed", "the server was killed while it voided operations")
            try server.restart(now: now, random: &random)
            return .failure(.unreachable("reset"))
        }
        if random.chance(12) { return .failure(.unreachable("answer lost")) }
        note("void", "\(device.name) asked about \(operations.count) operations in doubt")
        return push(answer).map(Optional.some)
    }

    private func answer(toPull cursor: String?, from device: SimulatedDevice) throws -> Result<
        PullPage, ExchangeFailure
    > {
        guard device.isOnline, !random.chance(8) else { return .failure(.unreachable("offline")) }
        if let refusal = gate(device) { return page(refusal) }
        let limit = random.below(7) + 1
        guard
            let answer = try server.pull(cursor, limit: limit, from: try device.database.deviceID(), now: now)
        else {
            return .failure(.unreachable("reset"))
        }
        note("pull", "\(device.name) pulled up to \(limit) rows")
        return page(answer)
    }
}
