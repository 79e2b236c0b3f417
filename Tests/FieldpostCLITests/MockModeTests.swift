import FieldpostCore
import Testing

@testable import FieldpostCLI

/// `--mock` of the device: a whole life without a server.
@Suite struct MockModeTests {
    private let order = "0191b2a0-0000-7000-8000-00000000000a"

    private func run(_ fixtures: String, _ lines: String...) async throws -> CommandRun {
        let folder = try TemporaryFolder()
        let mock = try folder.write(fixtures, to: "mock.json")
        return await .of(
            "device",
            "--schema",
            folder.schema,
            "--db",
            folder.file("a.db"),
            "--mock",
            mock,
            input: lines
        )
    }

    @Test func `rows of the backend come, and what is written goes`() async throws {
        let run = try await run(
            #"{"orders":[{"id":"\#(order)","branch_id":"B1","total_idr":7}]}"#,
            #"{"do":"write","ops":[{"table":"orders","action":"create","set":{"branch_id":"B1","total_idr":9}}]}"#,
            #"{"do":"sync"}"#,
            #"{"do":"query","sql":"SELECT sum(total_idr) AS sum FROM orders"}"#
        )

        #expect(run.exit == .done)
        let replies = try run.replies
        #expect(replies[1]["pushed"] == 1 && replies[1]["pulled"] == 1)
        #expect(replies[2]["rows"] == [["sum": 16]])
    }

    @Test func `it has no signal when it is told so`() async throws {
        // `network` acts when it is read, so a device that reads all of this at once is offline from the start.
        let run = try await run(
            "{}",
            #"{"do":"network","up":false}"#,
            #"{"do":"write","ops":[{"table":"orders","action":"create","set":{"branch_id":"B1","total_idr":9}}]}"#,
            #"{"do":"sync"}"#
        )

        let reply = try run.replies[2]
        #expect(reply["online"] == false)
        #expect(reply["status"]?.object?["sentence"] == "1 change waiting for network")
    }

    @Test(arguments: [
        (#"{"order":[]}"#, "order: the schema has no such table"),
        (#"{"orders":{}}"#, "orders: no list of rows"),
        (#"{"orders":[{"totl":1}]}"#, "orders[0]: the table has no column totl"),
        (#"{"orders":[{"total_idr":"x"}]}"#, "orders[0].total_idr: "),
        (#"{"orders":[{"total_idr":1}]}"#, "orders[0]: its key id is missing"),
        ("[", "is not JSON at byte"),
        ("7", "is not {\"table\": [rows]}"),
        (
            #"{"orders":[{"id":"0191b2a0-0000-7000-8000-00000000000a","total_idr":1}]}"#,
            "the column branch_id is missing"
        ),
    ])
    func `fixtures that do not fit are refused with the place`(fixtures: String, words: String) async throws {
        let run = try await run(fixtures)

        #expect(run.exit == .badData)
        #expect(run.errors.contains(words))
    }

    @Test func `one server is enough`() async throws {
        let folder = try TemporaryFolder()
        let mock = try folder.write("{}", to: "mock.json")
        let run = await CommandRun.of(
            "device",
            "--schema",
            folder.schema,
            "--db",
            folder.file("a.db"),
            "--mock",
            mock,
            "--server",
            "http://h"
        )

        #expect(run.exit == .usage)
    }
}
