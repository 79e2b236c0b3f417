internal import FieldpostCore
internal import FieldpostSQLite

/// The triggers that record every change of one table in the outbox, in the writer's own transaction.
///
/// They hold for every writer: typed records, plain SQL, and programs that know nothing of Fieldpost. They are silent
/// while the server's rows are applied. Each leaves an outbox that, replayed in order, reproduces the table.
struct CaptureSQL {
    let table: Table
    let schemaVersion: Int
    /// The columns of each unique index besides the key; an `OR REPLACE` removes rows through them.
    let uniqueKeys: [[String]]

    /// One trigger.
    struct Trigger: Equatable {
        let name: String
        let sql: String
    }

    private var name: String { quoted(table.name) }
    private var key: String { quoted(table.key) }
    private var literal: String { sqlString(table.name) }
    private let idle = "(SELECT applying FROM fieldpost_session) = 0"

    func triggers() -> [Trigger] {
        var list = [beforeInsert(), afterInsert()]
        if table.conflict == .appendOnly {
            list += [refuseUpdate(), beforeDelete(), discardCreate()]
        } else {
            list += [beforeUpdate(), afterUpdate(), afterKeyChange(), afterDelete()]
        }
        return list
    }

    private func trigger(_ event: String, _ timing: String, when condition: String? = nil, _ body: [String]) -> Trigger {
        let name = "fieldpost_\(table.name)_\(event)"
        let when = ([idle] + (condition.map { ["(\($0))"] } ?? [])).joined(separator: " AND ")
        let sql = """
            CREATE TRIGGER \(quoted(name)) \(timing) ON \(self.name) WHEN \(when) BEGIN
              \(body.joined(separator: ";\n  "));
            END
            """
        return Trigger(name: name, sql: sql)
    }

    // MARK: Insert

    /// Notes the rows that this insert would replace: their removal fires no trigger.
    private func beforeInsert() -> Trigger {
        trigger("before_insert", "BEFORE INSERT", noteReplaced(by: [[table.key]] + uniqueKeys, condition: nil))
    }

    private func noteReplaced(by keys: [[String]], condition: String?) -> [String] {
        let clashes = keys.map { columns in
            "(" + columns.map { "r.\(quoted($0)) = NEW.\(quoted($0))" }.joined(separator: " AND ") + ")"
        }.joined(separator: " OR ")
        let image = ColumnJSON(row: "r").object(table.columns)
        return [
            "DELETE FROM fieldpost_replaced WHERE tbl = \(literal)",
            "INSERT INTO fieldpost_replaced (tbl, row, image) SELECT \(literal), r.\(key), \(image) "
                + "FROM \(name) AS r WHERE (\(clashes))" + (condition.map { " AND \($0)" } ?? ""),
        ]
    }

    private func afterInsert() -> Trigger {
        let noted = "SELECT 1 FROM fieldpost_replaced WHERE tbl = \(literal) AND row = NEW.\(key)"
        var body = [CaptureChecks(table).statement]
        if table.conflict == .appendOnly {
            body.append(
                "SELECT RAISE(ABORT, \(appendOnlyMessage)) WHERE EXISTS (\(noted))")
        } else {
            body.append(saveBase("NEW", image: "(SELECT image FROM fieldpost_replaced WHERE tbl = \(literal) AND row = NEW.\(key))"))
        }
        body.append(create(where: "NOT EXISTS (\(noted))"))
        if table.conflict != .appendOnly { body.append(replaceUpdate()) }
        body += recordReplacedOthers()
        body.append(assertCaptured("NEW"))
        return trigger("after_insert", "AFTER INSERT", body)
    }

    /// A create with every column but the key, which the operation carries as its row.
    func create(row: String = "NEW", from source: String = "", where condition: String) -> String {
        insert(
            row, "create", change: #"'{"set":' || \#(ColumnJSON(row: row).object(table.columns.filter { $0.name != table.key })) || '}'"#,
            base: predecessor(row), after: dependencies(row, references: table.columns), from: source, where: condition)
    }

    /// A replaced row of the same key is an update of all its columns.
    private func replaceUpdate() -> String {
        let image = ColumnJSON(row: "NEW").object(table.columns)
        let change = changeParts(
            set: "',' || " + ColumnJSON(row: "NEW").members(plainColumns),
            old: { "json_extract(x.image, '$.\($0)')" })
        return insert(
            "NEW", "update", change: change, base: base("NEW"), after: dependencies("NEW", references: table.columns),
            from: ", fieldpost_replaced AS x",
            where: "x.tbl = \(literal) AND x.row = NEW.\(key) AND x.image IS NOT \(image)")
    }

    /// Rows that went through another unique index than the key.
    private func recordReplacedOthers() -> [String] {
        let gone =
            "x.tbl = \(literal) AND x.row IS NOT NEW.\(key) AND NOT EXISTS (SELECT 1 FROM \(name) AS t WHERE t.\(key) = x.row)"
        var body: [String] = []
        if !uniqueKeys.isEmpty {
            body.append(
                "UPDATE fieldpost_rows SET base = (SELECT x.image FROM fieldpost_replaced AS x WHERE x.tbl = \(literal) "
                    + "AND x.row = fieldpost_rows.row) WHERE tbl = \(literal) AND base IS NULL AND deleted = 0 "
                    + "AND row IN (SELECT x.row FROM fieldpost_replaced AS x WHERE \(gone))")
            body.append(
                insert(
                    "x", "delete", keyed: "x.row", change: "NULL", base: base("x", keyed: "x.row"),
                    after: dependencies("x", keyed: "x.row", references: []), from: ", fieldpost_replaced AS x",
                    where: gone))
        }
        body.append("DELETE FROM fieldpost_replaced WHERE tbl = \(literal)")
        return body
    }

    // MARK: Update

    private func beforeUpdate() -> Trigger {
        let columns = Array(Set([table.key] + uniqueKeys.flatMap(\.self))).sorted()
        return trigger(
            "before_update", "BEFORE UPDATE OF \(columns.map(quoted).joined(separator: ", "))",
            noteReplaced(by: [[table.key]] + uniqueKeys, condition: "r.\(key) IS NOT OLD.\(key)"))
    }

    private func afterUpdate() -> Trigger {
        let differs = table.columns.map { "OLD.\(quoted($0.name)) IS NOT NEW.\(quoted($0.name))" }
        let change = changeParts(
            set: ColumnJSON(row: "NEW").changed(plainColumns, since: "OLD"), old: { "OLD.\(quoted($0))" })
        let touched = table.columns.filter { $0.reference != nil }
        var body = [CaptureChecks(table).statement, saveBase("OLD")]
        body.append(
            insert(
                "NEW", "update", change: change, base: base("NEW"),
                after: dependencies("NEW", references: touched, changedSince: "OLD"), where: "1"))
        if !uniqueKeys.isEmpty { body += recordReplacedOthers() }
        body.append(assertCaptured("NEW"))
        return trigger(
            "after_update", "AFTER UPDATE",
            when: "OLD.\(key) IS NEW.\(key) AND (\(differs.joined(separator: " OR ")))", body)
    }

    /// A changed key is a new row and the end of the old one.
    private func afterKeyChange() -> Trigger {
        let noted = "SELECT 1 FROM fieldpost_replaced WHERE tbl = \(literal) AND row = NEW.\(key)"
        let image = "(SELECT image FROM fieldpost_replaced WHERE tbl = \(literal) AND row = NEW.\(key))"
        var body = [CaptureChecks(table).statement, saveBase("NEW", image: image), saveBase("OLD")]
        body += [create(where: "NOT EXISTS (\(noted))"), replaceUpdate(), delete("OLD")]
        body += recordReplacedOthers()
        body.append(assertCaptured("OLD"))
        return trigger("after_key_change", "AFTER UPDATE OF \(key)", when: "OLD.\(key) IS NOT NEW.\(key)", body)
    }

    // MARK: Delete

    private func afterDelete() -> Trigger {
        trigger(
            "after_delete", "AFTER DELETE",
            [
                saveBase("OLD"), delete("OLD"),
                // With recursive triggers on, a replaced row comes through here and is a delete, then a create.
                "DELETE FROM fieldpost_replaced WHERE tbl = \(literal) AND row = OLD.\(key)",
                assertCaptured("OLD"),
            ])
    }

    func delete(_ row: String, keyed: String? = nil, from source: String = "", where condition: String = "1") -> String {
        let key = keyed ?? "\(row).\(self.key)"
        return insert(
            row, "delete", keyed: key, change: "NULL", base: base(row, keyed: key),
            after: dependencies(row, keyed: key, references: []), from: source, where: condition)
    }

    // MARK: Append only

    private var appendOnlyMessage: String {
        sqlString("fieldpost append_only: rows of \(table.name) are never changed; add a new row instead")
    }

    private func refuseUpdate() -> Trigger {
        trigger("refuse_update", "BEFORE UPDATE", ["SELECT RAISE(ABORT, \(appendOnlyMessage))"])
    }

    private var unsentCreate: String {
        "SELECT seq FROM fieldpost_outbox WHERE row = OLD.\(key) AND tbl = \(literal) AND action = 'create' "
            + "AND seq > (SELECT sent_upto FROM fieldpost_lease)"
    }

    private func beforeDelete() -> Trigger {
        trigger(
            "before_delete", "BEFORE DELETE",
            ["SELECT RAISE(ABORT, \(appendOnlyMessage)) WHERE NOT EXISTS (\(unsentCreate))"])
    }

    private func discardCreate() -> Trigger {
        trigger("discard_create", "AFTER DELETE", ["DELETE FROM fieldpost_outbox WHERE seq IN (\(unsentCreate))"])
    }
}

// MARK: - Parts

extension CaptureSQL {
    /// Columns whose new value travels as it is.
    private var plainColumns: [Column] {
        table.columns.filter { column in
            let rule = table.rule(for: column.name)
            return rule != .counter && rule != .set && column.name != table.key
        }
    }

    /// `{"set":{…},"inc":{…},"add":{…},"remove":{…}}` where `set` is a text of `,"name":value` members.
    private func changeParts(set: String, old: (String) -> String) -> String {
        var json = #"'{"set":{' || substr(\#(set), 2) || '}'"#
        let counters = table.columns.filter { table.rule(for: $0.name) == .counter }
        if !counters.isEmpty {
            let parts = counters.map { column in
                #"CASE WHEN \#(old(column.name)) IS NOT NEW.\#(quoted(column.name)) THEN ',"\#(column.name)":' "#
                    + "|| (NEW.\(quoted(column.name)) - \(old(column.name))) ELSE '' END"
            }
            json += #" || ',"inc":{' || substr(\#(parts.joined(separator: " || ")), 2) || '}'"#
        }
        let sets = table.columns.filter { table.rule(for: $0.name) == .set }
        for (part, new) in [("add", true), ("remove", false)] where !sets.isEmpty {
            let parts = sets.map { column in
                let now = "NEW.\(quoted(column.name))"
                let then = old(column.name)
                let (from, without) = new ? (now, then) : (then, now)
                let difference =
                    "SELECT json_group_array(value) FROM json_each(ifnull(\(from), '[]')) "
                    + "WHERE value NOT IN (SELECT value FROM json_each(ifnull(\(without), '[]')))"
                return #"CASE WHEN \#(then) IS NOT \#(now) THEN ',"\#(column.name)":' || (\#(difference)) ELSE '' END"#
            }
            json += #" || ',"\#(part)":{' || substr(\#(parts.joined(separator: " || ")), 2) || '}'"#
        }
        return json + " || '}'"
    }

    /// The operation on the same row that is unsettled, the newest.
    private func predecessor(_ row: String, keyed: String? = nil) -> String {
        "(SELECT p.id FROM fieldpost_outbox AS p WHERE p.row = \(keyed ?? "\(row).\(key)") AND p.tbl = \(literal) "
            + "ORDER BY p.seq DESC LIMIT 1)"
    }

    private func base(_ row: String, keyed: String? = nil) -> String {
        "ifnull(\(predecessor(row, keyed: keyed)), (SELECT v.version FROM fieldpost_rows AS v WHERE v.tbl = \(literal) "
            + "AND v.row = \(keyed ?? "\(row).\(key)") AND v.deleted = 0))"
    }

    /// The ids this operation waits for: the row's own last one, and the unsettled creates of rows it refers to.
    private func dependencies(
        _ row: String, keyed: String? = nil, references: [Column], changedSince old: String? = nil
    ) -> String {
        var parts = ["SELECT \(predecessor(row, keyed: keyed)) AS id"]
        for column in references {
            guard let reference = column.reference else { continue }
            let value = "\(row).\(quoted(column.name))"
            let changed = old.map { " AND \($0).\(quoted(column.name)) IS NOT \(value)" } ?? ""
            parts.append(
                "SELECT c.id FROM fieldpost_outbox AS c WHERE c.row = \(value) AND c.tbl = \(sqlString(reference.table)) "
                    + "AND c.action = 'create'\(changed)")
        }
        return "(SELECT nullif(json_group_array(d.id), '[]') FROM (\(parts.joined(separator: " UNION "))) AS d "
            + "WHERE d.id IS NOT NULL)"
    }

    /// Keeps the row as the server last knew it, before the first unsettled change.
    private func saveBase(_ row: String, image: String? = nil) -> String {
        let value = image ?? ColumnJSON(row: row).object(table.columns)
        return "UPDATE fieldpost_rows SET base = \(value) WHERE tbl = \(literal) AND row = \(row).\(key) "
            + "AND base IS NULL AND deleted = 0"
    }

    private func insert(
        _ row: String, _ action: String, keyed: String? = nil, change: String, base: String, after: String,
        from source: String = "", where condition: String
    ) -> String {
        """
        INSERT INTO fieldpost_outbox (id, grp, tbl, row, action, change, base, after, schema, created_at)
          SELECT printf('%08x-%04x-7%03x-%04x-%012x', s.at >> 16, s.at & 65535, random() & 4095,
              32768 | (random() & 16383), random() & 281474976710655),
            s.grp, \(literal), \(keyed ?? "\(row).\(key)"), '\(action)', \(change), \(base), \(after), \(schemaVersion), s.at
          FROM (SELECT grp, ifnull(at, CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)) AS at
            FROM fieldpost_session) AS s\(source)
          WHERE \(condition)
        """
    }

    /// The last word of a trigger: no change without its outbox row.
    private func assertCaptured(_ row: String) -> String {
        "SELECT RAISE(ABORT, 'fieldpost: the change was not captured, so it is not made') WHERE NOT EXISTS "
            + "(SELECT 1 FROM fieldpost_outbox WHERE row = \(row).\(key) AND tbl = \(literal))"
    }
}

extension ColumnJSON {
    /// `"name":value` for each column, separated by commas.
    func members(_ columns: [Column]) -> String {
        columns.isEmpty ? "''" : list(columns.map { ("\"\($0.name)\":", text($0)) })
    }
}
