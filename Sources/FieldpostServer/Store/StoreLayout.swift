/// The tables of the server itself, in every tenant's file.
///
/// `fieldpost_sequence` numbers everything that happens. It is a table and not `AUTOINCREMENT`, because a statement
/// loads an AUTOINCREMENT counter once, before its triggers run, and moves and deletions renumber entries in place.
enum StoreLayout {
    /// Raised when a store of this layout could not be read by an older program.
    static let formatVersion: Int64 = 1

    static let tables = """
        CREATE TABLE fieldpost_meta (key TEXT PRIMARY KEY NOT NULL, value ANY) STRICT;
        CREATE TABLE fieldpost_sequence (version INTEGER NOT NULL) STRICT;
        INSERT INTO fieldpost_sequence VALUES (0);
        CREATE TABLE fieldpost_feed (
          version INTEGER PRIMARY KEY,
          tbl TEXT NOT NULL,
          row TEXT NOT NULL,
          scope TEXT NOT NULL,
          deleted INTEGER NOT NULL DEFAULT 0,
          reason TEXT,
          columns TEXT,
          UNIQUE (tbl, row, scope)
        ) STRICT;
        CREATE INDEX fieldpost_feed_scope ON fieldpost_feed (scope, version);
        CREATE TABLE fieldpost_replaced (tbl TEXT NOT NULL, row TEXT NOT NULL) STRICT;
        CREATE TABLE fieldpost_operations (
          version INTEGER PRIMARY KEY,
          id TEXT NOT NULL UNIQUE,
          fingerprint BLOB NOT NULL,
          status TEXT NOT NULL,
          result TEXT NOT NULL,
          device TEXT,
          seq INTEGER NOT NULL,
          at INTEGER NOT NULL,
          token TEXT NOT NULL,
          scopes TEXT NOT NULL,            -- what the sender could see: '*', or a JSON array
          operation TEXT NOT NULL
        ) STRICT;
        CREATE INDEX fieldpost_operations_device ON fieldpost_operations (device, version);
        CREATE INDEX fieldpost_operations_seq ON fieldpost_operations (device, seq);
        CREATE TABLE fieldpost_devices (
          id TEXT PRIMARY KEY NOT NULL,
          last_seen INTEGER NOT NULL,
          schema INTEGER,
          seq INTEGER NOT NULL DEFAULT 0,
          cursor INTEGER,
          token TEXT
        ) STRICT;
        CREATE TABLE fieldpost_epochs (id BLOB PRIMARY KEY NOT NULL, first_version INTEGER NOT NULL) STRICT;
        CREATE TABLE fieldpost_conflicts (
          id INTEGER PRIMARY KEY,
          version INTEGER NOT NULL,
          tbl TEXT NOT NULL,
          row TEXT NOT NULL,
          scope TEXT NOT NULL,
          column_name TEXT NOT NULL,
          losing TEXT NOT NULL,
          losing_operation TEXT,
          winning_operation TEXT NOT NULL,
          device TEXT,
          at INTEGER NOT NULL,
          settled_at INTEGER
        ) STRICT;
        CREATE INDEX fieldpost_conflicts_row ON fieldpost_conflicts (tbl, row);
        CREATE TABLE fieldpost_tokens (
          id TEXT PRIMARY KEY NOT NULL,
          name TEXT NOT NULL,
          hash BLOB NOT NULL UNIQUE,
          tenant TEXT NOT NULL,
          scopes TEXT NOT NULL,
          role TEXT NOT NULL,
          created_at INTEGER NOT NULL,
          revoked_at INTEGER,
          account TEXT NOT NULL DEFAULT ''
        ) STRICT;
        """
}
