internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite

/// Writes one batch of rows in the caller's transaction.
struct ImportBatch {
    /// What became of the rows.
    struct Summary: Sendable {
        var written = 0
        /// Rows that exist and are equal.
        var skipped = 0
        /// Lines of rows that exist and are not.
        var differing: [Int] = []
    }

    let db: LocalDatabase
    let reader: FieldReader

    /// Writes what is not there yet.
    ///
    /// - Throws: ``CSVError`` naming the line of the first row that cannot be written.
    func write(_ rows: [ImportRow]) throws -> Summary {
        var summary = Summary()
        let select = try db.connection.statement(selectSQL)
        let insert = try db.connection.statement(insertSQL)
        for row in rows {
            try select.bind([row.values[reader.keyIndex]])
            if try select.step() {
                let isEqual = row.values.indices.allSatisfy { select.value(Int32($0)) == row.values[$0] }
                select.reset()
                if isEqual { summary.skipped += 1 } else { summary.differing.append(row.line) }
                continue
            }
            do throws(StoreError) {
                try insert.bind(row.values)
                try insert.run()
            } catch {
                guard let fault = FieldpostError(error) else { throw error }
                throw CSVError(line: row.line, message: fault.message.withoutStop)
            }
            summary.written += 1
        }
        if db.connection.deferredForeignKeyViolations { try findMissingReference(rows) }
        return summary
    }

    /// SQLite says that some reference leads nowhere, but not which.
    private func findMissingReference(_ rows: [ImportRow]) throws {
        for row in rows {
            for (index, column) in reader.columns.enumerated() {
                guard let reference = column.reference, !row.values[index].isNull else { continue }
                let key = db.schema.table(reference.table)?.key ?? "id"
                let found = try db.connection.scalar(
                    "SELECT 1 FROM \(quoted(reference.table)) WHERE \(quoted(key)) = ?",
                    row.values[index]
                )
                if found == nil {
                    throw CSVError(
                        line: row.line,
                        message:
                            "\(column.name) refers to a row of \(reference.table) that is missing; import that table first"
                    )
                }
            }
        }
    }

    private var names: String { reader.columns.map { quoted($0.name) }.joined(separator: ", ") }

    private var selectSQL: String {
        "SELECT \(names) FROM \(quoted(reader.table.name)) WHERE \(quoted(reader.table.key)) = ?"
    }

    private var insertSQL: String {
        let marks = reader.columns.map { _ in "?" }.joined(separator: ", ")
        return "INSERT INTO \(quoted(reader.table.name)) (\(names)) VALUES (\(marks))"
    }
}

extension String {
    fileprivate var withoutStop: String { hasSuffix(".") ? String(dropLast()) : self }
}
