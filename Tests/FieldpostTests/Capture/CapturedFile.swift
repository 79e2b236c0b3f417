import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

/// A device file in a folder of its own, with Fieldpost's writer and one that knows nothing of it.
final class CapturedFile {
    let folder: TemporaryFolder
    let schema: Schema
    private(set) var database: LocalDatabase
    /// A connection as any program opens one; foreign keys are off, as SQLite has it.
    private(set) var stranger: Connection

    static let time = Timestamp(milliseconds: 1_764_460_800_000)

    init(_ schema: Schema = Oracle.schema, before: String = "") throws {
        folder = try Samples.temporaryFolder()
        self.schema = schema
        if !before.isEmpty { try Connection(path: folder.path("a.db")).execute(before) }
        database = try Self.open(folder, schema)
        stranger = try Connection(path: folder.path("a.db"))
    }

    private static func open(_ folder: TemporaryFolder, _ schema: Schema) throws -> LocalDatabase {
        var random = SystemRandomNumberGenerator()
        return try LocalDatabase(path: folder.path("a.db"), schema: schema, now: time, random: &random)
    }

    /// Closes and opens the file, as a start of the app does.
    func reopen(_ schema: Schema? = nil) throws {
        database.connection.close()
        database = try Self.open(folder, schema ?? self.schema)
    }

    /// One transaction of the app.
    func write(_ statements: String...) throws {
        try database.write(at: Self.time) { for sql in statements { try database.connection.execute(sql) } }
    }

    /// Makes rows as the server's: version 7, nothing to send.
    func pulled(_ sql: String, _ rows: (table: String, row: String)...) throws {
        try database.applying {
            try database.connection.execute(sql)
            for row in rows {
                try database.connection.run(
                    "INSERT INTO fieldpost_rows (tbl, row, version) VALUES (?, ?, 7)",
                    .text(row.table),
                    .text(row.row)
                )
            }
        }
    }

    /// The outbox, one line an operation: ids are `#1`, `#2` … in order.
    var outbox: [String] { get throws { try lines(changes: true) } }

    /// ``outbox`` without the changes.
    var outline: [String] { get throws { try lines(changes: false) } }

    private func lines(changes: Bool) throws -> [String] {
        let rows = try stranger.query(
            "SELECT id, action, tbl, row, change, base, after FROM fieldpost_outbox ORDER BY seq"
        )
        let ids = rows.compactMap { $0[0].text }
        func number(_ id: String) -> String { ids.firstIndex(of: id).map { "#\($0 + 1)" } ?? id }
        return try rows.map { row in
            var line = "\(row[1].text ?? "") \(row[2].text ?? "")/\(row[3].text ?? "")"
            if changes, let change = row[4].text { line += " \(Self.short(change))" }
            if !row[5].isNull { line += " on \(number(row[5].text ?? "\(row[5].integer ?? 0)"))" }
            let after = try JSON(text: row[6].text ?? "[]").array ?? []
            if !after.isEmpty {
                line += " after \(after.compactMap(\.string).map(number).sorted().joined(separator: ","))"
            }
            return line
        }
    }

    /// A change without its empty parts.
    private static func short(_ change: String) -> String {
        var text = change
        for part in [#""set":{},"#, #","inc":{}"#, #","add":{}"#, #","remove":{}"#] {
            text = text.replacing(part, with: "")
        }
        return text
    }

    func scalar(_ sql: String) throws -> Value? { try stranger.scalar(sql) }

    /// The code and message with which a change is refused.
    func refusal(_ body: () throws -> Void) -> FieldpostError? {
        do { try body() } catch let error as FieldpostError { return error } catch let error as StoreError {
            return FieldpostError(error)
        } catch { return nil }
        return nil
    }
}
