internal import FieldpostCore

/// Triggers on Fieldpost's own tables, which the triggers of all the app's tables use.
///
/// SQLite compiles every trigger of a table into each statement on it: what is long, and seldom needed, is
/// here once.
enum SharedTriggers {
    /// Each trigger by its name.
    static var all: [CaptureSQL.Trigger] {
        [
            .init(name: "fieldpost_doubtful_text_check", sql: textDoubts),
            .init(name: "fieldpost_doubtful_json_check", sql: jsonDoubts),
            .init(name: "fieldpost_doubtful_set_check", sql: setDoubts),
            .init(name: "fieldpost_gone_record", sql: gone),
            .init(name: "fieldpost_released_put_behind", sql: putBehind),
        ]
    }

    /// A doubtful value that proves good is not inserted; one that stays aborts the write, whose trigger
    /// looks.
    private static var textDoubts: String {
        """
        CREATE TRIGGER fieldpost_doubtful_text_check BEFORE INSERT ON fieldpost_doubtful_text
        WHEN NOT \(DeepChecks.fault(.text, "NEW.value")) BEGIN
          SELECT RAISE(IGNORE);
        END
        """
    }

    private static var jsonDoubts: String { structured(.json) }
    private static var setDoubts: String { structured(.set) }

    private static func structured(_ type: ColumnType) -> String {
        let table = "fieldpost_doubtful_\(type.rawValue)"
        return """
            CREATE TRIGGER \(table)_check BEFORE INSERT ON \(table) BEGIN
              INSERT INTO fieldpost_doubtful_text (place, value) SELECT NEW.place, * FROM (\(DeepChecks.texts("NEW.value")));
              SELECT RAISE(IGNORE) WHERE NOT \(DeepChecks.structureFault(type, "NEW.value"));
            END
            """
    }

    /// Rows that another took the place of through a unique index are recorded as deleted.
    private static var gone: String {
        let delete = CaptureSQL.generic.insert(
            "NEW",
            "delete",
            table: "NEW.tbl",
            keyed: "NEW.row",
            change: "NULL",
            base: CaptureSQL.generic.base("NEW.row"),
            after: CaptureSQL.generic.deleteDependencies("NEW.row"),
            schema: "NEW.schema"
        )
        return """
            CREATE TRIGGER fieldpost_gone_record BEFORE INSERT ON fieldpost_gone BEGIN
              UPDATE fieldpost_rows SET base = NEW.image WHERE tbl = NEW.tbl AND row = NEW.row AND base IS NULL AND deleted = 0;
              \(delete);
              \(CaptureSQL.generic.mustHaveRecorded);
              DELETE FROM fieldpost_replaced WHERE tbl = NEW.tbl AND row = NEW.row;
              SELECT RAISE(IGNORE);
            END
            """
    }

    /// A delete recorded before the last reference to the row ended goes behind the operation that ended it:
    /// the server would refuse it, or cascade, while the reference stands.
    ///
    /// Only the newest operation on the row, unsent, and of the same transaction or of a writer without
    /// groups, whose operation then names what it waits for.
    private static var putBehind: String {
        let columns =
            "id, grp, tbl, row, action, change, base, schema, created_at, state, attempts, next_attempt_at, "
            + "last_attempt_at, held_by, error, wire_seq"
        let newest = "row = NEW.row AND tbl = NEW.tbl ORDER BY seq DESC LIMIT 1"
        return """
            CREATE TRIGGER fieldpost_released_put_behind AFTER INSERT ON fieldpost_released WHEN EXISTS (
              SELECT 1 FROM (SELECT * FROM fieldpost_outbox WHERE \(newest)) AS p WHERE p.action = 'delete' AND p.seq < NEW.seq
                AND p.seq > (SELECT sent_upto FROM fieldpost_lease) AND p.grp IS (SELECT grp FROM fieldpost_session))
            BEGIN
              INSERT INTO fieldpost_outbox (\(columns), after)
                SELECT \(columns), CASE WHEN grp IS NULL THEN json_insert(ifnull(after, '[]'), '$[#]',
                  (SELECT o.id FROM fieldpost_outbox AS o WHERE o.seq = NEW.seq)) ELSE after END
                FROM fieldpost_outbox WHERE \(newest);
              DELETE FROM fieldpost_outbox WHERE seq = (SELECT seq FROM fieldpost_outbox
                WHERE row = NEW.row AND tbl = NEW.tbl ORDER BY seq DESC LIMIT 1 OFFSET 1);
            END
            """
    }
}
