internal import Fieldpost
internal import FieldpostCore
internal import FieldpostGzip
internal import FieldpostSQLite

/// `fieldpost import`.
enum ImportCommand {
    static let spec = CommandSpec(
        path: ["import"],
        summary: "Write the rows of a CSV file into a device's table.",
        operands: [.init(name: "FILE", help: "a CSV file, plain or gzip; its first line names the columns")],
        options: [
            .required("schema", "FILE", "the app's schema"),
            .required("db", "FILE", "the device's database, made if absent"),
            .required("table", "T", "the table"), .json,
        ],
        notes: [
            "Empty fields are NULL where the column allows it. Dates are ISO 8601 (UTC without a zone) or milliseconds since "
                + "1970. Rows are committed 500 at a time; a bad row undoes its 500, names its line and ends the import with "
                + "65. Rows that exist with the same values are passed over, so an import can be run again; rows that "
                + "exist with others are named and left as they are."
        ]
    ) { invocation, console in
        let schema = try Files.schema(try invocation.required("schema"))
        let name = try invocation.required("table")
        guard let table = schema.table(name) else {
            let hint = nearest(to: name, in: schema.tables.map(\.name)).map { "; did you mean \($0)?" } ?? "."
            throw Failure("unknown_table", "The schema has no table \(name)\(hint)", exit: .usage)
        }
        let path = invocation.operands[0]
        let file = try ImportFile(path: path, table: table)
        let store = try await Store.open(at: try invocation.required("db"), schema: schema)
        try await store.writer.perform { db, _, _ in try db.connection.execute(tuning) }
        var run = ImportRun(store: store, path: path, table: table, console: console)
        do {
            try await run.all(of: file)
            await store.close()
        } catch {
            await store.close()
            if run.summary.written > 0 {
                console.errorLine("fieldpost: \(run.summary.written) rows before it are kept.")
            }
            throw error
        }
        console.line(invocation.has("json") ? run.json.text : run.text)
        return run.summary.differing.isEmpty ? .done : .badData
    }
}

/// A large cache, and a log that is written back rarely; commits are as safe as ever.
///
/// Keys in random order touch pages all over the file, which would be read and written again for each batch.
private let tuning = "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 16000"

/// One import and how far it is.
private struct ImportRun {
    /// Differing rows that are named one by one; more are only counted.
    private static let named = 20

    let store: Store
    let path: String
    let table: Table
    let console: Console
    var summary = ImportBatch.Summary()

    mutating func all(of file: ImportFile) async throws {
        var shown = -1
        defer { if shown >= 0 { console.writeError("\n") } }
        do {
            while true {
                let rows = try file.nextBatch()
                guard let reader = file.reader, !rows.isEmpty else { return }
                let batch = try await store.writer.perform { db, now, _ in
                    try db.write(at: now) { try ImportBatch(db: db, reader: reader).write(rows) }
                }
                add(batch)
                let percent = Int(file.progress * 100)
                if console.isWatched, percent != shown {
                    shown = percent
                    console.writeError("\r\(path): \(percent) %")
                }
            }
        } catch let error as CSVError {
            let stop = error.message.hasSuffix("?") ? "" : "."
            throw Failure("csv", "\(path), line \(error.line): \(error.message)\(stop)", exit: .badData)
        } catch let error as GzipError {
            throw Failure("csv", "\(path): \(error.message)", exit: .badData)
        }
    }

    private mutating func add(_ batch: ImportBatch.Summary) {
        for line in batch.differing where summary.differing.count < Self.named {
            summary.differing.append(line)
            console.errorLine(
                "\(path), line \(line): the row exists with other values; change it in the app, or drop the line."
            )
        }
        summary.written += batch.written
        summary.skipped += batch.skipped
        differing += batch.differing.count
    }

    private var differing = 0

    init(store: Store, path: String, table: Table, console: Console) {
        self.store = store
        self.path = path
        self.table = table
        self.console = console
    }

    var text: String {
        var parts = ["\(summary.written) rows imported into \(table.name)"]
        if summary.skipped > 0 { parts.append("\(summary.skipped) were there already") }
        if differing > 0 { parts.append("\(differing) exist with other values") }
        return parts.joined(separator: ", ")
    }

    var json: JSONObject {
        [
            "ok": .bool(differing == 0), "table": .string(table.name),
            "imported": .integer(Int64(summary.written)),
            "skipped": .integer(Int64(summary.skipped)), "differing": .integer(Int64(differing)),
        ]
    }
}
