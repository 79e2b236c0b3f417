internal import FieldpostCore
internal import FieldpostSQLite

/// `fieldpost schema check`.
enum SchemaCommand {
    static let check = CommandSpec(
        path: ["schema", "check"],
        summary: "Check a schema file and name every problem.",
        operands: [.init(name: "FILE", help: "the schema file")],
        options: [.json],
        notes: [
            "Prints one line a problem, “table.column: what; remedy”, and exits with 65 when there is any."
        ]
    ) { invocation, console in
        let path = invocation.operands[0]
        let isJSON = invocation.has("json")
        do {
            let schema = try Files.schema(path)
            try tryOut(schema)
            let count = schema.tables.count
            if isJSON {
                console.line(#"{"ok":true,"version":\#(schema.version),"tables":\#(count)}"#)
            } else {
                console.line(
                    "\(path): version \(schema.version), \(count) table\(count == 1 ? "" : "s"), no problems"
                )
            }
            return .done
        } catch let error as SchemaError {
            if isJSON {
                let problems = error.problems.map { problem -> JSON in
                    [
                        "table": problem.table.map(JSON.string) ?? .null,
                        "column": problem.column.map(JSON.string) ?? .null,
                        "message": .string(problem.message), "remedy": .string(problem.remedy),
                    ]
                }
                console.line(JSON.object(["ok": false, "problems": .array(problems)]).text())
            } else {
                for problem in error.problems { console.line(problem.description) }
            }
            return .badData
        }
    }

    /// Creates the tables in memory, since only SQLite knows whether a check's expression is SQL.
    private static func tryOut(_ schema: Schema) throws {
        for side in [TableDDL.Side.device, .server] {
            let connection = try Connection(path: ":memory:")
            for table in schema.tables {
                do {
                    let ddl = TableDDL(table, side: side)
                    try connection.execute(ddl.createTable(schema: schema))
                    for index in ddl.createIndexes() { try connection.execute(index) }
                } catch {
                    throw SchemaError(problems: [
                        .init(
                            table: table.name,
                            column: nil,
                            message: "SQLite refuses the table (\(error.detail ?? error.message))",
                            remedy: "correct the expression of its checks or its defaults"
                        )
                    ])
                }
            }
        }
    }
}
