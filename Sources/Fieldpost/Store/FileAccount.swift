internal import FieldpostCore
internal import FieldpostSQLite

/// Whose file this is: the app's own name for the account, and the server's.
///
/// Both are fixed at first use. The server's is sent with every request from then on, so that a token of another
/// account is refused before anything of this file reaches that account.
struct FileAccount {
    private let db: LocalDatabase
    private static let name = "account"
    private static let atServer = "server_account"
    private static let signedOut = "signed_out"

    init(_ db: LocalDatabase) { self.db = db }

    /// What the server calls it; `nil` before the first answer.
    func boundTo() throws -> String? { try db.meta(Self.atServer)?.text }

    /// Whether an answer given to `account` is meant for this file; the first one binds it.
    ///
    /// A server that tells no accounts is believed.
    func admits(_ account: String?) throws -> Bool {
        guard let account else { return true }
        if let bound = try boundTo() { return bound == account }
        try db.setMeta(Self.atServer, .text(account))
        return true
    }

    /// Whether its user has signed out and left work in it.
    func isSignedOut() throws -> Bool { try db.meta(Self.signedOut) != nil }

    /// Gives the file to `account`, or back to it.
    func signIn(_ account: String) throws {
        switch try db.meta(Self.name) {
        case .text(account)?: break
        case .some:
            throw FieldpostError(
                .wrongState,
                "The file belongs to another account; open another file for this one."
            )
        case nil: try db.setMeta(Self.name, .text(account))
        }
        if try isSignedOut() { try db.setMeta(Self.signedOut, .null) }
    }

    /// Ends the use of the file, as `policy` says.
    func signOut(
        _ policy: SignOutPolicy,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        if policy == .discard { return try empty(UUIDText.version7(at: now, using: &random)) }
        try db.connection.transaction(.immediate) {
            let unsent = try db.connection.scalar("SELECT count(*) FROM fieldpost_outbox")?.integer ?? 0
            if policy == .refuse, unsent > 0 {
                let changes = unsent == 1 ? "1 change is" : "\(unsent) changes are"
                throw FieldpostError(
                    .unsentWork,
                    "\(changes) not on the server yet; sync first, or sign out with keep or discard.",
                    names: ["\(unsent)"]
                )
            }
            try db.setMeta(Self.signedOut, .integer(1))
            try endRuns()
        }
    }

    /// Whoever is still sending finds another fence, and its answer changes nothing here.
    private func endRuns() throws {
        try db.connection.run(
            "UPDATE fieldpost_lease SET owner = NULL, fence = fence + 1, expires_at = 0, on_wire = '[]'"
        )
    }

    /// Takes everything of the account out of the file, and its bytes too.
    ///
    /// - Parameter device: what the installation is called from now on.
    private func empty(_ device: String) throws {
        try db.connection.run("PRAGMA secure_delete = ON")
        defer { try? db.connection.run("PRAGMA secure_delete = OFF") }
        try db.applying {
            let own = try db.connection.query(
                """
                SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'fieldpost_*'
                AND name NOT IN ('fieldpost_meta', 'fieldpost_session', 'fieldpost_lease')
                """
            ).compactMap { $0[0].text }
            for table in own + db.schema.tables.map(\.name) {
                try db.connection.run("DELETE FROM \(quoted(table))")
            }
            let keys = ["cursor", "refetch", Self.name, Self.atServer, Self.signedOut]
            for key in keys { try db.setMeta(key, .null) }
            try db.setMeta("device", .text(device))
            try endRuns()
            try db.connection.run(
                """
                UPDATE fieldpost_lease SET failures = 0, next_run_at = 0, run_delay = 0, last_sync_at = NULL,
                  last_error = NULL
                """
            )
        }
    }
}

/// What becomes of changes that are not on the server when someone signs out.
public enum SignOutPolicy: Sendable, CaseIterable {
    /// Nobody is signed out while there are any.
    case refuse
    /// They stay in the file, which is closed and goes on once the same account signs in again.
    case keep
    /// They are given up, and everything else in the file with them.
    case discard
}
