internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite
internal import FieldpostTesting

/// One phone: a real file, two processes on it, a clock of its own, and what its user was told.
final class SimulatedDevice {
    let name: String
    /// The app, and its extension.
    let apps: [SimulatedApp]
    var isOnline = true
    /// How far the phone's clock is ahead of the world's, in milliseconds.
    var clockOffset: Int64 = 0
    /// The operations of every write that returned to the user, less those the server has settled.
    private(set) var unsettled: Set<String> = []
    /// What the user was told was added to each counter.
    private(set) var counted: [String: Int64] = [:]
    /// Ids that operations had before a person sent them again.
    private(set) var formerIDs: Set<String> = []
    /// The groups that a person has sent again.
    var sentAgain: Set<Int64> = []

    /// The file, by the app's connection.
    var database: LocalDatabase { apps[0].database }

    init(name: String, path: String, now: Timestamp, random: inout SeededRandom) throws {
        self.name = name
        apps = [
            try SimulatedApp(name: name, path: path, now: now, random: &random),
            try SimulatedApp(name: "\(name)'s extension", path: path, now: now, random: &random),
        ]
    }

    /// The time on this phone.
    func clock(_ now: Timestamp) -> Timestamp { now.adding(milliseconds: clockOffset) }

    /// Whether the lease's owner still runs.
    func isRunning(_ owner: String) -> Bool { apps.contains { $0.owner == owner } }

    func forget(settled: Set<String>) { unsettled.subtract(settled) }

    /// An operation has another id from now on.
    func rename(_ old: String, to new: String) {
        if unsettled.remove(old) != nil { unsettled.insert(new) }
        formerIDs.insert(old)
    }

    /// A write as the app makes it; its operations count as confirmed once it returns.
    func write(
        by app: SimulatedApp,
        at now: Timestamp,
        killedAfter statements: Int?,
        _ change: Workload.Change
    )
        throws -> Bool
    {
        let before = try operations()
        let done: Void? = try app.living(killedAfter: statements) { database in
            try database.write(at: now) {
                for statement in change.statements {
                    try database.connection.run(statement.sql, statement.arguments)
                }
            }
        }
        guard done != nil else { return false }
        unsettled.formUnion(try operations().subtracting(before))
        for (row, amount) in change.counted { counted[row, default: 0] += amount }
        return true
    }

    private func operations() throws -> Set<String> {
        Set(try database.connection.query("SELECT id FROM fieldpost_outbox").compactMap { $0[0].text })
    }
}
