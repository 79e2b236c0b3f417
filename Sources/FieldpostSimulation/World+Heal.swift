internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// The end: the network heals, every device syncs until nothing is left, and every promise is checked.
extension World {
    func heal() throws {
        while !strays.isEmpty { try deliverStray() }
        for device in devices {
            device.isOnline = true
            for app in device.apps { (app.run, app.exchange) = (nil, nil) }
        }
        switch random.below(3) {
        case 0: try healByTime()
        // Some systems start a process for each run.
        case let way: try healByHand(isOpenedAnew: way == 1)
        }
        try Checks(self).everything()
    }

    /// Somebody opens each app again and again.
    private func healByHand(isOpenedAnew: Bool) throws {
        note(
            isOpenedAnew ? "opened anew" : "healed by hand",
            "the network is whole, and people ask for syncs"
        )
        for round in 0..<200 {
            var isQuiet = true
            for device in devices {
                now = now.adding(milliseconds: Lease.milliseconds + 1)
                if try isOpenedAnew && Checks(self).waiting(on: device) > 0 {
                    try device.apps[0].restart(now: device.clock(now), random: &random)
                }
                try Schedule(device.database).reset()
                if try !run(device) { isQuiet = false }
            }
            if isQuiet, round > 0 { return }
        }
        throw Violation(message: "P3: the phones did not come to rest: \(try unrest())")
    }

    /// Nobody does anything: each app waits as long as its schedule says, and no longer.
    private func healByTime() throws {
        note("healed by time", "the network is whole, and nobody does anything")
        let end = now.adding(milliseconds: Self.longestRest)
        var wakes = devices.map { _ in now }
        var quiet: Set<String> = []
        while quiet.count < devices.count {
            guard let index = wakes.indices.min(by: { wakes[$0] < wakes[$1] }) else { return }
            let device = devices[index]
            now = max(now, wakes[index]).adding(milliseconds: 1)
            if now > end {
                throw Violation(message: "P3: the phones did not come to rest by time alone: \(try unrest())")
            }
            if try run(device) {
                quiet.insert(device.name)
            } else {
                quiet.remove(device.name)
            }
            wakes[index] = now.adding(milliseconds: try pause(device))
        }
    }

    /// What still could go, and where it stands.
    private func unrest() throws -> String {
        try devices.map { device in
            let left = try device.database.connection.query(
                """
                SELECT seq, id, state, attempts, after, next_attempt_at - ?1, last_attempt_at - ?1 FROM fieldpost_outbox
                WHERE state < 2 ORDER BY seq LIMIT 3
                """,
                .integer(device.clock(now).milliseconds)
            )
            return "\(device.name) has \(left.map { "\($0)" }.joined(separator: " and "))"
        }.joined(separator: "; ")
    }

    /// Eight attempts of a few poisonous groups, each after the longest backoff, and a lease that runs out.
    private static let longestRest: Int64 = 6 * 3_600_000

    /// How long an engine sleeps, at most five minutes, before it looks again.
    private func pause(_ device: SimulatedDevice) throws -> Int64 {
        let time = device.clock(now)
        let due = try Schedule(device.database).due(now: time)
        let operation = try PushPlan.nextDue(device.database) ?? .max
        let next = due > time.milliseconds ? due : min(operation, time.milliseconds + 300_000)
        return min(max(next - time.milliseconds, 1_000), 300_000)
    }

    /// One run over a perfect network; `true` when it found nothing to do.
    private func run(_ device: SimulatedDevice) throws -> Bool {
        let app = device.apps[0]
        let time = device.clock(now)
        if try Schedule(app.database).due(now: time) > time.milliseconds { return false }
        guard
            let lease = try Lease.acquire(
                app.database,
                owner: app.owner,
                now: time,
                isAlive: device.isRunning
            )
        else {
            return false
        }
        let before = try Checks.outbox(device)
        var run = SyncRun(lease: lease, batchLimit: app.workingBatch)
        let id = try app.database.deviceID()
        while true {
            if run.requests > 1_000 { throw Violation(message: "P3: a run on \(device.name) does not end") }
            switch try run.next(app.database, now: time) {
            case .finish:
                app.workingBatch = run.workingBatch
                noteRenames(of: device, before, try Checks.outbox(device))
                note(
                    "run",
                    "\(app.name) ended a run of \(run.requests) requests: \(run.end.map { "\($0)" } ?? "")"
                )
                let isDone = run.end == .done && run.pushed == PushOutcome.Summary() && run.pulled.pulled == 0
                return try isDone && Checks(self).waiting(on: device) == 0
            case .refreshToken: try run.refreshed(false, app.database, now: time)
            case .push(let batch):
                guard let answer = try server.push(batch.body, from: id, now: now) else { continue }
                try run.pushed(push(answer), batch, elapsed: 1, app.database, now: time, random: &random)
            case .void(let operations):
                guard let answer = try server.void(operations, from: id, now: now) else { continue }
                try run.voided(push(answer).map(Optional.some), app.database, now: time, random: &random)
            case .pull(let cursor):
                guard let answer = try server.pull(cursor, limit: 50, from: id, now: now) else { continue }
                try run.pulled(page(answer), askedWith: cursor, app.database, now: time, random: &random)
            }
        }
    }
}
