/// What a statement reads and may write, as SQLite's authorizer tells while it is prepared.
///
/// Triggers, views and foreign keys are looked through: the tables are those that are really touched.
package final class StatementAccess: Sendable {
    /// The columns read of each table; none where only the rows' existence matters, as in `count(*)`.
    package let reads: [String: Set<String>]
    /// The columns that updates may change.
    let updates: [String: Set<String>]
    /// The tables that inserts and deletes may change.
    let inserts: Set<String>
    /// Whether it may create, alter or drop something.
    let changesSchema: Bool

    init(_ log: AccessLog, sql: String) {
        reads = log.reads
        // OR REPLACE removes rows that no hook and no authorizer mentions.
        let replaces = !log.updates.isEmpty && sql.lowercased().contains("replace")
        updates = replaces ? [:] : log.updates
        inserts = replaces ? log.inserts.union(log.updates.keys) : log.inserts
        changesSchema = StatementAccess.isDefinition(sql)
    }

    /// Whether the statement creates, alters or drops something.
    ///
    /// Not told by the authorizer, which also mentions the making of table-valued functions such as `json_each`.
    private static func isDefinition(_ sql: String) -> Bool {
        var rest = sql[...]
        while true {
            rest = rest.drop { $0.isWhitespace || $0 == ";" }
            if rest.hasPrefix("--") {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("/*") {
                while !rest.isEmpty, !rest.hasPrefix("*/") { rest = rest.dropFirst() }
                rest = rest.dropFirst(2)
            } else {
                break
            }
        }
        return ["create", "alter", "drop"].contains(rest.prefix { $0.isLetter }.lowercased())
    }

    var writes: Bool { changesSchema || !updates.isEmpty || !inserts.isEmpty }
}

/// What the authorizer has told of the statement that is being prepared.
struct AccessLog {
    var reads: [String: Set<String>] = [:]
    var updates: [String: Set<String>] = [:]
    var inserts: Set<String> = []
    var isDropping = false
}

/// What commits have changed: enough to tell whether a query could have another result.
package struct DatabaseChanges: Sendable, Equatable {
    /// What happened to a table.
    enum Change: Equatable {
        /// Rows came or went.
        case rows
        /// Only these columns of rows that stayed.
        case columns(Set<String>)
    }

    var tables: [String: Change] = [:]
    /// Whether anything may have changed: the schema has, or another process has written.
    package var isEverything = false

    /// No change.
    package init() {}

    /// Anything may have changed.
    package static var everything: DatabaseChanges {
        var changes = DatabaseChanges()
        changes.isEverything = true
        return changes
    }

    /// Whether nothing changed.
    package var isEmpty: Bool { tables.isEmpty && !isEverything }

    /// Whether a query that reads these columns could have another result now.
    package func affect(_ reads: [String: Set<String>]) -> Bool {
        if isEverything { return true }
        return tables.contains { table, change in
            guard let columns = reads[table] else { return false }
            switch change {
            case .rows: return true
            case .columns(let changed): return !changed.isDisjoint(with: columns)
            }
        }
    }

    mutating func add(_ table: String, _ change: Change) {
        switch (tables[table], change) {
        case (nil, _), (_, .rows): tables[table] = change
        case (.rows?, _): break
        case (.columns(let known)?, .columns(let more)): tables[table] = .columns(known.union(more))
        }
    }

    mutating func add(_ other: DatabaseChanges) {
        isEverything = isEverything || other.isEverything
        for (table, change) in other.tables { add(table, change) }
    }
}
