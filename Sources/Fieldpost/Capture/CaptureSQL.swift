internal import FieldpostCore
internal import FieldpostSQLite

/// The triggers that record every change of one table in the outbox, in the writer's own transaction.
///
/// They hold for every writer: typed records, plain SQL, and programs that know nothing of Fieldpost. They
/// are silent while the server's rows are applied. Each leaves an outbox that, replayed in order, reproduces
/// the table.
///
/// They name no table of the app but their own: SQLite refuses to rename a table while any trigger names one
/// that is missing, and so an app could not rebuild a table.
struct CaptureSQL {
    let table: Table
    let schemaVersion: Int
    let facts: TableFacts

    init(table: Table, schemaVersion: Int, facts: TableFacts) {
        self.table = table
        self.schemaVersion = schemaVersion
        self.facts = facts
    }

    /// Writes operations on rows of whatever table `NEW.tbl` names, for ``SharedTriggers``.
    static var generic: CaptureSQL {
        var capture = CaptureSQL(
            table: Table("any") {},
            schemaVersion: 0,
            facts: TableFacts(isReferenced: true)
        )
        capture.isGeneric = true
        return capture
    }

    /// Counts what these triggers have ever been: a file checked under another number is checked again.
    static let revision = 1

    /// One trigger.
    struct Trigger: Equatable {
        let name: String
        let sql: String
    }

    var name: String { quoted(table.name) }
    var key: String { quoted(table.key) }
    var literal: String { isGeneric ? "NEW.tbl" : sqlString(table.name) }
    private var isGeneric = false
    private var checks: CaptureChecks { CaptureChecks(table: table, unchecked: facts.uncheckedColumns) }

    func triggers() -> [Trigger] {
        if table.conflict == .appendOnly {
            return [
                beforeInsert(), appendInsert(), refuseReplace(), refuseUpdate(), beforeDelete(),
                discardCreate(),
            ]
                + check("insert")
        }
        return [
            beforeInsert(), afterInsert(), afterReplace(),
            beforeUpdate(), afterUpdate(), afterKeyChange(), afterKeyReplace(), afterDelete(),
        ] + check("insert") + check("update", since: "OLD")
    }

    private func check(_ event: String, since old: String? = nil) -> [Trigger] {
        guard let condition = checks.condition(since: old) else { return [] }
        return [
            trigger(
                "check_\(event)",
                "AFTER \(event.uppercased())",
                when: [condition],
                checks.statements(since: old)
            )
        ]
    }

    private func trigger(_ event: String, _ timing: String, when conditions: [String] = [], _ body: [String])
        -> Trigger
    {
        let name = "fieldpost_\(table.name)_\(event)"
        let when = (["(SELECT applying FROM fieldpost_session) = 0"] + conditions).joined(separator: " AND ")
        let sql = """
            CREATE TRIGGER \(quoted(name)) \(timing) ON \(self.name) WHEN \(when) BEGIN
              \(body.joined(separator: ";\n  "));
            END
            """
        return Trigger(name: name, sql: sql)
    }

    // MARK: Insert

    private func beforeInsert() -> Trigger {
        let clash = clash(facts.uniqueKeys)
        return trigger(
            "before_insert",
            "BEFORE INSERT",
            when: ["EXISTS (SELECT 1 FROM \(name) AS r WHERE \(clash))"],
            noteReplaced(
                "SELECT r.\(key), \(ColumnJSON(row: "r").object(table.columns)) FROM \(name) AS r WHERE \(clash)"
            )
        )
    }

    /// The rows that `NEW` would take the place of.
    private func clash(_ keys: [UniqueKey]) -> String {
        (["r.\(key) = NEW.\(key)"] + keys.map { "(\($0.clash))" }).joined(separator: " OR ")
    }

    private func noteReplaced(_ rows: String) -> [String] {
        [
            "DELETE FROM fieldpost_replaced WHERE tbl = \(literal) AND new_row = NEW.\(key)",
            "INSERT INTO fieldpost_replaced (tbl, new_row, row, image) SELECT \(literal), NEW.\(key), * FROM (\(rows))",
        ]
    }

    private var noted: String {
        "EXISTS (SELECT 1 FROM fieldpost_replaced WHERE tbl = \(literal) AND new_row = NEW.\(key) AND row = NEW.\(key))"
    }

    private func afterInsert() -> Trigger {
        trigger(
            "after_insert",
            "AFTER INSERT",
            when: ["NOT \(noted)"],
            [create(), mustHaveRecorded] + recordReplacedOthers()
        )
    }

    /// A row put in the place of one with the same key is an update of what differs.
    private func afterReplace() -> Trigger {
        trigger(
            "after_replace",
            "AFTER INSERT",
            when: [noted],
            replaceUpdate() + recordReplacedOthers() + [forgetImage]
        )
    }

    private func replaceUpdate() -> [String] {
        let row = "x.tbl = \(literal) AND x.new_row = NEW.\(key) AND x.row = NEW.\(key)"
        let old = { (column: String) in "json_extract(x.image, '$.\(column)')" }
        let change = changeParts(
            set: ColumnJSON(row: "NEW").changed(plainColumns, sinceImage: "x.image"),
            old: old
        )
        let steps = checks.wideSteps(
            old: old,
            from: "fieldpost_replaced AS x WHERE \(row) AND x.image IS NOT NULL"
        )
        return [
            // An image that equals the new row is taken away first: nothing changed, and nothing is recorded.
            "UPDATE fieldpost_replaced SET image = NULL WHERE tbl = \(literal) AND new_row = NEW.\(key) AND row = NEW.\(key) "
                + "AND image = \(ColumnJSON(row: "NEW").object(table.columns))",
            saveBase("NEW", image: "(SELECT x.image FROM fieldpost_replaced AS x WHERE \(row))"),
            insert(
                "NEW",
                "update",
                change: change,
                base: base("NEW.\(key)"),
                after: dependencies("NEW", "NEW.\(key)"),
                from: "fieldpost_replaced AS x WHERE \(row) AND x.image IS NOT NULL"
            ),
            "\(mustHaveRecorded) AND EXISTS (SELECT 1 FROM fieldpost_replaced AS x WHERE \(row) AND x.image IS NOT NULL)",
        ] + (steps.map { [$0] } ?? [])
    }

    /// Rows that went through another unique index than the key.
    private func recordReplacedOthers() -> [String] {
        if facts.uniqueKeys.isEmpty { return [] }
        return [
            "INSERT INTO fieldpost_gone (tbl, row, image, schema) SELECT x.tbl, x.row, x.image, \(schemaVersion) "
                + "FROM fieldpost_replaced AS x WHERE x.tbl = \(literal) AND x.new_row = NEW.\(key) AND x.row <> NEW.\(key) "
                + "AND NOT EXISTS (SELECT 1 FROM \(name) AS t WHERE t.\(key) = x.row)"
        ]
    }

    /// A note is kept, since another trigger on the same row may still ask whether there is one.
    private var forgetImage: String {
        "UPDATE fieldpost_replaced SET image = NULL WHERE tbl = \(literal) AND new_row = NEW.\(key)"
    }

    // MARK: Update

    private func beforeUpdate() -> Trigger {
        let columns = facts.uniqueKeys.reduce(Set([table.key]) as Set<String>?) { known, unique in
            unique.columns.flatMap { known?.union($0) }
        }
        let of = columns.map { " OF " + $0.sorted().map(quoted).joined(separator: ", ") } ?? ""
        let rows = "FROM \(name) AS r WHERE r.\(key) <> OLD.\(key) AND (\(clash(facts.uniqueKeys)))"
        return trigger(
            "before_update",
            "BEFORE UPDATE\(of)",
            when: ["EXISTS (SELECT 1 \(rows))"],
            noteReplaced("SELECT r.\(key), \(ColumnJSON(row: "r").object(table.columns)) \(rows)")
        )
    }

    private func afterUpdate() -> Trigger {
        let differs = table.columns.map { "OLD.\(quoted($0.name)) IS NOT NEW.\(quoted($0.name))" }
        let change = changeParts(
            set: ColumnJSON(row: "NEW").changed(plainColumns, since: "OLD"),
            old: { "OLD.\(quoted($0))" }
        )
        let body =
            [
                saveBase("OLD"),
                insert(
                    "NEW",
                    "update",
                    change: change,
                    base: base("NEW.\(key)"),
                    after: dependencies("NEW", "NEW.\(key)", changedSince: "OLD")
                ),
                mustHaveRecorded,
            ] + release(changed: true) + recordReplacedOthers()
        return trigger(
            "after_update",
            "AFTER UPDATE",
            when: ["OLD.\(key) = NEW.\(key)", "(\(differs.joined(separator: " OR ")))"],
            body
        )
    }

    /// A changed key is a new row and the end of the old one.
    private func afterKeyChange() -> Trigger {
        let body =
            checks.statements() + [
                create(), mustHaveRecorded, saveBase("OLD"), delete("OLD"), mustHaveRecorded,
            ]
            + release(changed: false) + recordReplacedOthers() + [forget("OLD")]
        return trigger(
            "after_key_change",
            "AFTER UPDATE OF \(key)",
            when: ["OLD.\(key) <> NEW.\(key)", "NOT \(noted)"],
            body
        )
    }

    /// A changed key that was another row's.
    private func afterKeyReplace() -> Trigger {
        let body =
            replaceUpdate() + [saveBase("OLD"), delete("OLD"), mustHaveRecorded]
            + release(changed: false) + recordReplacedOthers() + [forget("OLD"), forgetImage]
        return trigger(
            "after_key_replace",
            "AFTER UPDATE OF \(key)",
            when: ["OLD.\(key) <> NEW.\(key)", noted],
            body
        )
    }

    // MARK: Delete

    private func afterDelete() -> Trigger {
        let body =
            [saveBase("OLD"), delete("OLD"), mustHaveRecorded] + release(changed: false)
            // With recursive triggers on, a replaced row comes through here and is a delete, then a create.
            + [forget("OLD")]
        return trigger("after_delete", "AFTER DELETE", body)
    }

    private func forget(_ row: String) -> String {
        "DELETE FROM fieldpost_replaced WHERE tbl = \(literal) AND row = \(row).\(key)"
    }

    // MARK: Append only

    private var appendOnlyMessage: String {
        sqlString("fieldpost append_only: rows of \(table.name) are never changed; add a new row instead")
    }

    private func appendInsert() -> Trigger {
        trigger(
            "after_insert",
            "AFTER INSERT",
            when: ["NOT \(noted)"],
            [create(), mustHaveRecorded]
        )
    }

    /// Refuses an insert that took the place of any row.
    private func refuseReplace() -> Trigger {
        let gone =
            "EXISTS (SELECT 1 FROM fieldpost_replaced AS x WHERE x.tbl = \(literal) AND x.new_row = NEW.\(key) "
            + "AND (x.row = NEW.\(key) OR NOT EXISTS (SELECT 1 FROM \(name) AS t WHERE t.\(key) = x.row)))"
        return trigger(
            "refuse_replace",
            "AFTER INSERT",
            when: [gone],
            ["SELECT RAISE(ABORT, \(appendOnlyMessage))"]
        )
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
            "before_delete",
            "BEFORE DELETE",
            ["SELECT RAISE(ABORT, \(appendOnlyMessage)) WHERE NOT EXISTS (\(unsentCreate))"]
        )
    }

    private func discardCreate() -> Trigger {
        trigger(
            "discard_create",
            "AFTER DELETE",
            ["DELETE FROM fieldpost_outbox WHERE seq IN (\(unsentCreate))", forget("OLD")]
        )
    }
}
