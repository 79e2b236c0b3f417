package import FieldpostCore
package import FieldpostSQLite

/// Serves the feed page by page, from one read transaction.
///
/// A row comes as it is now, once, at the place of its latest change. A page may be cut anywhere; the last one ends at what
/// had happened when it was read, so that an operation without a trace in the feed is behind its cursor too.
package struct Feed {
    let core: ServerCore
    let connection: Connection
    let credential: Credential

    /// Bytes of values after which a page is cut; escaping makes them up to six times as many, within what devices accept.
    private static let pageBytes = 4 << 20
    /// Results of the device's own operations in one page; few enough to stay small beside the rows.
    var settledPerPage = 2_000

    package init(_ core: ServerCore, _ connection: Connection, credential: Credential) {
        self.core = core
        self.connection = connection
        self.credential = credential
    }

    /// What came after `cursor`, or everything from the start without one.
    ///
    /// - Throws: ``Problem`` `resync-required` for a cursor that is not this history's and this credential's; a
    ///   `StoreError`.
    package func page(cursor: String?, limit: Int?, device: Device?, now: Timestamp) throws -> PullPage {
        let limit = min(max(limit ?? WireLimits.rowsPerPage, 1), WireLimits.rowsPerPage)
        let latest = try connection.scalar("SELECT version FROM fieldpost_sequence")?.integer ?? 0
        let epochs = try Epoch.all(connection)
        guard let epoch = epochs.last else { throw Feed.resync }
        let start = try cursor.map { try self.start($0, epochs, latest) } ?? 0

        var end = latest
        var entries = try entries(after: start, limit: limit + 1)
        if entries.count > limit {
            entries.removeLast(entries.count - limit)
            end = entries[limit - 1].version
        }
        let settled = try settled(by: device, after: start, end: &end)
        var changes: [PulledChange] = []
        var bytes = 0
        for entry in entries where entry.version <= end {
            if bytes >= Feed.pageBytes {
                end = entry.version - 1
                break
            }
            if let change = try change(entry, &bytes) { changes.append(change) }
        }
        let place = Cursor(epoch: epoch.id, version: end, credential: credential)
        return PullPage(
            changes: changes,
            cursor: place.text(key: core.signingKey),
            more: end < latest,
            settled: settled.filter { $0.version <= end }.map(\.result),
            serverTime: now
        )
    }

    private static let resync = Problem(
        "resync-required",
        status: 410,
        detail: "The cursor is not of this history; pull again without one."
    )

    private func start(_ text: String, _ epochs: [Epoch], _ latest: Int64) throws -> Int64 {
        guard let cursor = Cursor(text, key: core.signingKey),
            cursor.readable == Cursor.readable(by: credential),
            let index = epochs.firstIndex(where: { $0.id == cursor.epoch }),
            (0...latest).contains(cursor.version)
        else { throw Feed.resync }
        // Beyond its epoch's last version the cursor counts what a restored server never had.
        if index + 1 < epochs.count, cursor.version >= epochs[index + 1].firstVersion { throw Feed.resync }
        return cursor.version
    }

    // MARK: Entries

    /// One row's place in the feed.
    private struct Entry {
        var version: Int64
        var table: String
        var row: String
        var isDeleted: Bool
        var reason: String?
    }

    private static let columns = "version, tbl, row, deleted, reason, scope"

    /// The next entries of all scopes the credential reads, in the order of their versions.
    private func entries(after start: Int64, limit: Int) throws -> [Entry] {
        guard case .only(let scopes) = credential.scopes else {
            return try entries(
                "SELECT \(Feed.columns) FROM fieldpost_feed WHERE version > ? ORDER BY version LIMIT ?",
                [.integer(start), .integer(Int64(limit))]
            )
        }
        // One look-up in the index for each scope: a single query over all of them would sort the whole rest of the feed.
        let sql =
            "SELECT \(Feed.columns) FROM fieldpost_feed WHERE scope = ? AND version > ? ORDER BY version LIMIT ?"
        var merged: [Entry] = []
        for scope in [""] + scopes.sorted(by: utf8Less) {
            merged += try entries(sql, [.text(scope), .integer(start), .integer(Int64(limit))])
        }
        merged.sort { $0.version < $1.version }
        return Array(merged.prefix(limit))
    }

    private func entries(_ sql: String, _ arguments: [Value]) throws -> [Entry] {
        let statement = try connection.statement(sql)
        try statement.bind(arguments)
        var entries: [Entry] = []
        while try statement.step() {
            entries.append(
                Entry(
                    version: statement.integer(0),
                    table: statement.text(1),
                    row: statement.text(2),
                    isDeleted: statement.integer(3) != 0,
                    reason: statement.isNull(4) ? nil : statement.text(4)
                )
            )
        }
        return entries
    }

    /// What an entry tells the device, or `nil` where a later entry says more.
    private func change(_ entry: Entry, _ bytes: inout Int) throws -> PulledChange? {
        guard let access = core.tables[entry.table] else { return nil }
        bytes += 64 + entry.row.utf8.count
        if !entry.isDeleted, let values = try access.values(connection, entry.row) {
            for value in values { bytes += value.approximateBytes }
            let set = access.wire(values)
            return PulledChange(table: entry.table, row: entry.row, version: entry.version, set: set)
        }
        if try isElsewhere(entry) { return nil }
        return PulledChange(
            table: entry.table,
            row: entry.row,
            version: entry.version,
            set: nil,
            reason: entry.reason
        )
    }

    /// Whether the credential also reads the scope that the row moved to.
    private func isElsewhere(_ entry: Entry) throws -> Bool {
        let statement = try connection.statement(
            "SELECT scope FROM fieldpost_feed WHERE tbl = ? AND row = ? AND version > ?"
        )
        try statement.bind([.text(entry.table), .text(entry.row), .integer(entry.version)])
        defer { statement.reset() }
        while try statement.step() {
            if credential.scopes.contains(statement.text(0)) { return true }
        }
        return false
    }

    // MARK: Settled operations

    /// The results of the device's operations up to `end`, which moves back where there are too many for one page.
    private func settled(
        by device: Device?,
        after start: Int64,
        end: inout Int64
    ) throws -> [(version: Int64, result: OperationResult)] {
        guard let device else { return [] }
        let rows = try connection.query(
            """
            SELECT version, result FROM fieldpost_operations \
            WHERE device = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?
            """,
            .text(device.id),
            .integer(start),
            .integer(end),
            .integer(Int64(settledPerPage + 1))
        )
        if rows.count > settledPerPage { end = (rows[settledPerPage][0].integer ?? end) - 1 }
        var settled: [(version: Int64, result: OperationResult)] = []
        var bytes = 0
        for row in rows {
            guard let version = row[0].integer, version <= end, let text = row[1].text else { break }
            if bytes > Feed.pageBytes {
                end = version - 1
                break
            }
            var result = try OperationResult(json: JSON(text: text, maxDepth: 128))
            // The page itself brings the row of what was applied; a conflict's row may be all there is.
            if result.status == .applied { result.row = nil } else { bytes += text.utf8.count }
            settled.append((version, result))
        }
        return settled
    }
}

/// One history of a store: a restored copy begins another.
package struct Epoch: Equatable {
    package var id: [UInt8]
    package var firstVersion: Int64

    static func all(_ connection: Connection) throws -> [Epoch] {
        try connection.query("SELECT id, first_version FROM fieldpost_epochs ORDER BY rowid").compactMap {
            row in
            guard case .blob(let id) = row[0], let first = row[1].integer else { return nil }
            return Epoch(id: id, firstVersion: first)
        }
    }

    /// Begins a new history after the store was put back from a copy: cursors given out later than the copy are refused.
    package static func begin(_ connection: Connection, random: (Int) -> [UInt8]) throws {
        try connection.run(
            """
            INSERT INTO fieldpost_epochs (id, first_version) \
            SELECT ?, version + 1 FROM fieldpost_sequence
            """,
            .blob(random(8))
        )
    }
}

extension Value {
    fileprivate var approximateBytes: Int {
        switch self {
        case .null, .integer: 24
        case .real: 32
        case .text(let text): 16 + text.utf8.count
        case .blob(let bytes): 16 + bytes.count * 4 / 3
        }
    }
}
