internal import FieldpostCore

/// Turns an operation's change into the values to store, refusing what its columns and rules do not allow.
struct ChangeReader {
    let table: Table
    let operation: Operation

    /// The whole row that a create makes, in column order.
    func created() throws(Rejection) -> [Value] {
        try checkNames()
        try checkParts()
        var missing: [String] = []
        var values: [Value] = []
        for column in table.columns {
            var value = try created(column)
            if let changed = try settled(column, from: value) { value = changed }
            if value.isNull, !column.isOptional { missing.append(column.name) }
            values.append(value)
        }
        if !missing.isEmpty {
            throw Rejection("not_null", "A required column has no value.", fields: missing)
        }
        return values
    }

    private func created(_ column: Column) throws(Rejection) -> Value {
        if column.name == table.key { return .text(operation.row) }
        if let json = operation.change.set[column.name] { return try value(json, column) }
        if let json = column.defaultValue { return try value(json, column) }
        return .null
    }

    /// The columns that an update changes, with their new values, given the row as it is.
    func updated(_ row: [Value]) throws(Rejection) -> [(index: Int, value: Value)] {
        try checkNames()
        try checkParts()
        var changed: [(index: Int, value: Value)] = []
        for (index, column) in table.columns.enumerated() {
            if let json = operation.change.set[column.name] {
                if column.name == table.key { continue }
                let rule = table.rule(for: column.name)
                if rule == .counter || rule == .set {
                    throw Rejection(
                        "rule",
                        "A \(rule.rawValue) column takes differences, not values.",
                        fields: [column.name]
                    )
                }
                let value = try value(json, column)
                if value.isNull, !column.isOptional {
                    throw Rejection("not_null", "A required column has no value.", fields: [column.name])
                }
                changed.append((index, value))
            } else if let value = try settled(column, from: row[index]) {
                changed.append((index, value))
            }
        }
        return changed
    }

    private func value(_ json: JSON, _ column: Column) throws(Rejection) -> Value {
        do { return try column.type.value(from: json) } catch {
            throw Rejection("type", error.message, fields: [column.name])
        }
    }

    // MARK: Differences

    /// The value after the operation's differences, or `nil` when it has none for this column.
    private func settled(_ column: Column, from value: Value) throws(Rejection) -> Value? {
        if let delta = operation.change.inc[column.name] { return try sum(value, delta, column) }
        let (add, remove) = (operation.change.add[column.name], operation.change.remove[column.name])
        guard add != nil || remove != nil else { return nil }
        do {
            var set = SetValue()
            if case .text(let text) = value { set = try SetValue(JSON(text: text)) }
            set.remove(try SetValue(remove ?? []).elements)
            try set.add(try SetValue(add ?? []).elements)
            return .text(JSON.array(set.elements).text())
        } catch {
            throw Rejection("type", "expected strings and 64-bit integers", fields: [column.name])
        }
    }

    private func sum(_ value: Value, _ delta: JSON, _ column: Column) throws(Rejection) -> Value {
        guard let delta = delta.integer else {
            throw Rejection("type", "expected an integer", fields: [column.name])
        }
        let (sum, overflow) = (value.integer ?? 0).addingReportingOverflow(delta)
        if overflow { throw Rejection("overflow", "The counter would pass 64 bits.", fields: [column.name]) }
        return .integer(sum)
    }

    // MARK: What may be named

    private func checkNames() throws(Rejection) {
        let unknown = operation.change.columns.filter { table.column($0) == nil }
        if !unknown.isEmpty {
            throw Rejection("unknown_column", "The table has no such column.", fields: unknown)
        }
        // The key may be repeated in the values, in either case, but not changed.
        if let key = operation.change.set[table.key], let column = table.column(table.key),
            (try? column.type.value(from: key)) != .text(operation.row)
        {
            throw Rejection("key", "A row's key cannot change; create another row.", fields: [table.key])
        }
    }

    private func checkParts() throws(Rejection) {
        for name in operation.change.inc.names where table.rule(for: name) != .counter {
            throw Rejection("rule", "Only a counter takes a difference.", fields: [name])
        }
        for name in operation.change.add.names + operation.change.remove.names
        where table.rule(for: name) != .set {
            throw Rejection("rule", "Only a set takes elements.", fields: [name])
        }
        for name in operation.change.set.names {
            let change = operation.change
            if change.inc[name] != nil || change.add[name] != nil || change.remove[name] != nil {
                throw Rejection("rule", "A column has both a value and a difference.", fields: [name])
            }
        }
    }
}
