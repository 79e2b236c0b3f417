extension Operation {
    /// The operation as it reads under `schema`, having been recorded under an older version.
    package func upcast(to schema: Schema) -> Operation {
        guard self.schema > 0, self.schema < schema.version else { return self }
        var operation = self
        for version in self.schema..<schema.version {
            guard let step = schema.migrations.first(where: { $0.from == version })?.operations[table] else {
                continue
            }
            for part in Change.parts {
                let members = operation.change[keyPath: part.path].members
                // A name that the operation already has in its new form wins over the old one.
                var renamed = JSONObject()
                for member in members where step.rename[member.name] == nil {
                    renamed.append(member.name, member.value)
                }
                for member in members {
                    if let name = step.rename[member.name], renamed[name] == nil {
                        renamed.append(name, member.value)
                    }
                }
                operation.change[keyPath: part.path] = renamed
            }
            if operation.action == .create {
                for (name, value) in step.defaults.sorted(by: { $0.key < $1.key })
                where operation.change.set[name] == nil {
                    operation.change.set.append(name, value)
                }
            }
        }
        operation.schema = schema.version
        return operation
    }
}

extension Schema {
    /// The table called `name` with its columns under the names that they had in an older version.
    package func table(_ name: String, asOf version: Int) -> Table? {
        guard var table = table(name) else { return nil }
        guard version > 0, version < self.version else { return table }
        for step in (version..<self.version).reversed() {
            let renames = migrations.first { $0.from == step }?.operations[name]?.rename ?? [:]
            for (old, new) in renames {
                guard let index = table.columns.firstIndex(where: { $0.name == new }) else { continue }
                table.columns[index].name = old
            }
        }
        return table
    }
}

extension Upcast {
    /// A row kept from the older version as it reads under the newer one; columns it lacks take the given values.
    package func row(_ old: JSONObject) -> JSONObject {
        var row = JSONObject()
        for member in old.members where rename[member.name] == nil { row.append(member.name, member.value) }
        for member in old.members {
            if let name = rename[member.name], row[name] == nil { row.append(name, member.value) }
        }
        for (name, value) in defaults.sorted(by: { $0.key < $1.key }) where row[name] == nil {
            row.append(name, value)
        }
        return row
    }
}
