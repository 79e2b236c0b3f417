extension Schema {
    /// Checks that the schema can work, naming every fault with its table, its column and the remedy.
    ///
    /// - Throws: ``SchemaError`` with all faults found.
    public func validate() throws(SchemaError) {
        var problems = SchemaProblems()
        if version < 1 {
            problems.add(nil, nil, "the version is \(version)", remedy: "count schema versions from 1")
        }
        if tables.isEmpty { problems.add(nil, nil, "there is no table", remedy: "add one") }
        var seen: Set<String> = []
        for table in tables {
            if !seen.insert(table.name).inserted {
                problems.add(table.name, nil, "the table appears twice", remedy: "rename or remove one")
            }
            validate(table, &problems)
        }
        validateMigrations(&problems)
        try problems.check()
    }

    private func validate(_ table: Table, _ problems: inout SchemaProblems) {
        checkName(table.name, of: "table", table.name, nil, &problems)
        var seen: Set<String> = []
        for column in table.columns {
            checkName(column.name, of: "column", table.name, column.name, &problems)
            if !seen.insert(column.name).inserted {
                problems.add(
                    table.name,
                    column.name,
                    "the column appears twice",
                    remedy: "rename or remove one"
                )
            }
            validate(column, of: table, &problems)
        }
        validateKey(of: table, &problems)
        validateScope(of: table, &problems)
        validateRules(of: table, &problems)
        validateLists(of: table, &problems)
    }

    private func checkName(
        _ name: String,
        of kind: String,
        _ table: String,
        _ column: String?,
        _ problems: inout SchemaProblems
    ) {
        let bytes = Array(name.utf8)
        let first = bytes.first.map { (0x61...0x7A).contains($0) } ?? false
        let wellFormed =
            first && bytes.count <= 63
            && bytes.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
        if !wellFormed {
            problems.add(
                table,
                column,
                "the name of the \(kind) is not usable",
                remedy: "use a lower-case letter, then lower-case letters, digits and _, up to 63"
            )
        } else if name.hasPrefix("fieldpost_") || name.hasPrefix("sqlite_") {
            problems.add(
                table,
                column,
                "the name of the \(kind) is reserved",
                remedy: "choose one that begins with neither fieldpost_ nor sqlite_"
            )
        } else if reservedWords.contains(name) {
            problems.add(
                table,
                column,
                "the name of the \(kind) is an SQL keyword",
                remedy: "rename it, say to \(name)_"
            )
        }
    }

    private func validate(_ column: Column, of table: Table, _ problems: inout SchemaProblems) {
        if let value = column.defaultValue {
            do throws(ColumnTypeError) {
                let stored = try column.type.value(from: value)
                if stored.isNull, !column.isOptional { throw ColumnTypeError(message: "expected a value") }
            } catch {
                problems.add(
                    table.name,
                    column.name,
                    "the default does not fit the type: \(error.message)",
                    remedy: "change the default or the type"
                )
            }
        }
        guard let reference = column.reference else { return }
        guard let parent = self.table(reference.table) else {
            problems.add(
                table.name,
                column.name,
                "refers to \(reference.table), which is no table",
                remedy: suggestion(reference.table, tables.map(\.name))
            )
            return
        }
        if let key = parent.column(parent.key), key.type != column.type {
            problems.add(
                table.name,
                column.name,
                "is \(column.type.rawValue), but the key of \(parent.name) is \(key.type.rawValue)",
                remedy: "give both the same type"
            )
        }
        if reference.onDelete == .setNull, !column.isOptional {
            problems.add(
                table.name,
                column.name,
                "would become NULL, which it does not allow",
                remedy: "make the column optional, or choose restrict or cascade"
            )
        }
    }

    private func validateKey(of table: Table, _ problems: inout SchemaProblems) {
        guard let key = table.column(table.key) else {
            problems.add(
                table.name,
                nil,
                "there is no primary key: no column is called \(table.key)",
                remedy: "add the column, or name the key's column"
            )
            return
        }
        if key.type != .uuid, key.type != .text {
            problems.add(
                table.name,
                key.name,
                "the primary key is \(key.type.rawValue)",
                remedy: "make it uuid or text: keys are made on the device"
            )
        }
        if key.isOptional || key.defaultValue != nil {
            problems.add(
                table.name,
                key.name,
                "the primary key is optional or has a default",
                remedy: "every row brings its own key"
            )
        }
        if table.columns.filter(\.isPrimaryKey).count > 1 {
            problems.add(table.name, nil, "there are several primary keys", remedy: "mark one column")
        }
    }

    private func validateScope(of table: Table, _ problems: inout SchemaProblems) {
        switch table.scope {
        case nil: break
        case .column(let name):
            guard let column = table.column(name) else {
                problems.add(
                    table.name,
                    name,
                    "is the scope, but is no column",
                    remedy: suggestion(name, table.columns.map(\.name))
                )
                return
            }
            if column.type != .text && column.type != .uuid || column.isOptional {
                problems.add(
                    table.name,
                    name,
                    "is the scope, but \(column.isOptional ? "optional" : column.type.rawValue)",
                    remedy: "make it text or uuid, and required"
                )
            }
        case .reference(let name):
            guard let column = table.column(name), let parent = column.reference, !column.isOptional else {
                problems.add(
                    table.name,
                    name,
                    "gives the scope, but is no required reference",
                    remedy: "declare which table it refers to"
                )
                return
            }
            if self.table(parent.table)?.scope == nil || scopePathLoops(from: table) {
                problems.add(
                    table.name,
                    name,
                    "gives the scope, but \(parent.table) has none of its own",
                    remedy: "give \(parent.table) a scope column"
                )
            }
        }
    }

    private func scopePathLoops(from table: Table) -> Bool {
        var visited: Set<String> = []
        var current: Table? = table
        while let here = current, case .reference(let name) = here.scope {
            if !visited.insert(here.name).inserted { return true }
            current = here.column(name)?.reference.flatMap { self.table($0.table) }
        }
        return false
    }

    private func validateRules(of table: Table, _ problems: inout SchemaProblems) {
        for (name, rule) in table.rules.sorted(by: { $0.key < $1.key }) {
            guard let column = table.column(name) else {
                problems.add(
                    table.name,
                    name,
                    "has a rule, but is no column",
                    remedy: suggestion(name, table.columns.map(\.name))
                )
                continue
            }
            if rule == .set, column.type != .set {
                problems.add(
                    table.name,
                    name,
                    "has the rule set, but is \(column.type.rawValue)",
                    remedy: "give it the type set"
                )
            }
            if rule == .counter, column.type != .integer || column.isOptional {
                problems.add(
                    table.name,
                    name,
                    "has the rule counter, but is \(column.isOptional ? "optional" : column.type.rawValue)",
                    remedy: "give it the type integer, and make it required"
                )
            }
            if name == table.key {
                problems.add(table.name, name, "is the key and has a rule", remedy: "remove the rule")
            }
        }
        for role in table.writable where !Table.allRoles.contains(role) {
            problems.add(
                table.name,
                nil,
                "is writable by \(role), which is no role",
                remedy: suggestion(role, Table.allRoles)
            )
        }
    }

    private func validateLists(of table: Table, _ problems: inout SchemaProblems) {
        for columns in table.unique + table.indexes {
            if columns.isEmpty {
                problems.add(table.name, nil, "an index names no column", remedy: "name one or remove it")
            }
            for name in columns where table.column(name) == nil {
                problems.add(
                    table.name,
                    name,
                    "is in an index, but is no column",
                    remedy: suggestion(name, table.columns.map(\.name))
                )
            }
        }
        var names: Set<String> = []
        for check in table.checks {
            if !names.insert(check.name).inserted {
                problems.add(table.name, nil, "the check \(check.name) appears twice", remedy: "rename one")
            }
            checkName(check.name, of: "check", table.name, nil, &problems)
        }
    }

    private func validateMigrations(_ problems: inout SchemaProblems) {
        var sources: Set<Int> = []
        for migration in migrations {
            if migration.from < 1 || migration.to != migration.from + 1 || migration.to > version {
                problems.add(
                    nil,
                    nil,
                    "a migration leads from \(migration.from) to \(migration.to)",
                    remedy: "write one for each single step up to version \(version)"
                )
            }
            if !sources.insert(migration.from).inserted {
                problems.add(
                    nil,
                    nil,
                    "two migrations leave version \(migration.from)",
                    remedy: "join them into one"
                )
            }
        }
    }
}

func suggestion(_ name: String, _ known: [String]) -> String {
    nearest(to: name, in: known).map { "did you mean \($0)?" } ?? "there is none to choose from"
}

/// Words that SQLite or PostgreSQL take as their own unless quoted.
private let reservedWords: Set<String> = Set(
    """
    add all alter analyse analyze and any array as asc asymmetric authorization autoincrement begin between binary \
    both by cascade case cast check collate collation column commit concurrently conflict constraint create cross \
    current_catalog current_date current_role current_schema current_time current_timestamp current_user default \
    deferrable delete desc distinct do drop each else end escape except exists explain fail false fetch for foreign \
    freeze from full glob grant group having ilike if in index indexed initially inner insert instead intersect into \
    is isnull join lateral leading left like limit localtime localtimestamp match natural not nothing notnull null \
    offset on only or order outer overlaps placing pragma primary raise references reindex rename replace returning \
    right rollback row rowid select session_user set similar some symmetric table tablesample then to trailing \
    transaction trigger true union unique update user using values variadic verbose view virtual when where window \
    with without
    """.split(separator: " ").map(String.init)
)
