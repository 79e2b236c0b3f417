internal import FieldpostCore
internal import FieldpostSQLite

/// Makes one file ready to serve one schema: creates it, or brings an older one up to date.
///
/// Everything happens in one transaction, so that a kill leaves the store as it was or as it must be. What a newer
/// program or a newer schema version wrote is refused and left untouched.
struct StoreOpening {
    let connection: Connection
    let now: Timestamp
    let random: (Int) -> [UInt8]

    /// Creates or upgrades the store for `schema`, checks its triggers, and returns the key that signs cursors.
    func open(_ schema: Schema) throws -> [UInt8] {
        do { try schema.validate() } catch { throw ServerError(.invalidSchema, error.description) }
        try connection.configureWriter(synchronous: .full)
        try addMissingColumn()
        if try needsWork(schema) {
            // Tables are rebuilt while others refer to them; the check below takes the place of enforcement. The
            // pragma does nothing inside a transaction.
            try connection.execute("PRAGMA foreign_keys = OFF")
            defer { try? connection.execute("PRAGMA foreign_keys = ON") }
            try connection.transaction(.immediate) { try work(schema) }
        }
        return try signingKey()
    }

    /// Creates what tokens need, where there is no store yet.
    func openForTokens() throws {
        try connection.configureWriter(synchronous: .full)
        if try storedFormat() == nil { try connection.transaction(.immediate) { try createLayout() } }
        try addMissingColumn()
    }

    /// Stores made before tokens could name an account lack its column; older programs do not mind it.
    private func addMissingColumn() throws {
        let columns = "SELECT 1 FROM pragma_table_info('fieldpost_tokens') WHERE name"
        func lacksColumn() throws -> Bool {
            try connection.scalar("\(columns) = 'id'") != nil
                && connection.scalar("\(columns) = 'account'") == nil
        }
        guard try storedFormat() != nil, try lacksColumn() else { return }
        try connection.transaction(.immediate) {
            if try lacksColumn() {
                try connection.execute(
                    "ALTER TABLE fieldpost_tokens ADD COLUMN account TEXT NOT NULL DEFAULT ''"
                )
            }
        }
    }

    // MARK: What is there

    private func meta(_ key: String) throws -> Value? {
        try connection.scalar("SELECT value FROM fieldpost_meta WHERE key = ?", .text(key))
    }

    private func tableExists(_ name: String) throws -> Bool {
        try connection.scalar("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", .text(name))
            != nil
    }

    /// The layout's version, or `nil` for an empty file.
    private func storedFormat() throws -> Int64? {
        guard try tableExists("fieldpost_feed") else {
            let foreign =
                "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            if try connection.scalar(foreign) != nil {
                throw ServerError(.notAStore, "The file holds another program's tables; choose another path.")
            }
            return nil
        }
        let format = try meta("format")?.integer ?? 0
        if format > StoreLayout.formatVersion {
            throw ServerError(
                .newerFormat,
                "A newer Fieldpost wrote this store; run that version or a newer one."
            )
        }
        return format
    }

    private func storedSchema() throws -> Schema? {
        guard let text = try meta("schema")?.text else { return nil }
        do { return try Schema(json: Array(text.utf8)) } catch {
            throw ServerError(
                .notAStore,
                "The schema kept in the store cannot be read; restore it from a copy."
            )
        }
    }

    private func signingKey() throws -> [UInt8] {
        guard case .blob(let key) = try meta("signing_key") else {
            throw ServerError(.notAStore, "The store has no signing key; restore it from a copy.")
        }
        return key
    }

    private func needsWork(_ schema: Schema) throws -> Bool {
        guard try storedFormat() != nil, let stored = try storedSchema() else { return true }
        return try stored != schema || !triggersToRepair(schema).isEmpty
    }

    // MARK: Work

    private func work(_ schema: Schema) throws {
        // Read again: another process may have been first.
        if try storedFormat() == nil { try createLayout() }
        let stored = try storedSchema()
        var reconciled: Set<String> = []
        if stored != schema {
            if let stored, stored.version > schema.version {
                throw ServerError(
                    .newerSchema,
                    "The store is at schema version \(stored.version), newer than \(schema.version); serve that one."
                )
            }
            reconciled = try SchemaUpgrade(connection: connection, from: stored, to: schema).run()
            try connection.run(
                "INSERT INTO fieldpost_meta VALUES ('schema', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                .text(schema.json.text())
            )
        } else {
            reconciled = Set(try triggersToRepair(schema).filter(\.missing).map(\.table))
        }
        try rebuildTriggers(schema)
        for table in schema.tables where reconciled.contains(table.name) { try reconcile(table) }
    }

    private func createLayout() throws {
        try connection.execute(StoreLayout.tables)
        try connection.run(
            "INSERT INTO fieldpost_meta VALUES ('format', ?)",
            .integer(StoreLayout.formatVersion)
        )
        try connection.run("INSERT INTO fieldpost_meta VALUES ('signing_key', ?)", .blob(random(32)))
        try connection.run("INSERT INTO fieldpost_epochs VALUES (?, 0)", .blob(random(8)))
    }

    // MARK: Triggers

    private func storedTriggers() throws -> [String: String] {
        let rows = try connection.query(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'fieldpost!_feed!_%' ESCAPE '!'"
        )
        return Dictionary(rows.map { ($0[0].text ?? "", $0[1].text ?? "") }) { first, _ in first }
    }

    /// The tables whose triggers are not as they must be, and whether one was missing altogether.
    private func triggersToRepair(_ schema: Schema) throws -> [(table: String, missing: Bool)] {
        let stored = try storedTriggers()
        return schema.tables.compactMap { table in
            let expected = FeedTriggers(table, schema: schema).statements
            guard expected.contains(where: { stored[$0.name] != $0.sql }) else { return nil }
            return (table.name, expected.contains { stored[$0.name] == nil })
        }
    }

    private func rebuildTriggers(_ schema: Schema) throws {
        for name in try storedTriggers().keys.sorted() {
            try connection.execute("DROP TRIGGER \(quoted(name))")
        }
        for table in schema.tables {
            for trigger in FeedTriggers(table, schema: schema).statements {
                try connection.execute(trigger.sql)
            }
        }
    }

    /// Brings the feed in line with a table that may have changed while its triggers were away.
    ///
    /// Which rows changed nobody knows, so every one gets a new version: devices read them again and lose nothing.
    private func reconcile(_ table: Table) throws {
        let gone = try connection.query(
            """
            SELECT row FROM fieldpost_feed WHERE tbl = ? AND deleted = 0 AND NOT EXISTS \
            (SELECT 1 FROM \(quoted(table.name)) WHERE \(quoted(table.key)) = fieldpost_feed.row)
            """,
            .text(table.name)
        )
        for row in gone {
            try connection.run("UPDATE fieldpost_sequence SET version = version + 1")
            try connection.run(
                """
                UPDATE fieldpost_feed SET version = (SELECT version FROM fieldpost_sequence), deleted = 1, \
                reason = NULL, columns = NULL WHERE tbl = ? AND row = ? AND deleted = 0
                """,
                .text(table.name),
                row[0]
            )
        }
        try connection.execute("UPDATE \(quoted(table.name)) SET \(quoted(table.key)) = \(quoted(table.key))")
    }
}
