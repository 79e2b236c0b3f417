internal import FieldpostCore

extension RESTProfile {
    /// Checks the profile against the schema whose rows it is to carry.
    func validate(for schema: Schema) throws(RESTProfileError) {
        var problems = RESTProblems()
        for name in resources.keys.sorted() where schema.table(name) == nil {
            problems.add(
                "tables.\(name)",
                "the schema has no such table",
                nearest(to: name, in: schema.tables.map(\.name)).map { "did you mean \($0)?" }
                    ?? "leave it out"
            )
        }
        for table in schema.tables {
            guard let resource = resources[table.name] else {
                problems.add(
                    "tables",
                    "the table \(table.name) is missing",
                    "say what is done for it; { } keeps the server out of it and refuses its changes"
                )
                continue
            }
            check(resource, table, &problems)
        }
        try problems.check()
    }

    private func check(_ resource: Resource, _ table: Table, _ problems: inout RESTProblems) {
        let place = "tables.\(table.name)"
        for (name, rule) in table.rules.sorted(by: { $0.key < $1.key }) where rule == .counter || rule == .set
        {
            problems.add(
                place,
                "the column \(name) is a \(rule.rawValue), which a REST server does not merge",
                "take the rule off in the schema"
            )
        }
        for name in resource.columns.keys.sorted() where table.column(name) == nil {
            problems.add(
                "\(place).columns.\(name)",
                "the table has no such column",
                nearest(to: name, in: table.columns.map(\.name)).map { "did you mean \($0)?" }
                    ?? "leave it out"
            )
        }
        checkNames(resource, table, place, &problems)
        for (name, action) in [
            ("create", resource.create), ("update", resource.update), ("delete", resource.delete),
        ] {
            guard let action else { continue }
            checkTemplate(action.path, "\(place).\(name).path", table, &problems)
            for (header, template) in action.headers.sorted(by: { $0.key < $1.key }) {
                checkTemplate(template, "\(place).\(name).headers.\(header)", table, &problems)
            }
        }
        if let item = resource.item { checkTemplate(item, place + ".item", table, &problems) }
        if let list = resource.list { checkPath(list.path, place + ".list.path", &problems) }
        checkVersions(resource, place, &problems)
    }

    private func checkVersions(_ resource: Resource, _ place: String, _ problems: inout RESTProblems) {
        if resource.record.version == nil, resource.record.versionHeader == nil {
            problems.add(
                place + ".record",
                "nothing holds a version",
                "name a field or a header with an integer that grows"
            )
        }
        if resource.list != nil, resource.record.version == nil {
            problems.add(
                place + ".record",
                "records of a list have no version",
                "name the field that holds it"
            )
        }
    }

    /// A record's own fields cannot be columns: sent back, they would be taken for the server's.
    private func checkNames(
        _ resource: Resource,
        _ table: Table,
        _ place: String,
        _ problems: inout RESTProblems
    ) {
        let reserved = [resource.record.version, resource.record.deleted].compactMap(\.self)
        var seen: [String: String] = [:]
        for column in table.columns where column.name != table.key {
            let remote = resource.columns[column.name] ?? column.name
            if reserved.contains(remote) || remote == resource.record.id {
                problems.add(
                    place,
                    "the column \(column.name) has the name of the record's own field \(remote)",
                    "give it another name under \"columns\""
                )
            }
            if let other = seen[remote] {
                problems.add(
                    place + ".columns",
                    "\(other) and \(column.name) are both called \(remote)",
                    "rename one"
                )
            }
            seen[remote] = column.name
        }
    }

    private func checkTemplate(
        _ template: String,
        _ place: String,
        _ table: Table,
        _ problems: inout RESTProblems
    ) {
        let known = ["id", "operation", "version", "token"] + table.columns.map(\.name)
        if place.hasSuffix(".path") || place.hasSuffix(".item") { checkPath(template, place, &problems) }
        for name in RESTTemplate(template).names where !known.contains(name) {
            problems.add(
                place,
                "{\(name)} is neither a column nor id, operation, version or token",
                nearest(to: name, in: known).map { "did you mean {\($0)}?" } ?? "leave it out"
            )
        }
    }

    private func checkPath(_ path: String, _ place: String, _ problems: inout RESTProblems) {
        if !path.hasPrefix("/") {
            problems.add(place, "the path does not begin with /", "write it as it follows the base")
        }
    }
}
