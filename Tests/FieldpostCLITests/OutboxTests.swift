import Fieldpost
import FieldpostCore
import Testing

@testable import FieldpostCLI

@Suite struct OutboxTests {
    private func outbox(_ folder: TemporaryFolder, _ words: String...) async -> CommandRun {
        let output = Collected()
        let errors = Collected()
        let console = Console(write: { output.append($0) }, writeError: { errors.append($0) })
        let exit = await FieldpostTool.run(["outbox"] + words + ["--db", folder.file("a.db")], on: console)
        return CommandRun(exit: exit, output: output.text, errors: errors.text)
    }

    @Test func `the list needs no schema and fits 80 columns`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CommandRun.device(folder, Samples.order(1), Samples.order(2))

        let list = await outbox(folder, "list")
        let limited = await outbox(folder, "list", "--limit", "1")

        let lines = list.output.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(lines[1].hasPrefix("1      pending  create orders         \(Samples.id(1))"))
        #expect(limited.output.hasSuffix("There are more; --limit 0 shows all.\n"))
    }

    @Test func `an operation is found by its number and by its id, and shown whole`() async throws {
        let folder = try TemporaryFolder()
        let made = try await CommandRun.device(folder, Samples.order(1))
        let id = made[0].strings("operations")[0]

        let byNumber = await outbox(folder, "show", "1")
        let byID = await outbox(folder, "show", id.uppercased(), "--json")
        let missing = await outbox(folder, "show", "2")

        #expect(byNumber.output.contains("set       total_idr = 5"))
        #expect(try byID.replies[0]["operation"] == .string(id))
        #expect(missing.exit == .usage)
        #expect(missing.errors.contains("There is no unsettled operation 2"))
    }

    @Test func `discard works beside a device that has the file open`() async throws {
        let folder = try TemporaryFolder()
        let schema = try Schema(json: Array(Samples.schema.utf8))
        let store = try await Store.open(at: folder.file("a.db"), schema: schema)
        try await store.write { _ = try $0.create("orders", set: ["branch_id": "B1", "total_idr": 1]) }

        let run = await outbox(folder, "discard", "1")

        #expect(run.exit == .done)
        #expect(run.output.hasPrefix("Discarded: "))
        #expect(try await store.outbox().isEmpty)
        #expect(try await store.read { try $0.query("SELECT id FROM orders") }.isEmpty)
        await store.close()
    }

    @Test func `an export is a line of JSON for each operation`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CommandRun.device(folder, Samples.order(1), Samples.order(2))

        let export = await outbox(folder, "export")
        let list = await outbox(folder, "list", "--json")

        #expect(try export.replies == list.replies[0].objects("entries"))
        #expect(try export.replies.map { $0["seq"] } == [1, 2])
    }

    @Test func `a file of another program is refused`() async throws {
        let folder = try TemporaryFolder()
        _ = await CommandRun.of("token", "create", "--store", folder.file("a.db"), "--scope", "B1")

        let list = await outbox(folder, "list")

        #expect(list.exit == .unavailable)
        #expect(list.errors.contains("no device's store"))
    }

    @Test func `status ends with 3 while work remains and with 0 when none does`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CommandRun.device(folder)
        let empty = await CommandRun.of("status", "--db", folder.file("a.db"), "--json")
        _ = try await CommandRun.device(folder, Samples.order(1))
        let waiting = await CommandRun.of("status", "--db", folder.file("a.db"))

        #expect(empty.exit == .done)
        #expect(try empty.replies[0]["state"] == "allSynced")
        #expect(waiting.exit == .workRemains)
        #expect(waiting.output == "1 change waiting to be sent\n1 pending\n")
    }
}
