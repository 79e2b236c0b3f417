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
        let failures = try failures() + 1
        let asked = Int64(seconds ?? 0) * 1_000
        try wait(max(asked, backoff.delay(failures: failures, using: &random)), failures: failures, now: now)
    }

    /// There was no network: wait as after any failure, and where delays grow no more, the whole of the longest.
    ///
    /// So a phone without a signal wakes once in that time; the random delays before it have spread the phones.
    func offline(_ backoff: Backoff, now: Timestamp, random: inout some RandomNumberGenerator) throws {
        let failures = try failures() + 1
        var steady = backoff
        steady.jitter = .none
        let longest = steady.delay(failures: failures, using: &random)
        let delay =
            longest >= backoff.capMilliseconds ? longest : backoff.delay(failures: failures, using: &random)
        try wait(delay, failures: failures, now: now)
    }

    private func failures() throws -> Int {
        Int(try db.connection.scalar("SELECT failures FROM fieldpost_lease")?.integer ?? 0)
    }

    private func wait(_ delay: Int64, failures: Int, now: Timestamp) throws {
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
    /// Never further away than the delay was long: a wall clock that was set back must not stall the work. The delay is
    /// then counted from now on, since the time it was counted from is still to come.
    package func due(now: Timestamp) throws -> Int64 {
        let row = try db.connection.query("SELECT next_run_at, run_delay FROM fieldpost_lease")[0]
        let (due, longest) = (row[0].integer ?? 0, now.milliseconds + (row[1].integer ?? 0))
        if due <= longest { return due }
        try db.connection.run("UPDATE fieldpost_lease SET next_run_at = ?", .integer(longest))
        return longest
    }

    /// Whether the last run ended without a network that leads to the server.
    func wasOffline() throws -> Bool {
        let error = try db.connection.scalar("SELECT last_error FROM fieldpost_lease")?.text
        return try error.map { try JSON(text: $0).object?["code"]?.string == "offline" } ?? false
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
