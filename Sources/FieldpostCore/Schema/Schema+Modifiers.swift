extension Column {
    private func with(_ change: (inout Column) -> Void) -> Column {
        var copy = self
        change(&copy)
        return copy
    }

    /// Marks the primary key.
    public func primaryKey() -> Column { with { $0.isPrimaryKey = true } }

    /// Allows `NULL`.
    public func optional() -> Column { with { $0.isOptional = true } }

    /// Gives new rows `value` when none is given.
    public func defaults(to value: JSON) -> Column { with { $0.defaultValue = value } }

    /// Declares that the column holds the key of a row of `table`.
    public func references(_ table: String, onDelete: Reference.DeleteAction = .restrict) -> Column {
        with { $0.reference = Reference(table: table, onDelete: onDelete) }
    }
}

extension Table {
    private func with(_ change: (inout Table) -> Void) -> Table {
        var copy = self
        change(&copy)
        return copy
    }

    /// Settles concurrent edits of a row by `policy`.
    public func conflict(_ policy: ConflictPolicy) -> Table { with { $0.conflict = policy } }

    /// Settles concurrent edits of `column` by `rule`.
    public func rule(_ column: String, _ rule: Rule) -> Table { with { $0.rules[column] = rule } }

    /// Keeps `kind` in the outbox.
    public func outbox(_ kind: OutboxKind) -> Table { with { $0.outbox = kind } }

    /// Says what happens to unsent edits of a row that the server has deleted.
    public func onRemoteDelete(_ policy: RemoteDeletePolicy) -> Table { with { $0.onRemoteDelete = policy } }

    /// Lets unsent operations on one row be folded together.
    public func coalesced() -> Table { with { $0.coalesce = true } }

    /// Restricts writing to `roles`.
    public func writable(by roles: [String]) -> Table { with { $0.writable = roles } }

    /// Adds a condition that every row must meet on both sides; `name` is the code of the rejection.
    public func check(_ name: String, _ expression: String) -> Table {
        with { $0.checks.append(Check(name: name, expression: expression)) }
    }

    /// Makes the server refuse a second row with the same values in `columns`.
    public func unique(_ columns: String...) -> Table { with { $0.unique.append(columns) } }

    /// Adds an index on both sides.
    public func index(_ columns: String...) -> Table { with { $0.indexes.append(columns) } }
}

/// The step from one schema version to the next.
public struct Migration: Hashable, Sendable {
    /// The version left.
    public var from: Int
    /// The version reached.
    public var to: Int
    /// Statements for devices and SQLite servers; what is only added needs none.
    public var sql: [String]
    /// Statements for PostgreSQL servers.
    public var postgresql: [String]
    /// How operations recorded under the older version read under the newer one, by table.
    public var operations: [String: Upcast]

    /// A step from `from` to `to`.
    public init(
        from: Int,
        to: Int,
        sql: [String] = [],
        postgresql: [String] = [],
        operations: [String: Upcast] = [:]
    ) {
        self.from = from
        self.to = to
        self.sql = sql
        self.postgresql = postgresql
        self.operations = operations
    }
}

/// How an older operation on a table reads under the newer schema.
public struct Upcast: Hashable, Sendable {
    /// Old column names to new ones.
    public var rename: [String: String]
    /// Values for columns that an older create did not have.
    public var defaults: [String: JSON]

    /// Renames columns, then fills what a create lacks.
    public init(rename: [String: String] = [:], defaults: [String: JSON] = [:]) {
        self.rename = rename
        self.defaults = defaults
    }
}
