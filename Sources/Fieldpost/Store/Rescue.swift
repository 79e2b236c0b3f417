internal import FieldpostCore
internal import FieldpostSQLite
internal import Foundation

/// What was saved from a damaged file.
public struct Rescue: Equatable, Sendable {
    /// Where the damaged file is kept; nothing deletes it.
    public var damagedFile: String
    /// Unsettled operations that were saved.
    public var operations: Int
    /// Rows of the app's tables that were saved, by table.
    public var rows: [String: Int]
}

/// Saves what can be read of a damaged file into a new one in its place.
///
/// First a copy of everything as it was, which stays; then, from that copy, the outbox, Fieldpost's other tables and the
/// app's tables, each from both ends up to the damage; and last the new file under the old name. Rows that the server
/// has and that could not be read are forgotten, and the cursor with them, so that the next pull brings them again.
struct Rescuer {
    let path: String
    let schema: Schema
    let options: LocalDatabase.Options
    let environment: Environment

    func run() throws -> Rescue {
        let damaged = try copyAside()
        let old = try Connection(path: damaged, mode: .readWrite)
        defer { old.close() }
        let fresh = path + "-rescued"
        try remove(fresh)
        var random = environment.random
        // The old file's own schema, so that the migration to the app's runs as it would have.
        let database = try LocalDatabase(
            path: fresh,
            schema: storedSchema(old) ?? schema,
            options: options,
            now: environment.now(),
            random: &random
        )
        let rescue = try save(old, into: database, damaged)
        database.connection.close()
        // The old log belongs to the old file and must not meet the new one. Both are in the copy.
        for suffix in ["-wal", "-shm"] { try removeFile(path + suffix) }
        guard rename(fresh, path) == 0 else {
            throw StoreError(
                .ioError,
                "The saved database could not be put in place; it is beside the old one."
            )
        }
        return rescue
    }

    private func copyAside() throws -> String {
        let files = FileManager.default
        var damaged = "\(path).damaged-\(environment.now().milliseconds)"
        while files.fileExists(atPath: damaged) { damaged += "x" }
        for suffix in ["", "-wal"] where files.fileExists(atPath: path + suffix) {
            try files.copyItem(atPath: path + suffix, toPath: damaged + suffix)
        }
        return damaged
    }

    private func remove(_ path: String) throws {
        for suffix in ["", "-wal", "-shm"] { try removeFile(path + suffix) }
    }

    private func removeFile(_ path: String) throws {
        if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }

    private func storedSchema(_ old: Connection) -> Schema? {
        let text = (try? old.scalar("SELECT value FROM fieldpost_meta WHERE key = 'schema'"))??.text
        return text.flatMap { try? Schema(json: Array($0.utf8)) }
    }

    // MARK: Rows

    private func save(_ old: Connection, into new: LocalDatabase, _ damaged: String) throws -> Rescue {
        let own = try new.connection.query(
            """
            SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'fieldpost_*'
            AND name NOT IN ('fieldpost_session', 'fieldpost_replaced')
            ORDER BY name <> 'fieldpost_outbox', name <> 'fieldpost_meta', name
            """
        ).compactMap { $0[0].text }
        var rescue = Rescue(damagedFile: damaged, operations: 0, rows: [:])
        try new.applying {
            for table in own {
                let count = try copy(table, old, new)
                if table == "fieldpost_outbox" { rescue.operations = count }
            }
            for table in new.schema.tables { rescue.rows[table.name] = try copy(table.name, old, new) }
            try restoreSequence(old, new)
            try forgetLostRows(new)
        }
        return rescue
    }

    /// Copies the rows of a table up to the damage, from its beginning and then from its end.
    private func copy(_ table: String, _ old: Connection, _ new: LocalDatabase) throws -> Int {
        let columns = try columns(table, new.connection)
        let known = Set((try? self.columns(table, old)) ?? [])
        let names = columns.filter(known.contains)
        if names.isEmpty { return 0 }
        let list = names.map(quoted).joined(separator: ", ")
        let order = try key(table, new.connection).map(quoted).joined(separator: ", ")
        let insert =
            "INSERT OR REPLACE INTO \(quoted(table)) (\(list)) VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))"
        for direction in ["ASC", "DESC"] {
            let orders = order.isEmpty ? "rowid \(direction)" : "\(order) \(direction)"
            // NOT INDEXED: the table itself, since an index may be what is damaged.
            let select = "SELECT \(list) FROM \(quoted(table)) NOT INDEXED ORDER BY \(orders)"
            if try copyRows(select, insert, old, new) { break }
        }
        return Int(try new.connection.scalar("SELECT count(*) FROM \(quoted(table))")?.integer ?? 0)
    }

    /// - Returns: whether all rows could be read.
    private func copyRows(_ select: String, _ insert: String, _ old: Connection, _ new: LocalDatabase) throws
        -> Bool
    {
        guard let statement = try? old.prepare(select) else { return false }
        while true {
            let hasRow: Bool
            do { hasRow = try statement.step() } catch { return false }
            guard hasRow else { return true }
            let failure = failure { () throws(StoreError) in
                try new.connection.run(insert, statement.values())
            }
            // A row that the damage has changed into something the table does not hold is left out.
            if let failure, failure.code != .constraint, failure.code != .aborted { throw failure }
        }
    }

    private func failure(_ body: () throws(StoreError) -> Void) -> StoreError? {
        do {
            try body()
            return nil
        } catch {
            return error
        }
    }

    private func columns(_ table: String, _ connection: Connection) throws -> [String] {
        try connection.query("SELECT name FROM pragma_table_info(?)", .text(table)).compactMap { $0[0].text }
    }

    /// The columns that a table without row ids is kept by; none for one with row ids.
    private func key(_ table: String, _ connection: Connection) throws -> [String] {
        let isKeyed =
            try connection.scalar("SELECT wr FROM pragma_table_list WHERE name = ?", .text(table))
            == .integer(1)
        guard isKeyed else { return [] }
        return try connection.query(
            "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk",
            .text(table)
        )
        .compactMap { $0[0].text }
    }

    /// A place on the wire that was used once must not be used again.
    private func restoreSequence(_ old: Connection, _ new: LocalDatabase) throws {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'fieldpost_outbox'"
        guard let seq = (try? old.scalar(sql))??.integer else { return }
        if try new.connection.scalar(sql) == nil {
            try new.connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('fieldpost_outbox', 0)")
        }
        try new.connection.run(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'fieldpost_outbox'",
            .integer(seq)
        )
    }

    private func forgetLostRows(_ new: LocalDatabase) throws {
        for table in new.schema.tables {
            try new.connection.run(
                """
                DELETE FROM fieldpost_rows WHERE tbl = ? AND deleted = 0
                AND row NOT IN (SELECT \(quoted(table.key)) FROM \(quoted(table.name)))
                AND row NOT IN (SELECT row FROM fieldpost_outbox WHERE tbl = ?)
                """,
                .text(table.name),
                .text(table.name)
            )
        }
        try new.setMeta("cursor", .null)
    }
}
