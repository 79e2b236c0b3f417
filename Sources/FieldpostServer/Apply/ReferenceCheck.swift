internal import FieldpostCore
internal import FieldpostSQLite

/// Checks, at the end of a group, that everything it refers to is there and within the credential's reach.
///
/// A row in a foreign scope is answered like one that is absent. SQLite only counts broken references; which operation and
/// which column is at fault is looked up here.
struct ReferenceCheck {
    let apply: Apply

    func check(_ applied: [Applied]) throws {
        for (index, one) in applied.enumerated() where one.isFresh {
            if let rejection = try missingParent(one.operation) { throw refusal(index, one, rejection) }
        }
        guard apply.connection.deferredForeignKeyViolations else { return }
        for (index, one) in applied.enumerated() where one.isFresh && one.operation.action == .delete {
            if let rejection = try childLeft(one.operation) { throw refusal(index, one, rejection) }
        }
        let index = applied.lastIndex { $0.operation.action == .delete && $0.isFresh } ?? applied.count - 1
        throw refusal(
            index,
            applied[index],
            Rejection("reference", "Other rows still refer to what it removes.")
        )
    }

    private func refusal(_ index: Int, _ applied: Applied, _ rejection: Rejection) -> GroupRefusal {
        GroupRefusal(index: index, refusal: Refusal(operation: applied.normal, rejection))
    }

    private func missingParent(_ operation: Operation) throws -> Rejection? {
        guard operation.action == .create || operation.action == .update,
            let access = apply.core.tables[operation.table]
        else { return nil }
        let columns = access.table.columns.enumerated().filter { _, column in
            column.reference != nil
                && (operation.action == .create || operation.change.set[column.name] != nil)
        }
        guard !columns.isEmpty, let values = try access.values(apply.connection, operation.row) else {
            return nil
        }
        for (index, column) in columns {
            guard let key = values[index].text, let reference = column.reference,
                let parent = apply.core.tables[reference.table]
            else { continue }
            if try !isVisible(parent, key) {
                return Rejection("reference", "It refers to a row that is not there.", fields: [column.name])
            }
        }
        return nil
    }

    private func isVisible(_ access: TableAccess, _ key: String) throws -> Bool {
        let scope = try apply.connection.scalar(
            "SELECT scope FROM fieldpost_feed WHERE tbl = ? AND row = ? AND deleted = 0",
            .text(access.table.name),
            .text(key)
        )
        if let scope = scope?.text { return apply.credential.scopes.contains(scope) }
        guard let scope = try access.state(apply.connection, key).scope else { return false }
        return apply.credential.scopes.contains(scope)
    }

    private func childLeft(_ operation: Operation) throws -> Rejection? {
        guard let access = apply.core.tables[operation.table],
            try access.values(apply.connection, operation.row) == nil
        else { return nil }
        for referrer in access.referrers {
            let sql = "SELECT 1 FROM \(quoted(referrer.table)) WHERE \(quoted(referrer.column)) = ? LIMIT 1"
            if try apply.connection.scalar(sql, .text(operation.row)) != nil {
                return Rejection(
                    "reference",
                    "Rows of \(referrer.table) still refer to it.",
                    fields: ["\(referrer.table).\(referrer.column)"]
                )
            }
        }
        return nil
    }
}
