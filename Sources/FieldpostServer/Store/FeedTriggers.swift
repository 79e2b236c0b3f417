package import FieldpostCore
internal import FieldpostSQLite

/// The triggers that write a table's changes to the feed, whoever makes them.
///
/// They hold under any conflict policy: an outer `OR REPLACE` or `OR IGNORE` overrides the policy of the statements in a
/// trigger, so none of these can meet a conflict. A row that a `REPLACE` removes fires no delete trigger: the BEFORE
/// triggers note which rows could go, the AFTER triggers record those that went.
package struct FeedTriggers {
    let table: Table
    let schema: Schema

    package init(_ table: Table, schema: Schema) {
        self.table = table
        self.schema = schema
    }

    /// Every trigger by name.
    package var statements: [(name: String, sql: String)] {
        var list = [
            trigger(
                "insert",
                "AFTER INSERT",
                [emptyScope, gone, moved, live(inserted: true), descendants(moved: false)]
            ),
            trigger(
                "update",
                "AFTER UPDATE",
                [emptyScope, gone, renamed, moved, live(inserted: false), descendants(moved: true)]
            ),
            trigger("delete", "AFTER DELETE", [deleted]),
        ]
        if !table.unique.isEmpty {
            list.append(trigger("replace_insert", "BEFORE INSERT", [replaceable(besides: "NEW.\(key)")]))
            list.append(trigger("replace_update", "BEFORE UPDATE", [replaceable(besides: "OLD.\(key)")]))
        }
        return list
    }

    /// The name that every feed trigger of a table begins with.
    static func prefix(_ table: String) -> String { "fieldpost_feed_\(table)__" }

    private func trigger(_ kind: String, _ event: String, _ body: [String]) -> (name: String, sql: String) {
        let name = FeedTriggers.prefix(table.name) + kind
        let statements = body.filter { !$0.isEmpty }.joined(separator: "\n  ")
        return (
            name,
            "CREATE TRIGGER \(quoted(name)) \(event) ON \(quoted(table.name)) BEGIN\n  \(statements)\nEND"
        )
    }

    // MARK: Parts

    private var key: String { quoted(table.key) }
    private var name: String { sqlString(table.name) }
    private let next = "UPDATE fieldpost_sequence SET version = version + 1"
    private let latest = "(SELECT version FROM fieldpost_sequence)"

    /// The scope of the row called `alias`, as SQL: `''` for a global table, `NULL` while a parent is missing.
    static func scope(of table: Table, alias: String, schema: Schema, depth: Int = 0) -> String {
        switch table.scope {
        case nil: return "''"
        case .column(let column): return "\(alias).\(quoted(column))"
        case .reference(let column):
            guard let parent = table.column(column)?.reference.flatMap({ schema.table($0.table) }) else {
                return "NULL"
            }
            let inner = "p\(depth)"
            let scope = scope(of: parent, alias: inner, schema: schema, depth: depth + 1)
            return "(SELECT \(scope) FROM \(quoted(parent.name)) \(inner) "
                + "WHERE \(inner).\(quoted(parent.key)) = \(alias).\(quoted(column)))"
        }
    }

    private var scope: String { FeedTriggers.scope(of: table, alias: "NEW", schema: schema) }

    /// An empty scope would read as global, so everybody would see the row.
    private var emptyScope: String {
        guard case .column(let column) = table.scope else { return "" }
        return "SELECT RAISE(ABORT, 'fieldpost: the scope is empty') WHERE NEW.\(quoted(column)) = '';"
    }

    private func bury(_ row: String, reason: String, where condition: String) -> String {
        "UPDATE fieldpost_feed SET version = \(latest), deleted = 1, reason = \(reason), columns = NULL "
            + "WHERE tbl = \(name) AND row = \(row) AND deleted = 0\(condition);"
    }

    private var deleted: String { "\(next);\n  \(bury("OLD.\(key)", reason: "NULL", where: ""))" }

    /// The old key of a row whose key changed.
    private var renamed: String {
        let changed = "OLD.\(key) IS NOT NEW.\(key)"
        return "\(next) WHERE \(changed);\n  "
            + bury("OLD.\(key)", reason: "NULL", where: " AND \(changed)")
    }

    /// The entry of a row in a scope that it left.
    private var moved: String {
        let elsewhere = "tbl = \(name) AND row = NEW.\(key) AND deleted = 0 AND scope IS NOT \(scope)"
        return "\(next) WHERE EXISTS (SELECT 1 FROM fieldpost_feed WHERE \(elsewhere));\n  "
            + bury("NEW.\(key)", reason: "'scope'", where: " AND scope IS NOT \(scope)")
    }

    private func live(inserted: Bool) -> String {
        let entry = "tbl = \(name) AND row = NEW.\(key) AND scope = \(scope)"
        return """
            \(next);
              UPDATE fieldpost_feed SET version = \(latest), deleted = 0, reason = NULL, columns = \(versions(inserted)) \
            WHERE \(entry);
              INSERT INTO fieldpost_feed (version, tbl, row, scope, columns) \
            SELECT \(latest), \(name), NEW.\(key), \(scope), \(versions(true)) \
            WHERE \(scope) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM fieldpost_feed WHERE \(entry));
            """
    }

    /// The versions of the columns whose rule asks when they last changed; an unknown one counts as changed now.
    private func versions(_ inserted: Bool) -> String {
        let columns = table.trackedColumns
        if columns.isEmpty { return "NULL" }
        let members = columns.map { column in
            let version =
                inserted
                ? latest
                : "CASE WHEN NEW.\(quoted(column)) IS NOT OLD.\(quoted(column)) THEN \(latest) "
                    + "ELSE coalesce(json_extract(columns, '$.\(column)'), \(latest)) END"
            return "\(sqlString(column)), \(version)"
        }
        return "json_object(\(members.joined(separator: ", ")))"
    }

    /// Rows whose scope comes from this one: they get their entry when it arrives and move when it moves.
    private func descendants(moved: Bool) -> String {
        var statements: [String] = []
        for child in schema.tables {
            guard case .reference(let column) = child.scope,
                child.column(column)?.reference?.table == table.name
            else {
                continue
            }
            let reference = quoted(column)
            // A move numbers the old scope's end and the new scope's entry one after the other.
            let condition =
                moved
                ? " AND EXISTS (SELECT 1 FROM fieldpost_feed l JOIN fieldpost_feed o "
                    + "ON o.version = l.version - 1 AND o.tbl = l.tbl AND o.row = l.row AND o.reason = 'scope' "
                    + "WHERE l.tbl = \(name) AND l.row = NEW.\(key) AND l.deleted = 0)"
                : ""
            statements.append(
                "UPDATE \(quoted(child.name)) SET \(reference) = \(reference) "
                    + "WHERE \(reference) = NEW.\(key)\(condition);"
            )
        }
        return statements.joined(separator: "\n  ")
    }

    // MARK: Rows that REPLACE removes

    private func replaceable(besides key: String) -> String {
        let matches = table.unique.map { columns in
            "(" + columns.map { "\(quoted($0)) = NEW.\(quoted($0))" }.joined(separator: " AND ") + ")"
        }
        return """
            DELETE FROM fieldpost_replaced WHERE tbl = \(name);
              INSERT INTO fieldpost_replaced (tbl, row) SELECT \(name), \(self.key) FROM \(quoted(table.name)) \
            WHERE \(self.key) IS NOT \(key) AND (\(matches.joined(separator: " OR ")));
            """
    }

    private var gone: String {
        if table.unique.isEmpty { return "" }
        let noted = "FROM fieldpost_replaced WHERE tbl = \(name)"
        let place = "(SELECT min(rowid) \(noted) AND row = fieldpost_feed.row)"
        return """
            UPDATE fieldpost_feed SET deleted = 1, reason = NULL, columns = NULL, \
            version = \(latest) + (SELECT count(*) \(noted) AND rowid <= \(place)) \
            WHERE tbl = \(name) AND deleted = 0 AND row IN (SELECT row \(noted)) \
            AND NOT EXISTS (SELECT 1 FROM \(quoted(table.name)) WHERE \(key) = fieldpost_feed.row);
              UPDATE fieldpost_sequence SET version = version + (SELECT count(*) \(noted));
              DELETE \(noted);
            """
    }
}

extension Table {
    /// The columns whose rule needs to know when they last changed.
    var trackedColumns: [String] {
        columns.map(\.name).filter { name in
            switch rule(for: name) {
            case .keepLosingVersion: true
            // Under the table's own policy the row's version decides.
            case .compareAndSet: conflict != .compareAndSet
            case .lastWriteWins, .set, .counter: false
            }
        }
    }
}
