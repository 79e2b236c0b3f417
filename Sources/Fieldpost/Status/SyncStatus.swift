public import FieldpostCore
internal import FieldpostSQLite

/// Where a user's data stands: counts of operations, and the sentence to show.
public struct SyncStatus: Equatable, Sendable {
    /// The overall state.
    public enum State: String, Sendable, CaseIterable {
        /// Nothing is waiting.
        case allSynced
        /// Work waits to be sent.
        case waiting
        /// Work is on the wire.
        case syncing
        /// Work waits for the network.
        case offline
        /// A person has to decide about failed or conflicting work.
        case needsAttention
        /// A person has to sign in.
        case needsSignIn
        /// The account may not do this.
        case forbidden
        /// The server's address is wrong.
        case misconfigured
        /// The app has to be updated.
        case needsUpgrade
        /// The server has to be updated.
        case serverBehind
        /// The local file failed.
        case storeFailed
    }

    /// The overall state.
    public var state = State.allSynced
    /// Operations made before anyone has signed in.
    public var local = 0
    /// Operations waiting to be sent.
    public var pending = 0
    /// Operations on the wire.
    public var inFlight = 0
    /// Operations waiting for another one.
    public var held = 0
    /// Dead letters.
    public var failed = 0
    /// Conflicts to settle.
    public var conflicts = 0
    /// When a checkpoint was last reached.
    public var lastSync: Timestamp?
    /// The code and the words of the last failure.
    public var lastError: (code: String, message: String)? {
        get { errorCode.map { ($0, errorMessage) } }
        set { (errorCode, errorMessage) = (newValue?.code, newValue?.message ?? "") }
    }
    private var errorCode: String?
    private var errorMessage = ""

    /// Everything is synced.
    public init() {}

    /// One quiet sentence for people.
    public var sentence: String {
        let open = local + pending + inFlight + held
        switch state {
        case .allSynced: return "All changes synced"
        case .waiting: return "\(changes(open)) waiting to be sent"
        case .syncing: return "Sending \(changes(open))"
        case .offline: return open == 0 ? "No network; nothing waits" : "\(changes(open)) waiting for network"
        case .needsAttention:
            let count = failed + conflicts
            return count == 1 ? "1 change needs attention" : "\(count) changes need attention"
        case .needsSignIn: return "Sign in to sync" + (open > 0 ? "; \(changes(open)) waiting" : "")
        case .forbidden: return "This account may not sync here"
        case .misconfigured: return "The server's address is wrong"
        case .needsUpgrade: return "Update the app to sync"
        case .serverBehind: return "The server has to be updated"
        case .storeFailed: return "The local data cannot be read"
        }
    }

    /// The status as programs read it.
    public var json: JSONObject {
        let error: JSON =
            lastError.map { ["code": .string($0.code), "message": .string($0.message)] } ?? .null
        return [
            "state": .string(state.rawValue), "local": .integer(Int64(local)),
            "pending": .integer(Int64(pending)),
            "inFlight": .integer(Int64(inFlight)), "held": .integer(Int64(held)),
            "failed": .integer(Int64(failed)),
            "conflicts": .integer(Int64(conflicts)), "sentence": .string(sentence),
            "last_sync_ms": lastSync.map { .integer($0.milliseconds) } ?? .null, "last_error": error,
        ]
    }

    private func changes(_ count: Int) -> String { count == 1 ? "1 change" : "\(count) changes" }
}

/// Where one row stands; the first that fits.
public enum RowStatus: String, Sendable, CaseIterable {
    /// An operation on it was refused, or waits for one that was.
    case failed
    /// An operation on it is on the wire.
    case inFlight
    /// An operation on it waits.
    case pending
    /// An operation on it waits and nobody has ever signed in.
    case local
    /// The server has it.
    case synced
}

/// Reads statuses from the tables: the one truth, right at every moment.
struct StatusReader {
    private let connection: Connection
    private let context: TransactionContext

    init(_ context: TransactionContext) {
        connection = context.connection
        self.context = context
    }

    /// The status as the file has it, unless the engine has failed at the file and could not write so.
    func status(failure: String?) throws -> SyncStatus {
        var status = try status()
        guard let failure else { return status }
        status.pending += status.inFlight
        status.inFlight = 0
        status.lastError = (SyncStatus.State.storeFailed.rawValue, failure)
        status.state = .storeFailed
        return status
    }

    private func status() throws -> SyncStatus {
        var status = SyncStatus()
        let lease = try connection.query("SELECT last_sync_at, last_error FROM fieldpost_lease")[0]
        let onWire =
            try connection.scalar(
                "SELECT count(*) FROM fieldpost_outbox WHERE state = 0 AND seq IN (SELECT value FROM json_each(?))",
                .text(try Lease.onWire(context))
            )?
            .integer ?? 0
        let ready = try count("state = 0") + count("state = 1") - Int(onWire)
        if try isSignedIn() { status.pending = ready } else { status.local = ready }
        status.inFlight = Int(onWire)
        status.held = try count("state >= 2 AND state = 2")
        status.failed = try count("state >= 2 AND state = 3")
        status.conflicts = Int(
            try connection.scalar("SELECT count(*) FROM fieldpost_conflicts")?.integer ?? 0
        )
        status.lastSync = lease[0].integer.map { Timestamp(milliseconds: $0) }
        if let error = try lease[1].text.flatMap({ try JSON(text: $0).object }) {
            status.lastError = (error["code"]?.string ?? "", error["message"]?.string ?? "")
        }
        status.state = state(of: status)
        return status
    }

    private func state(of status: SyncStatus) -> SyncStatus.State {
        let code = status.lastError?.code
        if let code, let paused = SyncStatus.State(rawValue: code), paused != .offline { return paused }
        if status.failed + status.conflicts > 0 { return .needsAttention }
        if status.inFlight > 0 { return .syncing }
        // Without a network nobody knows what has changed on the server, whatever is waiting here.
        if code == "offline" { return .offline }
        return status.pending + status.local + status.held == 0 ? .allSynced : .waiting
    }

    private func count(_ condition: String) throws -> Int {
        Int(try connection.scalar("SELECT count(*) FROM fieldpost_outbox WHERE \(condition)")?.integer ?? 0)
    }

    private func isSignedIn() throws -> Bool {
        try connection.scalar("SELECT 1 FROM fieldpost_meta WHERE key = 'account'") != nil
    }

    func status(of row: String, table: Table) throws -> RowStatus {
        let states = try connection.query(
            """
            SELECT state, state = 0 AND seq IN (SELECT value FROM json_each(?)) FROM fieldpost_outbox WHERE row = ? AND tbl = ?
            """,
            .text(try Lease.onWire(context)),
            .text(row),
            .text(table.name)
        )
        if states.contains(where: { ($0[0].integer ?? 0) >= 2 }) { return .failed }
        if states.contains(where: { $0[1] == .integer(1) }) { return .inFlight }
        if !states.isEmpty { return try isSignedIn() ? .pending : .local }
        let exists = try connection.scalar(
            "SELECT 1 FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = ?",
            .text(row)
        )
        guard exists != nil else {
            throw FieldpostError(.rowMissing, "\(table.name) has no row with this key.")
        }
        return .synced
    }
}
