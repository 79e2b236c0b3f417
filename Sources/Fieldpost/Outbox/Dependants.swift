internal import FieldpostCore
internal import FieldpostSQLite

/// Finds what depends on an operation.
struct Dependants {
    let db: LocalDatabase

    init(_ db: LocalDatabase) { self.db = db }

    /// The unsettled operations that depend on `entry` directly: later ones on its row, and those that name it.
    ///
    /// Only a create is named by operations on other rows, so only then are they searched, from its place on.
    func of(_ entry: OutboxEntry) throws -> [OutboxEntry] {
        var found = try db.entries(
            where: "row = ? AND tbl = ? AND seq > ?", .text(entry.row), .text(entry.table), .integer(entry.seq))
        let isReferenced = db.schema.tables.contains { table in
            table.columns.contains { $0.reference?.table == entry.table }
        }
        if entry.action == "create", isReferenced {
            let known = Set(found.map(\.seq))
            let named = try db.entries(
                where: "seq > ? AND after IS NOT NULL AND instr(after, ?) > 0", .integer(entry.seq), .text(entry.id.text))
            found += named.filter { !known.contains($0.seq) }
        }
        return found.sorted { $0.seq < $1.seq }
    }
}
