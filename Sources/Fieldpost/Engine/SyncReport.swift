internal import FieldpostCore
package import FieldpostSQLite

/// What a run of sync did, and why it ended.
public struct SyncReport: Equatable, Sendable {
    /// Whether the server was reached.
    public var isOnline: Bool
    /// Why the run ended; empty when everything was done.
    public var reason: String
    /// Operations settled as applied.
    public var pushed = 0
    /// Operations that lost against the server's row.
    public var conflicts = 0
    /// Operations that became dead letters.
    public var rejected = 0
    /// Changes from the server that altered a local row.
    public var pulled = 0
    package var end: SyncRun.End
    /// What the local file failed with, when it did.
    package var storeFailure: StoreError.Code?

    init(end: SyncRun.End) {
        self.end = end
        reason = end == .done ? "" : end.json["message"]?.string ?? ""
        isOnline = if case .offline = end { false } else { true }
    }

    init(run: SyncRun) {
        self.init(end: run.end ?? .done)
        pushed = run.pushed.applied + run.pulled.settled
        conflicts = run.pushed.conflicts
        rejected = run.pushed.rejected
        pulled = run.pulled.pulled
    }

    /// The local file failed during the run.
    init(failure: any Error) {
        self.init(end: .storeFailed("the local store failed: \(failure)"))
        storeFailure = (failure as? StoreError)?.code
    }
}
