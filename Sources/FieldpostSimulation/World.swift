internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostTesting

/// The state of one simulation and the things that can happen next.
final class World {
    let configuration: Simulation.Configuration
    var random: SeededRandom
    var now = Timestamp(milliseconds: 1_764_460_800_000)
    let server: SimulatedServer
    let devices: [SimulatedDevice]
    var report = Simulation.Report()
    /// The operations that the server has settled, and how far its log was read for them.
    private(set) var settled: Set<String> = []
    private var settledUpTo: Int64 = 0
    /// Requests that the network may still deliver once more.
    private var strays: [(device: String, body: [UInt8])] = []

    init(_ configuration: Simulation.Configuration, folder: String) throws {
        self.configuration = configuration
        var random = SeededRandom(seed: configuration.seed)
        server = try SimulatedServer(
            path: "\(folder)/server.db",
            schema: Workload.schema,
            now: now,
            random: &random
        )
        let start = now
        devices = try (0..<configuration.devices).map { index in
            try SimulatedDevice(
                name: "phone \(index + 1)",
                path: "\(folder)/phone\(index + 1).db",
                schema: Workload.schema,
                now: start,
                random: &random
            )
        }
        self.random = random
    }

    func close() {
        for device in devices { device.database.connection.close() }
        server.connection.close()
    }

    /// Reads on in the server's log.
    func readSettled() throws {
        try server.connection.forEach(
            "SELECT id, rowid FROM fieldpost_operations WHERE rowid > ? ORDER BY rowid",
            [.integer(settledUpTo)]
        ) { row in
            settled.insert(row.text(0))
            settledUpTo = row.integer(1)
        }
    }

    func note(_ kind: String, _ line: String) {
        report.counts[kind, default: 0] += 1
        report.story.append("\(now.milliseconds - 1_764_460_800_000) ms: \(line)")
    }

    /// Lets one thing happen.
    func step() throws {
        now = now.adding(milliseconds: Int64(random.below(400)))
        let device = devices[random.below(devices.count)]
        switch random.below(100) {
        case 0..<35: try write(device)
        case 35..<85: try advance(device)
        case 85..<88:
            device.isOnline.toggle()
            note(
                device.isOnline ? "online" : "offline",
                "\(device.name) is \(device.isOnline ? "online" : "offline")"
            )
        case 88..<91: try restart(device, "killed while idle")
        case 91..<94: try deliverStray()
        case 94..<96: now = now.adding(milliseconds: Int64(random.below(200_000)))
        default: try refusedWrite(device)
        }
    }

    private func countdown(_ percent: Int, upTo bound: Int) -> Int? {
        random.chance(percent) ? random.below(bound) : nil
    }

    private func restart(_ device: SimulatedDevice, _ why: String) throws {
        note("device killed", "\(device.name) was \(why)")
        try device.restart(now: now, random: &random)
        try Checks(self).nothingLost(on: device)
    }

    // MARK: What people do

    private func write(_ device: SimulatedDevice) throws {
        let change = try Workload.change(on: device.database, now: now, random: &random)
        if try device.write(at: now, killedAfter: countdown(6, upTo: 12), change) {
            note("write", "\(device.name) wrote\(change.story)")
        } else {
            try restart(device, "killed during a write")
        }
    }

    /// A write that fails leaves neither row nor operation.
    private func refusedWrite(_ device: SimulatedDevice) throws {
        let connection = device.database.connection
        let before = try connection.scalar("SELECT count(*) FROM fieldpost_outbox")
        let id = UUIDText.version7(at: now, using: &random)
        do {
            try device.database.write(at: now) {
                try connection.run(
                    "INSERT INTO orders (id, branch_id, total_idr) VALUES (?, 'B1', 1)",
                    .text(id)
                )
                try connection.run("UPDATE orders SET total_idr = -1 WHERE id = ?", .text(id))
            }
        } catch is FieldpostError {
            let row = try connection.scalar("SELECT 1 FROM orders WHERE id = ?", .text(id))
            if try row != nil || connection.scalar("SELECT count(*) FROM fieldpost_outbox") != before {
                throw Violation(message: "P1: a write that failed left something behind on \(device.name)")
            }
            note("refused write", "\(device.name) tried a negative total")
            return
        }
        throw Violation(message: "a failing check let a write through on \(device.name)")
    }

    // MARK: Sync

    /// Takes one step of the device's run: begin, send, or receive.
    private func advance(_ device: SimulatedDevice) throws {
        do {
            if device.run == nil { return try begin(device) }
            if device.exchange == nil { return try send(device) }
            try exchange(device)
        } catch let error as StoreError where error.code == .killed {
            try restart(device, "killed")
        }
    }

    private func begin(_ device: SimulatedDevice) throws {
        let (now, batch) = (now, device.workingBatch)
        let isImpatient = random.chance(30)
        let run = try device.living(killedAfter: countdown(3, upTo: 6)) { database -> SyncRun? in
            if isImpatient { try Schedule(database).reset() }
            if try Schedule(database).due(now: now) > now.milliseconds { return nil }
            let lease = try Lease.acquire(database, owner: device.owner, now: now) { $0 == device.owner }
            return lease.map { SyncRun(lease: $0, batchLimit: batch) }
        }
        guard let run else { return try restart(device, "killed while starting a run") }
        device.run = run
    }

    private func send(_ device: SimulatedDevice) throws {
        guard var run = device.run else { return }
        let now = now
        let need = try device.living(killedAfter: countdown(4, upTo: 12)) { try run.next($0, now: now) }
        guard let need else { return try restart(device, "killed while planning") }
        device.run = run
        switch need {
        case .finish:
            device.workingBatch = run.workingBatch
            note("run", "\(device.name) ended a run: \(run.end.map { "\($0)" } ?? "")")
            device.run = nil
            try Checks(self).nothingLost(on: device)
        case .push(let batch): device.exchange = .push(batch, sentAt: now.milliseconds)
        case .pull(let cursor): device.exchange = .pull(cursor: cursor)
        case .void(let operations): device.exchange = .void(operations)
        case .refreshToken: try run.refreshed(true, device.database, now: now)
        }
    }

    private func exchange(_ device: SimulatedDevice) throws {
        guard var run = device.run, let exchange = device.exchange else { return }
        device.exchange = nil
        let now = now
        let kill = countdown(8, upTo: 60)
        var draws = random
        let done: Void?
        switch exchange {
        case .push(let batch, let sentAt):
            let answer = try self.answer(to: batch, from: device)
            draws = random
            done = try device.living(killedAfter: kill) { database in
                try run.pushed(
                    answer,
                    batch,
                    elapsed: now.milliseconds - sentAt,
                    database,
                    now: now,
                    random: &draws
                )
            }
        case .void(let operations):
            let answer = try self.answer(toVoid: operations, from: device)
            draws = random
            done = try device.living(killedAfter: kill) { database in
                try run.voided(answer, database, now: now, random: &draws)
            }
        case .pull(let cursor):
            let answer = try self.answer(toPull: cursor, from: device)
            let before = try Checks.unsent(device)
            draws = random
            done = try device.living(killedAfter: kill) { database in
                try run.pulled(answer, askedWith: cursor, database, now: now, random: &draws)
            }
            if done != nil { try Checks(self).unsentEditsSurvive(before, on: device) }
        }
        random = draws
        guard done != nil else { return try restart(device, "killed while taking in an answer") }
        device.run = run
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
        note("push", "\(device.name): a push of \(batch.entries.count) was answered")
        do throws(ExchangeFailure) { return .success(try AnswerTable.push(answer, now: now)) } catch {
            return .failure(error)
        }
    }

    /// Delivers a push to the server, which may die over it; `nil` when it gave no answer.
    private func deliver(_ body: [UInt8], _ device: String) throws -> HTTPAnswer? {
        let kill = countdown(8, upTo: 80)
        if let answer = try server.push(body, from: device, killedAfter: kill, now: now) { return answer }
        note("server killed", "the server was killed during a push")
        try server.restart(now: now, random: &random)
        return nil
    }

    private func deliverStray() throws {
        guard !strays.isEmpty else { return }
        let stray = strays.remove(at: random.below(strays.count))
        note("late request", "a push that was on its way for long arrived")
        _ = try deliver(stray.body, stray.device)
    }

    private func answer(toVoid operations: [OperationID], from device: SimulatedDevice) throws -> Result<
        PushResponse?, ExchangeFailure
    > {
        guard device.isOnline, !random.chance(8) else { return .failure(.unreachable("offline")) }
        let id = try device.database.deviceID()
        let kill = countdown(8, upTo: 20)
        guard let answer = try server.void(operations, from: id, killedAfter: kill, now: now) else {
            note("server killed", "the server was killed while it voided operations")
            try server.restart(now: now, random: &random)
            return .failure(.unreachable("reset"))
        }
        if random.chance(12) { return .failure(.unreachable("answer lost")) }
        note("void", "\(device.name) asked about \(operations.count) operations in doubt")
        do throws(ExchangeFailure) { return .success(try AnswerTable.push(answer, now: now)) } catch {
            return .failure(error)
        }
    }

    private func answer(toPull cursor: String?, from device: SimulatedDevice) throws -> Result<
        PullPage, ExchangeFailure
    > {
        guard device.isOnline, !random.chance(8) else { return .failure(.unreachable("offline")) }
        let limit = random.below(7) + 1
        guard
            let answer = try server.pull(cursor, limit: limit, from: try device.database.deviceID(), now: now)
        else {
            return .failure(.unreachable("reset"))
        }
        note("pull", "\(device.name) pulled up to \(limit) rows")
        do throws(ExchangeFailure) { return .success(try AnswerTable.pull(answer, now: now)) } catch {
            return .failure(error)
        }
    }

    // MARK: The end

    /// The network heals and every device syncs until nothing is left; then every promise is checked.
    func heal() throws {
        while !strays.isEmpty { try deliverStray() }
        for round in 0..<60 {
            var isQuiet = true
            for device in devices {
                device.isOnline = true
                device.run = nil
                device.exchange = nil
                now = now.adding(milliseconds: Lease.milliseconds + 1)
                if try !syncCleanly(device) { isQuiet = false }
            }
            if isQuiet, round > 0 { return try Checks(self).everything() }
        }
        throw Violation(message: "P3: the devices did not come to rest after the network healed")
    }

    /// One run over a perfect network; `true` when it found nothing to do.
    private func syncCleanly(_ device: SimulatedDevice) throws -> Bool {
        try Schedule(device.database).reset()
        guard let lease = try Lease.acquire(device.database, owner: device.owner, now: now) else {
            return false
        }
        var run = SyncRun(lease: lease)
        let id = try device.database.deviceID()
        while true {
            switch try run.next(device.database, now: now) {
            case .finish:
                return run.end == .done && run.pushed == PushOutcome.Summary() && run.pulled.pulled == 0
            case .refreshToken: try run.refreshed(false, device.database, now: now)
            case .push(let batch):
                guard let answer = try server.push(batch.body, from: id, killedAfter: nil, now: now) else {
                    continue
                }
                let result = Result { () throws(ExchangeFailure) in try AnswerTable.push(answer, now: now) }
                try run.pushed(result, batch, elapsed: 1, device.database, now: now, random: &random)
            case .void(let operations):
                guard let answer = try server.void(operations, from: id, killedAfter: nil, now: now) else {
                    continue
                }
                let response = try AnswerTable.push(answer, now: now)
                try run.voided(.success(response), device.database, now: now, random: &random)
            case .pull(let cursor):
                guard let answer = try server.pull(cursor, limit: 50, from: id, now: now) else { continue }
                let result = Result { () throws(ExchangeFailure) in try AnswerTable.pull(answer, now: now) }
                try run.pulled(result, askedWith: cursor, device.database, now: now, random: &random)
            }
            if run.requests > 500 { throw Violation(message: "P3: a run on \(device.name) does not end") }
        }
    }
}
