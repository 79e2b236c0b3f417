import Testing

@testable import FieldpostCLI

/// `--rest` of the device.
@Suite struct RESTProfileTests {
    private func run(_ profile: String, server: [String] = []) async throws -> CommandRun {
        let folder = try TemporaryFolder()
        let rest = try folder.write(profile, to: "rest.json")
        let (schema, db) = (folder.schema, folder.file("a.db"))
        if let server = server.first {
            return await .of("device", "--schema", schema, "--db", db, "--rest", rest, "--server", server)
        }
        return await .of("device", "--schema", schema, "--db", db, "--rest", rest)
    }

    @Test func `a profile with a fault is refused with its place and remedy`() async throws {
        let run = try await run(#"{"base":"http://h","tables":{"notes":{"creat":{}}}}"#)
        #expect(run.exit == .badData)
        #expect(run.errors.contains("tables.notes.creat: there is no such name here; did you mean create?"))
    }

    @Test func `a profile that does not fit the schema is refused too`() async throws {
        let run = try await run(#"{"base":"http://h","tables":{}}"#)
        #expect(run.exit == .badData)
        #expect(run.errors.contains("tables: the table orders is missing"))
    }

    @Test func `one server is enough`() async throws {
        let run = try await run(#"{"base":"http://h","tables":{}}"#, server: ["http://h"])
        #expect(run.exit == .usage)
    }
}
