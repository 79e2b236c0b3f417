package import FieldpostCore
internal import FieldpostSQLite

/// When the next run may start by itself, kept in the file so that a restart does not forget it.
package struct Schedule {
    let db: LocalDatabase

    package init(_ db: LocalDatabase) { self.db = db }

    /// The request worked: no reason to wait.
    func succeeded() throws {
        try db.connection.run(
            """
            UPDATE fieldpost_lease SET failures = 0, next_run_at = 0, last_error = NULL
            WHERE failures > 0 OR next_run_at > 0 OR last_error IS NOT NULL
            """
        )
    }

    /// The request worked, and the server asks for calm before the next run.
    func calm(seconds: Int, now: Timestamp) throws {
        let delay = Int64(seconds) * 1_000
        try db.connection.run(
            "UPDATE fieldpost_lease SET next_run_at = ?, run_delay = ?",
            .integer(now.milliseconds + delay),
            .integer(delay)
        )
    }

    /// The request failed: wait longer than last time, and at least as long as the server asks.
    func failed(
        _ backoff: Backoff,
        atLeast seconds: Int? = nil,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws {
        let failures = Int(try db.connection.scalar("SELECT failures FROM fieldpost_lease")?.integer ?? 0) + 1
        let asked = Int64(seconds ?? 0) * 1_000
        let delay = max(asked, backoff.delay(failures: failures, using: &random))
        try db.connection.run(
            "UPDATE fieldpost_lease SET failures = ?, next_run_at = ?, run_delay = ?",
            .integer(Int64(failures)),
            .integer(now.milliseconds + delay),
            .integer(delay)
        )
    }

    /// Forgets the delay: the network changed, the app came to the foreground, or a person asked.
    package func reset() throws {
        try db.connection.run("UPDATE fieldpost_lease SET failures = 0, next_run_at = 0")
        try db.connection.run(
            "UPDATE fieldpost_outbox SET state = 0, next_attempt_at = NULL WHERE state = 1"
        )
    }

    /// When the next run is due, in milliseconds since 1970; 0 for at once.
    ///
    /// Never further away than the delay was long: a wall clock that was set back must not stall the work. The nearer time
    /// is kept, since one reckoned anew at each look would never come.
    package func due(now: Timestamp) throws -> Int64 {
        try db.connection.run(
            "UPDATE fieldpost_lease SET next_run_at = ?1 + run_delay WHERE next_run_at > ?1 + run_delay",
            .integer(now.milliseconds)
        )
        return try db.connection.scalar("SELECT next_run_at FROM fieldpost_lease")?.integer ?? 0
    }

    /// Keeps why the last run ended, where that says something about the work: another process sending, or a run that
    /// was stopped, does not.
    func note(_ end: SyncRun.End) throws {
        if end == .leaseHeld || end == .stopped { return }
        let error: Value = end == .done ? .null : .text(end.json.text)
        try db.connection.run(
            "UPDATE fieldpost_lease SET last_error = ? WHERE last_error IS NOT ?",
            error,
            error
        )
    }
}

extension SyncRun.End {
    /// The state's word and the reason.
    var json: JSONObject {
        let (code, message): (String, String) =
            switch self {
            case .done: ("done", "")
            case .offline(let reason): ("offline", reason)
            case .busy(let reason): ("busy", reason)
            case .needsSignIn: ("needsSignIn", "the token is missing, unknown or expired")
            case .otherAccount: ("needsSignIn", "the token belongs to another account than this file")
            case .signedOut: ("needsSignIn", "the account has signed out of this file")
            case .forbidden(let reason): ("forbidden", reason)
            case .misconfigured(let reason): ("misconfigured", reason)
            case .needsUpgrade: ("needsUpgrade", "the server speaks a newer protocol; update the app")
            case .serverBehind: ("serverBehind", "the server's schema is older than the app's")
            case .deviceReset: ("deviceReset", "the server knows another history of this device")
            case .leaseHeld: ("leaseHeld", "another process is sending")
            case .stopped: ("stopped", "the run was stopped")
            case .storeFailed(let reason): ("storeFailed", reason)
            }
        return ["code": .string(code), "message": .string(message)]
    }
}
