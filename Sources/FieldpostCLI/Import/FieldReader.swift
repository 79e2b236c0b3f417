internal import FieldpostCore

/// Turns the fields of a CSV into the values of a table's columns.
struct FieldReader {
    let table: Table
    /// The table's column for each field.
    let columns: [Column]
    /// Where the key stands.
    let keyIndex: Int

    /// Reads the header.
    ///
    /// - Throws: ``CSVError`` for a column the table does not have, one named twice, or one that is missing.
    init(_ header: CSVRecord, _ table: Table) throws {
        self.table = table
        var columns: [Column] = []
        let known = table.columns.map(\.name)
        for index in 0..<header.count {
            let name = String(decoding: header[index], as: UTF8.self).trimmingSpaces
            guard let column = table.column(name) else {
                let hint = nearest(to: name, in: known).map { "; did you mean \($0)?" } ?? ""
                throw CSVError(line: header.line, message: "\(table.name) has no column “\(name)”\(hint)")
            }
            if columns.contains(column) {
                throw CSVError(line: header.line, message: "the column \(name) is named twice; leave one out")
            }
            columns.append(column)
        }
        self.columns = columns
        guard let keyIndex = columns.firstIndex(where: { $0.name == table.key }) else {
            throw CSVError(
                line: header.line,
                message: "the column \(table.key) is missing; each row needs its key"
            )
        }
        self.keyIndex = keyIndex
        let missing = table.columns.filter { column in
            !column.isOptional && column.defaultValue == nil && !columns.contains(column)
        }
        if !missing.isEmpty {
            let names = missing.map(\.name).joined(separator: ", ")
            throw CSVError(line: header.line, message: "columns are missing that every row needs: \(names)")
        }
    }

    /// The values of a record, one for each column of the header.
    func values(_ record: CSVRecord) throws -> [Value] {
        guard record.count == columns.count else {
            throw CSVError(
                line: record.line,
                message:
                    "there are \(record.count) fields instead of \(columns.count); a comma may need quotes"
            )
        }
        var values: [Value] = []
        values.reserveCapacity(columns.count)
        for (index, column) in columns.enumerated() {
            do throws(ColumnTypeError) { values.append(try value(record[index], column)) } catch {
                throw CSVError(line: record.line, message: "\(column.name): \(error.message)")
            }
        }
        return values
    }

    private func value(_ field: UnsafeBufferPointer<UInt8>, _ column: Column) throws(ColumnTypeError) -> Value
    {
        if field.isEmpty {
            if column.isOptional { return .null }
            if column.type == .text { return .text("") }
            throw ColumnTypeError(message: "expected a value, since the column is required")
        }
        switch column.type {
        case .integer:
            guard let value = FieldReader.integer(field) else {
                throw ColumnTypeError(message: "expected a 64-bit integer")
            }
            return .integer(value)
        case .date:
            guard let value = FieldReader.integer(field) ?? ISODate.milliseconds(field) else {
                throw ColumnTypeError(
                    message: "expected a date such as 2025-11-30T08:00:00Z, or milliseconds since 1970"
                )
            }
            return .integer(value)
        case .boolean: return .integer(try FieldReader.boolean(try FieldReader.text(field)))
        case .real:
            guard let value = Double(try FieldReader.text(field)), value.isFinite else {
                throw ColumnTypeError(message: "expected a finite number")
            }
            return .real(value == 0 ? 0 : value)
        case .json, .set:
            let text = try FieldReader.text(field)
            guard let json = try? JSON(text: text) else { throw ColumnTypeError(message: "expected JSON") }
            return try column.value(from: json)
        case .uuid, .text, .blob, .file: return try column.value(from: .string(try FieldReader.text(field)))
        }
    }

    private static func text(_ field: UnsafeBufferPointer<UInt8>) throws(ColumnTypeError) -> String {
        guard let text = String(validating: field, as: UTF8.self) else {
            throw ColumnTypeError(message: "expected UTF-8; save the file in that encoding")
        }
        return text
    }

    private static func boolean(_ text: String) throws(ColumnTypeError) -> Int64 {
        switch text.lowercased() {
        case "true", "1": return 1
        case "false", "0": return 0
        default: throw ColumnTypeError(message: "expected true or false")
        }
    }

    /// An integer in decimal digits, exact to 64 bits.
    private static func integer(_ field: UnsafeBufferPointer<UInt8>) -> Int64? {
        let isNegative = field[0] == 0x2D
        let digits = field[(isNegative || field[0] == 0x2B ? 1 : 0)...]
        if digits.isEmpty { return nil }
        // Collected below zero, where there is one more number.
        var value: Int64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.subtractingReportingOverflow(Int64(digit - 0x30))
            if overflow || carry { return nil }
            value = sum
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        String(drop(while: { $0 == " " }).reversed().drop(while: { $0 == " " }).reversed())
    }
}
