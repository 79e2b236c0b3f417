internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostServer
internal import FieldpostTesting

/// The state of one simulation and the things that can happen next.
final class World {
    let configuration: Simulation.Configuration
    var random: SeededRandom
    var now = World.start
    let server: SimulatedServer
    let devices: [SimulatedDevice]
    var report = Simulation.Report()
    /// The operations that the server has settled, and how far its log was read for them.
    private(set) var settled: Set<String> = []
    private var settledUpTo: Int64 = 0
    /// Requests that the network may still deliver once more.
    var strays: [(device: String, body: [UInt8])] = []

    static let start = Timestamp(milliseconds: 1_764_460_800_000)

    init(_ configuration: Simulation.Configuration, folder: String) throws {
        self.configuration = configuration
        var random = SeededRandom(seed: configuration.seed)
        server = try SimulatedServer(path: "\(folder)/server.db", now: now, random: &random)
        devices = try (0..<configuration.devices).map { index in
            try SimulatedDevice(
                name: "phone \(index + 1)",
                path: "\(folder)/phone\(index + 1).db",
                now: World.start,
                random: &random
            )
        }
        self.random = random
    }

    func close() {
        for app in devices.flatMap(\.apps) { app.database.connection.close() }
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

    func note(_ kind: String, _ line: String) { note(kind, 1, line) }

    func note(_ kind: String, _ count: Int, _ line: String) {
        if count == 0 { return }
        report.counts[kind, default: 0] += count
        report.story.append("\(now.milliseconds - World.start.milliseconds) ms: \(line)")
    }

    func countdown(_ percent: Int, upTo bound: Int) -> Int? {
        random.chance(percent) ? random.below(bound) : nil
    }

    /// Lets one thing happen.
    func step() throws {
        now = now.adding(milliseconds: Int64(random.below(400)))
        let device = devices[random.below(devices.count)]
        let app = device.apps[random.chance(25) ? 1 : 0]
        switch random.below(100) {
        case 0..<30: try write(device, app)
        case 30..<80: try advance(device, app)
        case 80..<84:
            // More often with a network than without.
            device.isOnline = !device.isOnline || random.chance(60)
            let word = device.isOnline ? "online" : "offline"
            note(word, "\(device.name) is \(word)")
        case 84..<86: try restart(device, app, "killed while idle")
        case 86..<88: try deliverStray()
        case 88..<91: now = now.adding(milliseconds: Int64(random.below(200_000)))
        case 91..<92: time(device)
        case 92..<98: try repair(device, app)
        default: try refusedWrite(device, app)
        }
        // A kill after the last commit is only seen afterwards.
        if !app.isAlive { try restart(device, app, "killed at the end") }
    }

    func restart(_ device: SimulatedDevice, _ app: SimulatedApp, _ why: String) throws {
        note("device killed", "\(app.name) was \(why)")
        try app.restart(now: device.clock(now), random: &random)
        try Checks(self).nothingLost(on: device)
    }

    /// The phone's clock jumps, or it sleeps.
    private func time(_ device: SimulatedDevice) {
        let day: Int64 = 86_400_000
        switch random.below(5) {
        case 0..<2:
            device.clockOffset += day + Int64(random.below(1_000_000))
            note("clock ahead", "the clock of \(device.name) was set a day ahead")
        case 2..<4:
            device.clockOffset -= day + Int64(random.below(1_000_000))
            note("clock back", "the clock of \(device.name) was set a day back")
        default:
            now = now.adding(milliseconds: 7 * day)
            note("sleep", "everybody slept for a week")
        }
    }

    // MARK: What people do

    private func write(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        let time = device.clock(now)
        let change = try Workload.change(on: app.database, now: time, random: &random)
        let kill = countdown(6, upTo: 12)
        do {
            if try device.write(by: app, at: time, killedAfter: kill, change) {
                note("write", "\(app.name) wrote\(change.story)")
            } else {
                try restart(device, app, "killed during a write")
            }
        } catch let error as FieldpostError where error.code == .check {
            note("broken reference", "\(app.name) could not write\(change.story): rows refer to each other")
        }
    }

    /// A write that fails leaves neither row nor operation.
    private func refusedWrite(_ device: SimulatedDevice, _ app: SimulatedApp) throws {
        let connection = app.database.connection
        let before = try connection.scalar("SELECT count(*) FROM fieldpost_outbox")
        let id = UUIDText.version7(at: now, using: &random)
        do {
            try app.database.write(at: device.clock(now)) {
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
            note("refused write", "\(app.name) tried a negative total")
            return
        }
        throw Violation(message: "a failing check let a write through on \(device.name)")
    }
}
