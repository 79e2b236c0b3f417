import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import FieldpostCLI

/// The built program with a real server, over real sockets.
@Suite(.serialized) struct ProgramTests {
    /// A server of the built program on a free port, and a token for branch B1.
    private struct Shop {
        let folder: TemporaryFolder
        let server: BuiltProgram
        let address: String
        let token: String

        init() throws {
            folder = try TemporaryFolder()
            let made = try BuiltProgram.run(
                "token",
                "create",
                "--store",
                folder.file("s.db"),
                "--scope",
                "B1"
            )
            token = String(made.output.dropLast())
            server = try BuiltProgram(
                "serve",
                "--schema",
                folder.schema,
                "--store",
                folder.file("s.db"),
                "--listen",
                "127.0.0.1:0"
            )
            address = try server.receive()["address"]?.string ?? ""
        }

        var url: String { "http://" + address }

        func device(_ name: String, token: String? = nil) throws -> BuiltProgram {
            try BuiltProgram(
                "device",
                "--schema",
                folder.schema,
                "--db",
                folder.file(name),
                "--server",
                url,
                "--token",
                token ?? self.token
            )
        }

        func sync(_ name: String, server: String? = nil, token: String? = nil) throws -> (
            output: String, exit: Int32
        ) {
            try BuiltProgram.run(
                "sync",
                "--schema",
                folder.schema,
                "--db",
                folder.file(name),
                "--server",
                server ?? url,
                "--token",
                token ?? self.token
            )
        }
    }

    @Test func `what is written offline reaches the server and a second device`() throws {
        let shop = try Shop()
        let first = try shop.device("a.db")
        let second = try shop.device("b.db")
        let row = #"{"do":"status","table":"orders","row":"\#(Samples.id(1))"}"#

        #expect(try first.reply(to: #"{"do":"network","up":false}"#).isOK)
        #expect(try first.reply(to: Samples.order(1)).isOK)
        let offline = try first.reply(to: #"{"do":"sync"}"#)
        let pending = try first.reply(to: row)
        #expect(try first.reply(to: #"{"do":"network","up":true}"#).isOK)
        let online = try first.reply(to: #"{"do":"sync"}"#)
        let synced = try first.reply(to: row)
        let pulled = try second.reply(to: #"{"do":"sync"}"#)
        let rows = try second.reply(to: #"{"do":"query","sql":"SELECT id, total_idr FROM orders"}"#)
        let echo = try first.reply(to: #"{"do":"sync"}"#)

        #expect(offline["online"] == false)
        #expect(offline["status"]?.object?["state"] == "offline")
        #expect(pending["status"] == "pending")
        #expect(online["online"] == true)
        #expect(online["pushed"] == 1)
        #expect(online["status"]?.object?["state"] == "allSynced")
        #expect(synced["status"] == "synced")
        #expect(pulled["pulled"] == 1)
        #expect(rows.objects("rows") == [["id": .string(Samples.id(1)), "total_idr": 5]])
        #expect(echo["pulled"] == 0)
        #expect(try first.end() == 0)
        #expect(try second.end() == 0)
        #expect(shop.server.stop() == 0)
    }

    @Test func `a refused operation is a dead letter, and holds what depends on it`() throws {
        let shop = try Shop()
        let device = try shop.device("a.db")
        let payment =
            #"{"do":"write","ops":[{"table":"payments","action":"create","set":"#
            + #"{"branch_id":"B1","order_id":"\#(Samples.id(1))","amount_idr":5}}]}"#

        _ = try device.reply(to: Samples.order(1, branch: "B2"))
        _ = try device.reply(to: payment)
        let report = try device.reply(to: #"{"do":"sync"}"#)
        let failed = try device.reply(to: #"{"do":"failed"}"#).objects("entries")

        #expect(report["rejected"] == 1)
        #expect(report["status"]?.object?["held"] == 1)
        #expect(report["status"]?.object?["state"] == "needsAttention")
        #expect(failed.first?["error"]?.object?["code"] == "scope")
        #expect(try device.end() == 0)
        #expect(try shop.sync("a.db").exit == 4)
    }

    @Test func `a stale edit is a conflict that the device shows`() throws {
        let shop = try Shop()
        let first = try shop.device("a.db")
        let second = try shop.device("b.db")
        func edit(_ total: Int) -> String {
            #"{"do":"write","ops":[{"table":"orders","action":"update","row":"\#(Samples.id(1))","set":{"total_idr":\#(total)}}]}"#
        }

        _ = try first.reply(to: Samples.order(1))
        _ = try first.reply(to: #"{"do":"sync"}"#)
        _ = try second.reply(to: #"{"do":"sync"}"#)
        _ = try first.reply(to: edit(6))
        let lost = try second.reply(to: edit(7)).strings("operations")
        _ = try first.reply(to: #"{"do":"sync"}"#)
        let report = try second.reply(to: #"{"do":"sync"}"#)
        let conflicts = try second.reply(to: #"{"do":"conflicts"}"#).objects("entries")
        let settled = try second.reply(to: #"{"do":"settled","operation":"\#(lost[0])"}"#)

        #expect(report["conflicts"] == 1)
        #expect(conflicts.first?["operation"] == .string(lost[0]))
        #expect(conflicts.first?["theirs"]?.object?["total_idr"] == 6)
        #expect(settled["outcome"]?.object?["status"] == "conflict")
    }

    @Test func `sync says by its exit code whether work remains or a person is needed`() throws {
        let shop = try Shop()

        #expect(try shop.sync("a.db").exit == 0)
        #expect(try shop.sync("a.db", server: "http://127.0.0.1:1").exit == 3)
        #expect(try shop.sync("a.db", token: "wrong").exit == 4)
        #expect(try shop.sync("a.db", server: "ftp://x").exit == 64)
    }

    @Test func `a token made beside a running server is valid at once, and useless once revoked`() throws {
        let shop = try Shop()
        let store = shop.folder.file("s.db")
        let made = try BuiltProgram.run("token", "create", "--store", store, "--scope", "B1", "--json")
        let reply = try JSON(text: made.output).object ?? [:]
        let token = reply["token"]?.string ?? ""

        let before = try shop.sync("a.db", token: token)
        let revoked = try BuiltProgram.run("token", "revoke", "--store", store, reply["id"]?.string ?? "")
        let after = try shop.sync("a.db", token: token)
        let list = try BuiltProgram.run("token", "list", "--store", store)

        #expect(before.exit == 0)
        #expect(revoked.exit == 0)
        #expect(after.exit == 4)
        #expect(list.output.contains("revoked"))
        #expect(!list.output.contains(token))
    }

    @Test func `an address that is taken and a newer store are refused by their codes`() throws {
        let shop = try Shop()
        let newer = Samples.schema.replacingOccurrences("\"version\": 1", "\"version\": 2")
        try shop.folder.write(newer, to: "newer.json")
        let other = shop.folder.file("t.db")

        let taken = try BuiltProgram.run(
            "serve",
            "--schema",
            shop.folder.schema,
            "--store",
            other,
            "--listen",
            shop.address
        )
        let upgraded = try BuiltProgram(
            "serve",
            "--schema",
            shop.folder.file("newer.json"),
            "--store",
            other,
            "--listen",
            "127.0.0.1:0"
        )
        _ = try upgraded.receive()
        #expect(upgraded.stop() == 0)
        let refused = try BuiltProgram.run(
            "serve",
            "--schema",
            shop.folder.schema,
            "--store",
            other,
            "--listen",
            "127.0.0.1:0"
        )

        #expect(taken.exit == 69)
        #expect(refused.exit == 65)
        #expect(refused.output.isEmpty)
    }

    @Test func `a file that another program locks while it is synced is status 75, and nothing is lost`()
        async throws
    {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let device = try BuiltProgram("device", "--schema", folder.schema, "--db", path)
        _ = try device.reply(to: Samples.order(1))
        #expect(try device.end() == 0)
        // Safe because: the server's thread uses it before the program has its answer, the test after the program's end.
        nonisolated(unsafe) let lock = try Connection(path: path, mode: .readWrite)
        let server = try RawServer(answering: { _ in
            try? lock.run("BEGIN IMMEDIATE")
            return .init("503 Busy")
        })

        let sync = try BuiltProgram.run(
            "sync",
            "--schema",
            folder.schema,
            "--db",
            path,
            "--server",
            "http://127.0.0.1:\(server.port)",
            "--token",
            "t"
        )

        #expect(sync.exit == 75)
        #expect(sync.output.contains("the local store failed"))
        lock.close()
        let status = try BuiltProgram.run("status", "--db", path, "--json")
        #expect(status.exit == 3)
        #expect(status.output.contains("\"pending\":1"))
        await server.stop()
    }

    @Test func `another account's token is a matter for a person, and sends nothing`() throws {
        let shop = try Shop()
        let foreign = try BuiltProgram.run(
            "token",
            "create",
            "--store",
            shop.folder.file("s.db"),
            "--scope",
            "B1",
            "--account",
            "budi"
        ).output.dropLast()
        let device = try shop.device("a.db")
        _ = try device.reply(to: Samples.order(1))
        #expect(try device.reply(to: #"{"do":"sync"}"#)["pushed"] == 1)
        _ = try device.reply(to: Samples.order(2))
        #expect(try device.end() == 0)

        let refused = try shop.sync("a.db", token: String(foreign))

        #expect(refused.exit == 4)
        #expect(refused.output.contains("another account"))
        #expect(try shop.sync("a.db").exit == 0)
    }

    @Test func `a live device says when its status changes`() throws {
        let shop = try Shop()
        let device = try BuiltProgram(
            "device",
            "--schema",
            shop.folder.schema,
            "--db",
            shop.folder.file("a.db"),
            "--server",
            shop.url,
            "--token",
            shop.token,
            "--live"
        )
        func next(where condition: (JSONObject) -> Bool) throws {
            while true {
                let line = try device.receive()
                if line["event"] == "status", condition(line["status"]?.object ?? [:]) { return }
            }
        }

        try next { $0["last_sync_ms"]?.integer != nil }
        try device.send(Samples.order(1))
        try next { $0["pending"] == 1 || $0["inFlight"] == 1 }
        try next { $0["state"] == "allSynced" }

        #expect(try device.end() == 0)
    }
}

extension String {
    fileprivate func replacingOccurrences(_ text: String, _ other: String) -> String {
        split(separator: text, omittingEmptySubsequences: false).joined(separator: other)
    }
}
