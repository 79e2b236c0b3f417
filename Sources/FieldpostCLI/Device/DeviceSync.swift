internal import Fieldpost
internal import FieldpostCore

/// One sync as a person asks for it: at once, whatever the backoff, and with a little patience.
struct DeviceSync: Sendable {
    let store: Store
    let engine: SyncEngine

    /// All the sleeping one sync may do.
    static let patienceMilliseconds: Int64 = 2_000
    /// Runs within one sync, so that a server that answers “retry” at once does not use up an operation's attempts.
    static let maxRetries = 3
    /// How often to look whether another process has finished its run.
    private static let leasePollMilliseconds: Int64 = 100

    /// Syncs until nothing more can go or patience ends; the counts are those of all runs.
    func run() async throws -> SyncReport {
        var total = await engine.sync()
        var patience = Self.patienceMilliseconds
        var retries = 0
        while let pause = try await pause(after: total, retries: &retries), pause <= patience {
            patience -= pause
            try await store.environment.sleep(.milliseconds(pause))
            var next = await engine.sync()
            next.pushed += total.pushed
            next.conflicts += total.conflicts
            next.rejected += total.rejected
            next.pulled += total.pulled
            total = next
        }
        return total
    }

    private func pause(after report: SyncReport, retries: inout Int) async throws -> Int64? {
        switch report.end {
        case .leaseHeld: return Self.leasePollMilliseconds
        case .done where retries < Self.maxRetries:
            retries += 1
            return try await store.writer.perform { db, now, _ in
                try PushPlan.nextDue(db).map { max(1, $0 - now.milliseconds) }
            }
        default: return nil
        }
    }
}
