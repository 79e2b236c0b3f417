import FieldpostCore
import Foundation
import Testing

@testable import Fieldpost

/// Profiles from files and from Swift.
@Suite struct RESTProfileTests {
    private func problems(_ text: String) -> [String] {
        do throws(RESTProfileError) {
            _ = try RESTProfile(json: Array(text.utf8))
            return []
        } catch { return error.problems.map(\.description) }
    }

    private func problems(_ profile: RESTProfile, _ schema: Schema = RESTSamples.schema()) -> [String] {
        do throws(RESTProfileError) {
            try profile.validate(for: schema)
            return []
        } catch { return error.problems.map(\.description) }
    }

    @Test func `the example for Kinto means what the Swift form means`() throws {
        let file = RESTSamples.root.appending(path: "Examples/rest/kinto.json")
        let read = try RESTProfile(json: Array(try Data(contentsOf: file)))

        let server = try #require(URL(string: "http://127.0.0.1:8888/v1"))
        #expect(read == RESTProfile.kinto(server: server, bucket: "shop", tables: ["notes"]))
        #expect(problems(read).isEmpty)
    }

    @Test func `a name that the format does not know names the nearest known one`() {
        let text = """
            {"base":"http://h/v1","autorization":"basic","tables":{"notes":{"create":
            {"methd":"PUT","method":"PUT","path":"/n/{id}"},"list":{"path":"/n","nxt":"link"}}}}
            """
        #expect(
            problems(text) == [
                "autorization: there is no such name here; did you mean authorization?",
                "tables.notes.create.methd: there is no such name here; did you mean method?",
                "tables.notes.list.nxt: there is no such name here; did you mean next?",
            ]
        )
    }

    @Test(arguments: [
        (#"{"tables":{}}"#, "base: there is no address; write \"base\": \"https://host/path\""),
        (#"{"base":"http://h"}"#, "tables: there are no tables; write \"tables\": { \"notes\": { … } }"),
        (
            #"{"base":"http://h","authorization":"basik","tables":{}}"#,
            "authorization: “basik” is not known; did you mean basic?"
        ),
        (
            #"{"base":"http://h","answers":[{"status":"5x","means":"busy"}],"tables":{}}"#,
            "answers[0].status: it is no status; write 412, \"4xx\" or \"500-503\""
        ),
        (
            #"{"base":"http://h","answers":[{"status":409}],"tables":{}}"#,
            "answers[0]: it says not what the status means; add \"means\": \"conflict\""
        ),
        (
            #"{"base":"http://h","tables":{"notes":{"update":{"method":"PUT"}}}}"#,
            "tables.notes.update: the path is missing; add \"path\": \"/notes/{id}\""
        ),
        ("{\"base\":", "byte 8: the file is not JSON: the text ends too early; correct the text there"),
    ])
    func `a fault names its place and its remedy`(text: String, problem: String) {
        let found = problems(text)
        #expect(found.count == 1)
        // What the JSON reader says of a broken file is its own to word.
        #expect(
            found.first == problem || problem.hasPrefix("byte") && found.first?.hasPrefix("byte 8") == true
        )
    }

    @Test(
        arguments: [("412", 412...412), ("4xx", 400...499), ("\"500-503\"", 500...503)]
            as [(String, ClosedRange<Int>)]
    )
    func `a status is a number, a class or a range`(text: String, range: ClosedRange<Int>) throws {
        let value = text.hasPrefix("4x") ? "\"4xx\"" : text
        let json =
            "{\"base\":\"http://h\",\"answers\":[{\"status\":\(value),\"means\":\"busy\"}],\"tables\":{}}"
        #expect(try RESTProfile(json: Array(json.utf8)).answers == [RESTProfile.Answer(range, .busy)])
    }

    @Test func `a profile that does not fit the schema says where`() throws {
        var profile = RESTProfile(base: try #require(URL(string: "http://h")))
        profile.resources["nots"] = RESTProfile.Resource()
        var notes = RESTProfile.Resource(
            create: .init("PUT", "notes/{idd}"),
            columns: ["title": "version", "dome": "x"]
        )
        notes.record.version = "version"
        profile.resources["notes"] = notes

        #expect(
            problems(profile) == [
                "tables.nots: the schema has no such table; did you mean notes?",
                "tables.notes.columns.dome: the table has no such column; did you mean done?",
                "tables.notes: the column title has the name of the record's own field version; "
                    + "give it another name under \"columns\"",
                "tables.notes.create.path: the path does not begin with /; write it as it follows the base",
                "tables.notes.create.path: {idd} is neither a column nor id, operation, version or token; "
                    + "did you mean {id}?",
            ]
        )
    }

    @Test func `columns that a REST server cannot merge are refused`() throws {
        let schema = Schema(version: 1) {
            Table("notes") {
                Column("id", .text).primaryKey()
                Column("likes", .integer).defaults(to: 0)
            }.rule("likes", .counter)
        }
        let server = try #require(URL(string: "http://h/v1"))
        #expect(
            problems(.kinto(server: server, tables: ["notes"]), schema) == [
                "tables.notes: the column likes is a counter, which a REST server does not merge; "
                    + "take the rule off in the schema"
            ]
        )
    }
}
