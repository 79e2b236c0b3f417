package import FieldpostCore
internal import FieldpostSQLite

/// The right to send, held by one owner at a time across processes.
///
/// An owner that died stops nobody for longer than the lease lasts, and a stale owner's answers are refused: each owner
/// has a higher fence than the last. Operations themselves are not marked, so a kill leaves nothing to repair.
package struct Lease: Equatable, Sendable {
    /// Tells this owner from all before.
    package let fence: Int64

    /// Longer than any request can take before it is cut off, so that only the dead lose it.
    package static let milliseconds: Int64 = 60_000

    /// Takes the lease for `owner`, or returns `nil` while another's has not run out, or nobody is signed in.
    ///
    /// - Parameter isAlive: whether an owner's process may still run; a dead one's lease is free at once, so that an app
    ///   that was killed and started again goes on without waiting.
    package static func acquire(
        _ db: LocalDatabase,
        owner: String,
        now: Timestamp,
        isAlive: (String) -> Bool = { _ in true }
    ) throws -> Lease? {
        try db.connection.transaction(.immediate) {
            if try FileAccount(db).isSignedOut() { return nil }
            let row = try db.connection.query("SELECT owner, expires_at, fence FROM fieldpost_lease")[0]
            let expiry = row[1].integer ?? 0
            // An expiry further away than a lease can last comes from a clock that was set back since.
            let isHeld = expiry > now.milliseconds && expiry <= now.milliseconds + milliseconds
            if let holder = row[0].text, holder != owner, isHeld, isAlive(holder) { return nil }
            let fence = (row[2].integer ?? 0) + 1
            try db.connection.run(
                "UPDATE fieldpost_lease SET owner = ?, fence = ?, expires_at = ?, on_wire = '[]'",
                .text(owner),
                .integer(fence),
                .integer(now.milliseconds + milliseconds)
            )
            return Lease(fence: fence)
        }
    }

    /// Gives the lease back, unless someone else has it by now.
    package func release(_ db: LocalDatabase) throws {
        try db.connection.run(
            "UPDATE fieldpost_lease SET owner = NULL, expires_at = 0, on_wire = '[]' WHERE fence = ?",
            .integer(fence)
        )
    }

    /// Gives back whatever `owner` holds, after a run that could not end by itself.
    static func release(_ db: LocalDatabase, owner: String) throws {
        try db.connection.run(
            "UPDATE fieldpost_lease SET owner = NULL, expires_at = 0, on_wire = '[]' WHERE owner = ?",
            .text(owner)
        )
    }

    /// Whether this owner still holds it; to be asked inside the transaction that relies on it.
    func isCurrent(_ db: LocalDatabase) throws -> Bool {
        try db.connection.scalar("SELECT fence FROM fieldpost_lease") == .integer(fence)
    }

    /// Notes, before the first byte leaves, what is about to be sent: from now on its bytes are fixed.
    func willSend(_ db: LocalDatabase, _ seqs: [Int64], now: Timestamp) throws {
        let list = JSON.array(seqs.map(JSON.integer)).text()
        try db.connection.run(
            "UPDATE fieldpost_lease SET on_wire = ?, sent_upto = max(sent_upto, ?), expires_at = ? WHERE fence = ?",
            .text(list),
            .integer(seqs.last ?? 0),
            .integer(now.milliseconds + Self.milliseconds),
            .integer(fence)
        )
    }

    /// Notes that nothing is on the wire any more.
    func wireIsClear(_ db: LocalDatabase) throws {
        try db.connection.run("UPDATE fieldpost_lease SET on_wire = '[]' WHERE fence = ?", .integer(fence))
    }

    /// The places in the request that is out, as JSON.
    ///
    /// Empty once the owner is gone: what a killed process has left in the row is on no wire.
    static func onWire(_ context: TransactionContext) throws -> String {
        let row = try context.connection.query("SELECT on_wire, owner, expires_at FROM fieldpost_lease")[0]
        let left = (row[2].integer ?? 0) - context.now.milliseconds
        guard let owner = row[1].text, (1...milliseconds).contains(left),
            context.environment.isOwnerAlive(owner)
        else {
            return "[]"
        }
        return row[0].text ?? "[]"
    }
}
