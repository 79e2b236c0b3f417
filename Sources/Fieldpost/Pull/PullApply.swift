package import FieldpostCore
internal import FieldpostSQLite

/// What a page of the server's feed changes in the file.
///
/// The page and its cursor are written in one transaction: a crash fetches a page again and never skips one. A change
/// that cannot be applied is set aside with its reason, and the page goes on.
package enum PullApply {
    /// What became of a page.
    package struct Summary: Equatable, Sendable {
        /// Changes that altered a local row.
        package var pulled = 0
        /// Operations found settled.
        package var settled = 0
        /// Changes set aside.
        package var parked = 0

        package init() {}
    }

    /// The cursor of the next page; `nil` before the first.
    package static func cursor(_ db: LocalDatabase) throws -> String? { try db.meta("cursor")?.text }

    /// Applies `page`, which was asked for with `cursor`.
    ///
    /// - Returns: `nil`, with nothing changed, when the stored cursor is no longer the one asked with: another process
    ///   was faster, and its page counts.
    /// - Throws: ``LeaseLost`` when another owner has taken over, or the file was given up.
    package static func page(
        _ db: LocalDatabase,
        lease: Lease,
        _ page: PullPage,
        askedWith cursor: String?,
        now: Timestamp,
        random: inout some RandomNumberGenerator
    ) throws -> Summary? {
        try db.applying {
            guard try lease.isCurrent(db) else { throw LeaseLost() }
            guard try self.cursor(db) == cursor else { return nil }
            var summary = Summary()
            var outcome = PushOutcome(db, now: now)
            // First what was settled, so that an echo can never come before its acknowledgement.
            try outcome.settlePulled(page.settled)
            summary.settled = outcome.summary.applied
            let refetched = try refetched(db)
            for change in page.changes {
                try apply(change, db, isRefetched: refetched.contains(change.table), &summary)
            }
            for fault in page.unreadable {
                summary.parked += 1
                // What it was about cannot be read either; its place in the feed is the only name it has.
                try Parked(db).add(
                    table: "",
                    row: "\(cursor ?? "") \(fault.place)",
                    version: 0,
                    set: nil,
                    reason: fault.message
                )
            }
            try outcome.decide(random: &random)
            try Parked(db).forgetReplaced()
            try db.setMeta("cursor", .text(page.cursor))
            if !page.more {
                if !refetched.isEmpty { try db.setMeta("refetch", .null) }
                try db.connection.run(
                    "UPDATE fieldpost_lease SET last_sync_at = ?",
                    .integer(now.milliseconds)
                )
            }
            return summary
        }
    }

    /// Forgets the cursor, so that the next pull starts from the beginning.
    ///
    /// Rows and unsettled work stay. The server may count its versions anew, so that none that is known says what is newer.
    package static func restart(_ db: LocalDatabase) throws {
        try db.connection.transaction {
            try db.setMeta("cursor", .null)
            try db.connection.run("UPDATE fieldpost_rows SET version = 0")
            try db.connection.run("UPDATE fieldpost_parked SET version = 0")
        }
    }

    /// The tables whose rows are taken once more at the version that is known, for columns that are new here.
    private static func refetched(_ db: LocalDatabase) throws -> Set<String> {
        let list = try db.meta("refetch")?.text.flatMap { try JSON(text: $0).array } ?? []
        return Set(list.compactMap(\.string))
    }

    private static func apply(
        _ change: PulledChange,
        _ db: LocalDatabase,
        isRefetched: Bool,
        _ summary: inout Summary
    ) throws {
        guard let table = db.schema.table(change.table) else {
            summary.parked += 1
            return try Parked(db).add(
                table: change.table,
                row: change.row,
                version: change.version,
                set: change.set,
                reason: "the app's schema has no such table"
            )
        }
        let state = RowState(db: db, table: table, row: change.row)
        if let version = try state.known().version {
            if change.version < version || change.version == version && !isRefetched { return }
        }
        let pending = try db.operations(on: change.row, of: table)
        switch try state.takeOrPark(change.set, version: change.version, pending: pending) {
        case .changed: summary.pulled += 1
        case .unchanged: break
        case .parked: summary.parked += 1
        }
    }
}
