import Testing

@testable import FieldpostCLI

@Suite struct ArgumentTests {
    @Test(arguments: FieldpostTool.commands.map(\.name))
    func `every command explains itself within 80 columns`(name: String) async {
        let words = name.split(separator: " ").map(String.init)
        let output = Collected()
        let console = Console(write: { output.append($0) }, writeError: { _ in })

        let exit = await FieldpostTool.run(words + ["--help"], on: console)

        #expect(exit == .done)
        #expect(output.text.hasPrefix("Usage: fieldpost \(name)"))
        #expect(output.text.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test func `the overview names every command within 80 columns`() async {
        let run = await CommandRun.of("--help")

        #expect(run.exit == .done)
        #expect(FieldpostTool.commands.allSatisfy { run.output.contains($0.name) })
        #expect(run.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test(arguments: [
        (["status", "--bd", "x"], "did you mean --db?"), (["statsu"], "did you mean status?"),
        (["outbox", "lits"], "did you mean outbox list?"), (["status"], "--db FILE is missing"),
        (["status", "--db"], "--db needs a value"), (["status", "--db", "a", "--db", "b"], "given twice"),
        (["status", "--db", "a", "b"], "one argument too many"), (["schema", "check"], "FILE is missing"),
        (["outbox"], "Say what outbox shall do"), ([], "Say which command to run"),
        (["token", "create", "--store", "x"], "--scope S is missing"),
        (["status", "--db", "a", "--json=yes"], "takes no value"),
    ])
    func `a wrong command line ends with 64 and says what to do`(arguments: [String], words: String) async {
        let errors = Collected()
        let console = Console(write: { _ in }, writeError: { errors.append($0) })

        let exit = await FieldpostTool.run(arguments, on: console)

        #expect(exit == .usage)
        #expect(errors.text.contains(words))
        #expect(errors.text.contains("--help."))
    }

    @Test func `an option takes its value behind an equals sign too`() async throws {
        let folder = try TemporaryFolder()

        let run = await CommandRun.of(
            "token",
            "create",
            "--store=sqlite:\(folder.file("s.db"))",
            "--scope=B1"
        )

        #expect(run.exit == .done)
        #expect(run.output.count == 44)
    }

    @Test func `each kind of failure has its exit code`() async throws {
        let folder = try TemporaryFolder()
        try folder.write("{", to: "bad.json")
        try folder.write(
            "no database, only a text that is long enough to be looked at as one. ",
            to: "text.db"
        )

        #expect(await CommandRun.of("schema", "check", folder.file("none.json")).exit == .missingFile)
        #expect(await CommandRun.of("schema", "check", folder.file("bad.json")).exit == .badData)
        #expect(await CommandRun.of("status", "--db", folder.file("none.db")).exit == .missingFile)
        #expect(await CommandRun.of("status", "--db", folder.file("text.db")).exit == .unavailable)
        #expect(
            await CommandRun.of("token", "create", "--store", "postgresql://h/d", "--scope", "B1").exit
                == .unavailable
        )
        #expect(await CommandRun.of("token", "list", "--store", folder.file("none.db")).exit == .missingFile)
    }

    @Test func `a failure is JSON when JSON is asked for`() async throws {
        let run = await CommandRun.of("status", "--db", "/nowhere/a.db", "--json")

        #expect(try run.replies.first?.code == "missing")
        #expect(run.exit == .missingFile)
    }

    @Test func `schema check names every problem, and is content with none`() async throws {
        let folder = try TemporaryFolder()
        try folder.write(
            #"{"version":1,"tables":{"orders":{"columns":{"id":"uuid","total":"integr"},"scop":"id"}}}"#,
            to: "bad.json"
        )
        try folder.write(
            #"{"version":1,"tables":{"orders":{"columns":{"id":"uuid"},"checks":{"odd":"id =="}}}}"#,
            to: "sql.json"
        )

        let good = await CommandRun.of("schema", "check", folder.schema)
        let bad = await CommandRun.of("schema", "check", folder.file("bad.json"))
        let sql = await CommandRun.of("schema", "check", folder.file("sql.json"))

        #expect(good.exit == .done)
        #expect(good.output.hasSuffix("version 1, 3 tables, no problems\n"))
        #expect(bad.exit == .badData)
        #expect(bad.output.contains("orders.total: "))
        #expect(bad.output.contains("did you mean integer?"))
        #expect(sql.exit == .badData)
        #expect(sql.output.hasPrefix("orders: SQLite refuses the table"))
    }
}
