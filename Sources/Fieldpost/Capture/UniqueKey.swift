internal import FieldpostCore
internal import FieldpostSQLite

/// What a table in the file has beyond its schema, as far as capture must know it.
struct TableFacts {
    /// The unique indexes besides the key's; an `OR REPLACE` removes rows through them without telling any
    /// trigger.
    var uniqueKeys: [UniqueKey] = []
    /// The columns whose types the table itself does not enforce, since the app made it and not Fieldpost.
    var uncheckedColumns: Set<String> = []
    /// Whether rows of other tables refer to this one.
    var isReferenced = false
}

/// One unique index, as the condition under which two rows clash.
struct UniqueKey: Equatable {
    /// The columns to watch for an update, or `nil` where any column may matter.
    let columns: [String]?
    /// Whether the row `r` and the row `NEW` have the same values; it may be true too often, never too
    /// rarely.
    let clash: String
}

extension UniqueKey {
    /// The unique indexes of `table` besides the key's.
    static func read(_ table: Table, _ connection: Connection) throws -> [UniqueKey] {
        let columns = try connection.query("SELECT name FROM pragma_table_xinfo(?)", .text(table.name))
            .compactMap { $0[0].text }
        let indexes = try connection.query(
            "SELECT l.name, l.partial, s.sql FROM pragma_index_list(?) AS l LEFT JOIN sqlite_schema AS s "
                + "ON s.name = l.name AND s.type = 'index' WHERE l.\"unique\" = 1 AND l.origin <> 'pk' ORDER BY l.name",
            .text(table.name)
        )
        return try indexes.map { index in
            let terms = try connection.query(
                "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno",
                index[0]
            )
            let expressions = index[2].text.map(Self.indexedTerms) ?? []
            var isPlain = index[1].integer == 0
            let parts = terms.enumerated().map { position, term -> String in
                let collation = quoted(term[1].text ?? "BINARY")
                if let name = term[0].text {
                    // A generated column changes with others.
                    if table.column(name) == nil { isPlain = false }
                    return "r.\(quoted(name)) = NEW.\(quoted(name)) COLLATE \(collation)"
                }
                isPlain = false
                // Both sides read bare names: the left one those of r, the right one those of a row made of
                // NEW.
                let expression = position < expressions.count ? expressions[position] : "1"
                let new = columns.map { "NEW.\(quoted($0)) AS \(quoted($0))" }.joined(separator: ", ")
                return "(\(expression)) = (SELECT \(expression) FROM (SELECT \(new))) COLLATE \(collation)"
            }
            return UniqueKey(
                columns: isPlain ? terms.compactMap { $0[0].text } : nil,
                clash: parts.joined(separator: " AND ")
            )
        }
    }

    /// The terms between the parentheses of a `CREATE INDEX`, without their order.
    static func indexedTerms(_ sql: String) -> [String] {
        var terms: [String] = [""]
        var depth = 0
        var quote: Character?
        for character in sql {
            if let open = quote {
                if character == open { quote = nil }
            } else if "'\"`".contains(character) {
                quote = character
            } else if character == "(" {
                depth += 1
                if depth == 1 { continue }
            } else if character == ")" {
                depth -= 1
                if depth == 0 { break }
            } else if character == ",", depth == 1 {
                terms.append("")
                continue
            }
            if depth > 0 { terms[terms.count - 1].append(character) }
        }
        return terms.map { term in
            let words = term.split(whereSeparator: \.isWhitespace)
            let isOrdered = words.count > 1 && ["asc", "desc"].contains(words.last?.lowercased() ?? "")
            return (isOrdered ? words.dropLast() : words[...]).joined(separator: " ")
        }
    }
}
