internal import FieldpostCore
internal import FieldpostSQLite

/// SQL expressions that write column values as JSON inside a trigger.
///
/// Only what SQLite 3.40 has built in: the `sqlite3` shell fires the triggers too. SQLite's own `json_object`
/// will not do: it rounds reals to 15 digits and fails on a blob.
struct ColumnJSON {
    let row: String

    /// The JSON text of `column`; a blob as hexadecimal digits, which ``LocalJSON`` turns into base64.
    func text(_ column: Column) -> String {
        let value = "\(row).\(quoted(column.name))"
        func unlessNull(_ text: String) -> String {
            column.isOptional ? "CASE WHEN \(value) IS NULL THEN 'null' ELSE \(text) END" : text
        }
        switch column.type {
        case .uuid, .text, .file, .integer, .date: return "json_quote(\(value))"
        // SQLite 3.40 prints 530 of 300,000 random doubles inexactly with 17 digits, and none with 18.
        case .real: return unlessNull("printf('%!.19g', \(value))")
        case .boolean:
            return "CASE \(value) WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE json_quote(\(value)) END"
        case .blob: return unlessNull(#"'"' || hex(\#(value)) || '"'"#)
        case .json, .set: return unlessNull("json(\(value))")
        }
    }

    /// The JSON object of all `columns`.
    func object(_ columns: [Column]) -> String {
        "'{' || " + list(columns.map { ("\"\($0.name)\":", text($0)) }) + " || '}'"
    }

    /// `,"name":value` for each column of which `condition` holds, as one text.
    func changed(_ columns: [Column], since old: String) -> String {
        if columns.isEmpty { return "''" }
        let parts = columns.map { column in
            let name = quoted(column.name)
            return #"CASE WHEN \#(old).\#(name) IS NOT \#(row).\#(name) THEN ',"\#(column.name)":' || "#
                + text(column) + " ELSE '' END"
        }
        return join(parts)
    }

    /// `,"name":value` for each column whose text differs from the one in the object that `image` holds.
    func changed(_ columns: [Column], sinceImage image: String) -> String {
        if columns.isEmpty { return "''" }
        return join(
            columns.map { column in
                "CASE WHEN (\(image) -> '$.\(column.name)') IS NOT \(text(column)) "
                    + #"THEN ',"\#(column.name)":' || \#(text(column)) ELSE '' END"#
            }
        )
    }

    func list(_ members: [(name: String, value: String)]) -> String {
        join(
            members.enumerated().map { index, member in
                "'\(index > 0 ? "," : "")\(member.name)' || \(member.value)"
            }
        )
    }

    /// The concatenation of `parts`; `printf` builds it in one buffer, and takes up to 127 arguments.
    private func join(_ parts: [String]) -> String {
        if parts.isEmpty { return "''" }
        let chunks = stride(from: 0, to: parts.count, by: 100).map {
            Array(parts[$0..<min($0 + 100, parts.count)])
        }
        return chunks.map { chunk in
            "printf('\(String(repeating: "%s", count: chunk.count))', \(chunk.joined(separator: ", ")))"
        }.joined(separator: " || ")
    }
}

/// Reads the JSON that capture wrote.
enum LocalJSON {
    /// The wire form of a captured object of columns: blobs become base64.
    static func wire(_ object: JSONObject, _ table: Table) -> JSONObject {
        guard table.columns.contains(where: { $0.type == .blob }) else { return object }
        var object = object
        for column in table.columns where column.type == .blob {
            if let hex = object[column.name]?.string, let bytes = bytes(hex) {
                object[column.name] = .string(Base64.encode(bytes))
            }
        }
        return object
    }

    /// What capture would have written for an object in wire form.
    static func captured(_ object: JSONObject, _ table: Table) -> JSONObject {
        guard table.columns.contains(where: { $0.type == .blob }) else { return object }
        var object = object
        for column in table.columns where column.type == .blob {
            if let text = object[column.name]?.string, let bytes = Base64.decode(text) {
                object[column.name] = .string(hex(bytes))
            }
        }
        return object
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).reduce(into: [UInt8]?([])) { bytes, index in
            guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else {
                return bytes = nil
            }
            bytes?.append(high << 4 | low)
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        default: nil
        }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        return String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self
        )
    }
}
