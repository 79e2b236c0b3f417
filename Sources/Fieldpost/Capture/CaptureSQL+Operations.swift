internal import FieldpostCore
internal import FieldpostSQLite

/// The statements that write operations.
extension CaptureSQL {
    /// Columns whose new value travels as it is.
    var plainColumns: [Column] {
        table.columns.filter { column in
            let rule = table.rule(for: column.name)
            return rule != .counter && rule != .set && column.name != table.key
        }
    }

    private var references: [(column: Column, table: String)] {
        table.columns.compactMap { column in column.reference.map { (column, $0.table) } }
    }

    /// A create with every column but the key, which the operation carries as its row.
    func create(row: String = "NEW", from source: String? = nil) -> String {
        let columns = table.columns.filter { $0.name != table.key }
        return insert(
            row,
            "create",
            change: #"'{"set":' || \#(ColumnJSON(row: row).object(columns)) || '}'"#,
            base: predecessor("\(row).\(key)"),
            after: dependencies(row, "\(row).\(key)"),
            from: source
        )
    }

    func delete(_ row: String, keyed: String? = nil, from source: String? = nil) -> String {
        let key = keyed ?? "\(row).\(self.key)"
        return insert(
            row,
            "delete",
            keyed: key,
            change: "NULL",
            base: base(key),
            after: deleteDependencies(key),
            from: source
        )
    }

    /// The time in milliseconds: the writer's own, or SQLite's clock.
    var now: String {
        "(SELECT ifnull(at, CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)) AS t FROM fieldpost_session)"
    }

    /// A fresh version 7 UUID for each row of a `SELECT`.
    ///
    /// SQLite evaluates a subquery that names no column of the row once for the whole statement, so chance must not stand
    /// in one here.
    var newIDOfEachRow: String {
        "printf('%08x-%04x-7%03x-%04x-%012x', \(now) >> 16, \(now) & 65535, random() & 4095, "
            + "32768 | (random() & 16383), random() & 281474976710655)"
    }

    /// A fresh version 7 UUID for one row of `VALUES`, which reads the time once.
    var newID: String {
        "(SELECT printf('%08x-%04x-7%03x-%04x-%012x', s.t >> 16, s.t & 65535, random() & 4095, "
            + "32768 | (random() & 16383), random() & 281474976710655) FROM (\(now.dropFirst().dropLast())) AS s)"
    }

    /// One operation; with `source`, the rest of a `SELECT`, one for each of its rows.
    ///
    /// Without, it is `VALUES`: a `SELECT` that reads the table it fills costs a temporary table.
    func insert(
        _ row: String,
        _ action: String,
        table: String? = nil,
        keyed: String? = nil,
        change: String,
        base: String,
        after: String,
        schema: String? = nil,
        from source: String? = nil
    ) -> String {
        let values = """
            \(source == nil ? newID : newIDOfEachRow), (SELECT grp FROM fieldpost_session), \(table ?? literal), \(keyed ?? "\(row).\(key)"), '\(action)',
              \(change),
              \(base), \(after), \(schema ?? "\(schemaVersion)"), \(now)
            """
        let into =
            "INSERT INTO fieldpost_outbox (id, grp, tbl, row, action, change, base, after, schema, created_at)"
        return source.map { "\(into) SELECT \(values) FROM \($0)" } ?? "\(into) VALUES (\(values))"
    }

    /// Follows an operation's `INSERT`: no change without its outbox row.
    var mustHaveRecorded: String {
        "SELECT RAISE(ABORT, 'fieldpost: the change was not captured, so it is not made') WHERE changes() = 0"
    }

    /// Keeps the row as the server last knew it, before the first unsettled change.
    func saveBase(_ row: String, image: String? = nil) -> String {
        let value = image ?? ColumnJSON(row: row).object(table.columns)
        return "UPDATE fieldpost_rows SET base = \(value) WHERE tbl = \(literal) AND row = \(row).\(key) "
            + "AND base IS NULL AND deleted = 0"
    }

    // MARK: Change

    /// `{"set":{…},"inc":{…},"add":{…},"remove":{…}}` where `set` is a text of `,"name":value` members.
    func changeParts(set: String, old: (String) -> String) -> String {
        var json = #"'{"set":{' || substr(\#(set), 2) || '}'"#
        func add(_ part: String, _ members: [String]) {
            json += #" || ',"\#(part)":{' || substr(\#(members.joined(separator: " || ")), 2) || '}'"#
        }
        let counters = table.columns.filter { table.rule(for: $0.name) == .counter }
        if !counters.isEmpty {
            add(
                "inc",
                counters.map { column in
                    let (then, now) = (old(column.name), "NEW.\(quoted(column.name))")
                    return
                        #"CASE WHEN \#(then) IS NOT \#(now) THEN ',"\#(column.name)":' || (\#(now) - \#(then)) ELSE '' END"#
                }
            )
        }
        let sets = table.columns.filter { table.rule(for: $0.name) == .set }
        for (part, new) in [("add", true), ("remove", false)] where !sets.isEmpty {
            add(
                part,
                sets.map { column in
                    let (then, now) = (old(column.name), "NEW.\(quoted(column.name))")
                    let difference =
                        new ? Self.elements(of: now, without: then) : Self.elements(of: then, without: now)
                    return
                        #"CASE WHEN \#(then) IS NOT \#(now) THEN ',"\#(column.name)":' || (\#(difference)) ELSE '' END"#
                }
            )
        }
        return json + " || '}'"
    }

    private static func elements(of set: String, without other: String) -> String {
        "SELECT json_group_array(value) FROM json_each(ifnull(\(set), '[]')) "
            + "WHERE value NOT IN (SELECT value FROM json_each(ifnull(\(other), '[]')))"
    }

    // MARK: What it was made on, and what it waits for

    /// The newest unsettled operation on the row.
    private func predecessor(_ key: String, as columns: String = "p.id") -> String {
        "(SELECT \(columns) FROM fieldpost_outbox AS p WHERE p.row = \(key) AND p.tbl = \(literal) "
            + "ORDER BY p.seq DESC LIMIT 1)"
    }

    func base(_ key: String) -> String {
        "ifnull(\(predecessor(key)), (SELECT v.version FROM fieldpost_rows AS v WHERE v.tbl = \(literal) "
            + "AND v.row = \(key) AND v.deleted = 0))"
    }

    /// The row's own last operation, and the unsettled creates of rows it refers to.
    func dependencies(_ row: String, _ key: String, changedSince old: String? = nil) -> String {
        let creates = references.map { column, parent in
            let value = "\(row).\(quoted(column.name))"
            let changed = old.map { " AND \($0).\(quoted(column.name)) IS NOT \(value)" } ?? ""
            return
                "SELECT c.id FROM fieldpost_outbox AS c WHERE c.row = \(value) AND c.tbl = \(sqlString(parent)) "
                + "AND c.action = 'create'\(changed)"
        }
        return ids(key, creates)
    }

    /// The row's own last operation, and those by which other rows ceased to refer to it.
    ///
    /// Those of its own group are left out: a group is applied whole.
    func deleteDependencies(_ key: String) -> String {
        let released =
            "SELECT o.id FROM fieldpost_released AS l CROSS JOIN fieldpost_outbox AS o WHERE l.row = \(key) "
            + "AND l.tbl = \(literal) AND o.seq = l.seq AND (o.grp IS NULL OR o.grp IS NOT (SELECT grp FROM fieldpost_session))"
        return ids(key, facts.isReferenced ? [released] : [])
    }

    private func ids(_ key: String, _ others: [String]) -> String {
        if others.isEmpty { return predecessor(key, as: "json_array(p.id)") }
        let all = ["SELECT \(predecessor(key)) AS id"] + others
        return "(SELECT nullif(json_group_array(d.id), '[]') FROM (\(all.joined(separator: " UNION "))) AS d "
            + "WHERE d.id IS NOT NULL)"
    }

    /// Follows the operation by which `OLD` ceases to refer to other rows: their deletes come after it.
    ///
    /// - Parameter changed: whether only references that differ in `NEW` count.
    func release(changed: Bool) -> [String] {
        let ended = references.map { column, parent in
            let value = "OLD.\(quoted(column.name))"
            var condition = changed ? "\(value) IS NOT NEW.\(quoted(column.name)) AND " : ""
            // A row that refers to itself waits for nobody.
            if parent == table.name { condition += "\(value) <> OLD.\(key) AND " }
            return "SELECT \(value), \(sqlString(parent)) WHERE \(condition)\(value) IS NOT NULL"
        }
        if ended.isEmpty { return [] }
        // last_insert_rowid() is the operation's seq: this table has no row ids, so that it leaves it alone.
        return [
            "INSERT INTO fieldpost_released (row, tbl, seq) SELECT *, last_insert_rowid() FROM "
                + "(\(ended.joined(separator: " UNION ")))"
        ]
    }
}
