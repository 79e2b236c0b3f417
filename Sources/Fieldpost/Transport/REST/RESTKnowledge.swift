package import FieldpostCore
internal import FieldpostSQLite

/// What the device knows that an operation alone does not say.
package struct RESTKnowledge: Sendable {
    /// The version that a settled operation gave its row.
    package var version: @Sendable (OperationID) async -> Int64?
    /// The row as the server last had it, while edits of it are unsettled.
    package var lastKnown: @Sendable (_ table: Table, _ row: String) async -> JSONObject?

    /// Knowledge of the given parts.
    package init(
        version: @escaping @Sendable (OperationID) async -> Int64? = { _ in nil },
        lastKnown: @escaping @Sendable (_ table: Table, _ row: String) async -> JSONObject? = { _, _ in nil }
    ) {
        self.version = version
        self.lastKnown = lastKnown
    }

    /// What `store` knows.
    init(_ store: Store) {
        version = { operation in try? await store.outcome(of: operation)?.version }
        lastKnown = { table, row in
            try? await store.read { transaction in
                let values = try transaction.context.connection.query(
                    "SELECT base FROM fieldpost_rows WHERE tbl = ? AND row = ?",
                    .text(table.name),
                    .text(row)
                )
                let base = values.first?[0].text.flatMap { try? JSON(text: $0).object }
                return base.map { LocalJSON.wire($0, table) }
            }
        }
    }
}
