/// The tables of an app, their columns and their rules: one description for device and server.
///
/// Written in Swift with the initializers below, or read from a schema file by ``init(json:)``; both mean the same.
/// A schema says nothing until ``validate()`` has passed; opening a store or starting a server validates it.
public struct Schema: Hashable, Sendable {
    /// Counts the app's schema versions from 1.
    public var version: Int
    /// Every table, in the order written.
    public var tables: [Table]
    /// Steps from older versions, one for each version at most.
    public var migrations: [Migration]

    /// A schema of the tables that `tables` lists.
    public init(version: Int, migrations: [Migration] = [], @ListBuilder<Table> _ tables: () -> [Table]) {
        self.version = version
        self.tables = tables()
        self.migrations = migrations
    }

    /// A schema of the given tables.
    public init(version: Int, tables: [Table], migrations: [Migration] = []) {
        self.version = version
        self.tables = tables
        self.migrations = migrations
    }

    /// The table called `name`.
    public func table(_ name: String) -> Table? { tables.first { $0.name == name } }
}

/// One synced table.
public struct Table: Hashable, Sendable {
    /// The table's name in SQL and on the wire.
    public var name: String
    /// Every column, in the order of the SQL table.
    public var columns: [Column]
    /// The primary key's column.
    public var key: String
    /// What decides who may see a row; `nil` means a global table.
    public var scope: Scope?
    /// How concurrent edits of one row are settled.
    public var conflict: ConflictPolicy = .lastWriteWins
    /// Rules for single columns, which win over ``conflict``.
    public var rules: [String: Rule] = [:]
    /// What the outbox keeps for this table.
    public var outbox: OutboxKind = .operations
    /// What happens to unsent edits of a row that the server has deleted.
    public var onRemoteDelete: RemoteDeletePolicy = .deleteWins
    /// Whether unsent operations on one row may be folded together.
    public var coalesce = false
    /// The roles that may write.
    public var writable: [String] = Table.allRoles
    /// Checks by name: SQL expressions that hold on both sides.
    public var checks: [Check] = []
    /// Unique sets of columns, enforced by the server.
    public var unique: [[String]] = []
    /// Indexes on both sides.
    public var indexes: [[String]] = []

    /// Every role a token can have.
    public static let allRoles = ["device", "console", "admin"]

    /// A table of the columns that `columns` lists, whose key is the column marked ``Column/primaryKey()``.
    public init(_ name: String, scope: String? = nil, @ListBuilder<Column> _ columns: () -> [Column]) {
        self.init(name, columns: columns())
        self.scope = scope.map(Scope.column)
    }

    /// A table whose rows belong to the scope of the row that `reference` refers to.
    public init(_ name: String, scopeFrom reference: String, @ListBuilder<Column> _ columns: () -> [Column]) {
        self.init(name, columns: columns())
        scope = .reference(reference)
    }

    init(_ name: String, columns: [Column]) {
        self.name = name
        self.columns = columns
        key = columns.first(where: \.isPrimaryKey)?.name ?? "id"
    }

    /// The column called `name`.
    public func column(_ name: String) -> Column? { columns.first { $0.name == name } }

    /// The rule that settles `column`: its own, or what the table's policy implies.
    public func rule(for column: String) -> Rule {
        rules[column] ?? (conflict == .compareAndSet ? .compareAndSet : .lastWriteWins)
    }
}

/// One column.
public struct Column: Hashable, Sendable {
    /// The column's name in SQL and on the wire.
    public var name: String
    /// What its values mean.
    public var type: ColumnType
    /// Whether it may be `NULL`.
    public var isOptional = false
    /// The value a new row has when none is given.
    public var defaultValue: JSON?
    /// The table whose key this column holds.
    public var reference: Reference?
    var isPrimaryKey = false

    /// A required column.
    public init(_ name: String, _ type: ColumnType) {
        self.name = name
        self.type = type
    }

    /// Equal whatever marked the key, which is the table's to say.
    public static func == (left: Column, right: Column) -> Bool {
        left.name == right.name && left.type == right.type && left.isOptional == right.isOptional
            && left.defaultValue == right.defaultValue && left.reference == right.reference
    }

    /// Feeds what equality looks at.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A declared reference to another table's key.
public struct Reference: Hashable, Sendable {
    /// What becomes of a row when the row it refers to is deleted.
    public enum DeleteAction: String, Hashable, Sendable, CaseIterable {
        /// The delete is refused.
        case restrict
        /// The row is deleted too.
        case cascade
        /// The reference becomes `NULL`.
        case setNull
    }
    /// The table referred to.
    public var table: String
    /// What a delete there does here.
    public var onDelete: DeleteAction
}

/// A named SQL condition on one row.
public struct Check: Hashable, Sendable {
    /// The code of the rejection when it fails.
    public var name: String
    /// An SQL expression over the row's columns.
    public var expression: String
}

/// What decides who may see a row.
public enum Scope: Hashable, Sendable {
    /// The value of this column.
    case column(String)
    /// The scope of the row this column refers to.
    case reference(String)
}

/// How concurrent edits of one row are settled.
public enum ConflictPolicy: String, Hashable, Sendable, CaseIterable {
    /// Field by field, the edit that reaches the server last wins.
    case lastWriteWins
    /// An edit of a row that has changed since is refused with the row as it is.
    case compareAndSet
    /// Rows are created and never changed.
    case appendOnly
}

/// How concurrent edits of one column are settled.
public enum Rule: String, Hashable, Sendable, CaseIterable {
    /// The edit that reaches the server last wins.
    case lastWriteWins
    /// The last wins, and the losing value is kept for people to see.
    case keepLosingVersion
    /// Elements added and removed are applied to the set as it is.
    case set
    /// The difference is added to the number as it is.
    case counter
    /// An edit of a value that has changed since is refused.
    case compareAndSet
}

/// What the outbox keeps.
public enum OutboxKind: String, Hashable, Sendable, CaseIterable {
    /// Every change as an operation of its own, in order.
    case operations
    /// One entry a row: the row as it is when sent.
    case state
}

/// What happens to unsent edits of a row that the server has deleted.
public enum RemoteDeletePolicy: String, Hashable, Sendable, CaseIterable {
    /// The row goes, the edit is kept as a conflict.
    case deleteWins
    /// The row is created again with the edit.
    case updateWins
}

/// Lists the elements written one below the other.
@resultBuilder public enum ListBuilder<Element> {
    /// One element.
    public static func buildExpression(_ element: Element) -> [Element] { [element] }
    /// Elements one after the other.
    public static func buildBlock(_ parts: [Element]...) -> [Element] { parts.flatMap(\.self) }
    /// Elements of an `if` without `else`.
    public static func buildOptional(_ part: [Element]?) -> [Element] { part ?? [] }
    /// Elements of the first branch.
    public static func buildEither(first: [Element]) -> [Element] { first }
    /// Elements of the second branch.
    public static func buildEither(second: [Element]) -> [Element] { second }
    /// Elements of a loop.
    public static func buildArray(_ parts: [[Element]]) -> [Element] { parts.flatMap(\.self) }
}
