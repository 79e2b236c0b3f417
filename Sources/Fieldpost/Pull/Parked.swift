internal import FieldpostCore
internal import FieldpostSQLite

/// Changes from the server that this app cannot show, kept with the reason until a newer state of their row arrives.
struct Parked {
    let db: LocalDatabase

    init(_ db: LocalDatabase) { self.db = db }

    func add(table: String, row: String, version: Int64, set: JSONObject?, reason: String) throws {
        try db.connection.run(
            "INSERT OR REPLACE INTO fieldpost_parked (tbl, row, version, change, reason) VALUES (?, ?, ?, ?, ?)",
            .text(table),
            .text(row),
            .integer(version),
            set.map { .text($0.text) } ?? .null,
            .text(reason)
        )
    }

    /// Forgets what a newer state has replaced.
    func forgetReplaced() throws {
        try db.connection.run(
            """
            DELETE FROM fieldpost_parked WHERE EXISTS (SELECT 1 FROM fieldpost_rows AS k
              WHERE k.tbl = fieldpost_parked.tbl AND k.row = fieldpost_parked.row AND k.version >= fieldpost_parked.version)
            """
        )
    }
}
