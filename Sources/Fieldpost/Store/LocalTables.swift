/// The tables that Fieldpost keeps in the app's own database file.
///
/// Plain rowid tables without constraints where a trigger writes: the conflict clause of the app's own
/// statement (`OR IGNORE`, `OR REPLACE`) also rules the statements inside a trigger, and must find nothing to
/// ignore there.
enum LocalTables {
    /// The layout written here; a file with a higher one is refused.
    static let format: Int64 = 1

    static let script = """
        CREATE TABLE fieldpost_meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

        -- What the running transaction is. Triggers read it; see Capture.
        CREATE TABLE fieldpost_session (
          id INTEGER PRIMARY KEY CHECK (id = 1),
          applying INTEGER NOT NULL DEFAULT 0, -- 1 while the server's rows are written
          grp INTEGER,                         -- the group: the seq of its first operation
          at INTEGER,                          -- milliseconds since 1970
          trusted INTEGER NOT NULL DEFAULT 0,  -- 1 while all text is known to be valid UTF-8
          coalesced_upto INTEGER NOT NULL DEFAULT 0 -- the newest operation looked at by Coalescing
        );
        INSERT INTO fieldpost_session (id) VALUES (1);

        -- One row for each change that the server has not settled, in order of seq.
        CREATE TABLE fieldpost_outbox (
          seq INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT,                             -- idempotency key
          grp INTEGER,                         -- NULL: a group of its own
          tbl TEXT, row TEXT, action TEXT,
          change TEXT,                         -- JSON: set, inc, add, remove
          base,                                -- a version, or the id of the operation it was made after
          after TEXT,                          -- JSON: ids of the unsettled operations it depends on
          schema INTEGER, created_at INTEGER,
          state INTEGER DEFAULT 0,             -- 0 pending, 1 waiting, 2 held, 3 failed
          attempts INTEGER DEFAULT 0,
          next_attempt_at INTEGER, last_attempt_at INTEGER,
          held_by TEXT, error TEXT,
          wire_seq INTEGER,                    -- NULL: seq; a repaired operation gets a new one
          history TEXT,                        -- JSON: what came of each attempt, oldest first
          decision TEXT                            -- JSON: what a person decided while the answer is outstanding
        );
        CREATE INDEX fieldpost_outbox_row ON fieldpost_outbox (row, tbl);
        CREATE INDEX fieldpost_outbox_pending ON fieldpost_outbox (state) WHERE state = 0;
        CREATE INDEX fieldpost_outbox_waiting ON fieldpost_outbox (next_attempt_at) WHERE state = 1;
        CREATE INDEX fieldpost_outbox_aside ON fieldpost_outbox (state) WHERE state >= 2;
        CREATE INDEX fieldpost_outbox_decided ON fieldpost_outbox (seq) WHERE decision IS NOT NULL;
        -- Where operations that do not go now are looked up; a write makes no entry in these.
        CREATE INDEX fieldpost_outbox_stopped ON fieldpost_outbox (id) WHERE state > 0;
        CREATE INDEX fieldpost_outbox_judged ON fieldpost_outbox (last_attempt_at) WHERE state = 1;
        CREATE INDEX fieldpost_outbox_held ON fieldpost_outbox (held_by) WHERE state = 2;
        CREATE INDEX fieldpost_outbox_unsettled ON fieldpost_outbox (seq)
          WHERE state = 3 AND instr(error, '"unsettled":true');

        -- What the server last said of a row; base only while edits are unsettled.
        CREATE TABLE fieldpost_rows (
          tbl TEXT, row TEXT, version INTEGER, base TEXT, deleted INTEGER DEFAULT 0, extra TEXT,
          PRIMARY KEY (tbl, row)
        ) WITHOUT ROWID;

        -- Rows that a statement is about to put another in the place of, which tells no trigger: noted
        -- before, by the key of the row that comes. Notes of statements that replaced nothing stay until the
        -- next transaction.
        CREATE TABLE fieldpost_replaced (
          tbl TEXT, new_row TEXT, row TEXT, image TEXT, PRIMARY KEY (tbl, new_row, row)
        ) WITHOUT ROWID;
        CREATE INDEX fieldpost_replaced_row ON fieldpost_replaced (row);

        -- Rows that another row ceased to refer to by the operation seq: their delete waits for it.
        CREATE TABLE fieldpost_released (row TEXT, tbl TEXT, seq INTEGER, PRIMARY KEY (row, tbl, seq)) WITHOUT ROWID;
        CREATE INDEX fieldpost_released_seq ON fieldpost_released (seq);

        -- Always empty: what goes in is taken by their triggers; see SharedTriggers.
        CREATE TABLE fieldpost_doubtful_text (place TEXT, value TEXT);
        CREATE TABLE fieldpost_doubtful_json (place TEXT, value TEXT);
        CREATE TABLE fieldpost_doubtful_set (place TEXT, value TEXT);
        CREATE TABLE fieldpost_gone (tbl TEXT, row TEXT, image TEXT, schema INTEGER);

        -- The right to send: one owner at a time, told apart by a fence that only grows.
        CREATE TABLE fieldpost_lease (
          id INTEGER PRIMARY KEY CHECK (id = 1),
          owner TEXT, fence INTEGER NOT NULL DEFAULT 0, expires_at INTEGER NOT NULL DEFAULT 0,
          on_wire TEXT NOT NULL DEFAULT '[]',  -- JSON: the seqs in the request that is out
          sent_upto INTEGER NOT NULL DEFAULT 0,
          failures INTEGER NOT NULL DEFAULT 0,
          next_run_at INTEGER NOT NULL DEFAULT 0, run_delay INTEGER NOT NULL DEFAULT 0,
          last_sync_at INTEGER, last_error TEXT
        );
        INSERT INTO fieldpost_lease (id) VALUES (1);

        -- What became of operations, with their bytes.
        CREATE TABLE fieldpost_outcomes (
          seq INTEGER PRIMARY KEY, id TEXT, grp INTEGER, tbl TEXT, row TEXT, action TEXT, change TEXT, base, after TEXT,
          schema INTEGER, created_at INTEGER, status TEXT, version INTEGER, result TEXT, settled_at INTEGER,
          history TEXT
        );

        -- Values that lost, until someone settles them.
        CREATE TABLE fieldpost_conflicts (
          id INTEGER PRIMARY KEY AUTOINCREMENT, operation TEXT, tbl TEXT, row TEXT, mine TEXT, theirs TEXT, at INTEGER,
          action TEXT, image TEXT              -- JSON: the row as the user saw it
        );

        -- Changes from the server that could not be applied yet, with the reason.
        CREATE TABLE fieldpost_parked (
          tbl TEXT, row TEXT, version INTEGER, change TEXT, reason TEXT, PRIMARY KEY (tbl, row)
        ) WITHOUT ROWID;
        """
}
