import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct SQLiteServerTests {
    private let folder: ScratchFolder
    private let server: SQLiteServer
    private var path: String { folder.path + "/shop.db" }

    init() async throws {
        folder = try ScratchFolder()
        server = try await SQLiteServer(path: folder.path + "/shop.db", schema: Shop.schema)
    }

    private func note(_ row: Int64, seq: Int64 = 0) -> Operation {
        Operation(
            id: OperationID(Shop.id(0xA000 + row))!,
            table: "notes",
            row: Shop.id(row),
            action: .create,
            seq: seq,
            schema: 2,
            at: Timestamp(milliseconds: 0)
        )
    }

    private func body(_ operations: Operation...) -> [UInt8] {
        PushRequest(groups: operations.map { OperationGroup(operations: [$0]) }).bytes()
    }

    private func count(_ table: String) throws -> Int64? {
        try Connection(path: path, mode: .readOnly).scalar("SELECT count(*) FROM \(table)")?.integer
    }

    @Test func `thirty-two sends of one operation at once apply it once and all hear the same`() async throws
    {
        var like = note(1)
        like.id = OperationID(Shop.id(0xB000))!
        like.action = .update
        like.change.inc = ["likes": 1]
        _ = try await server.push(body(note(1)), credential: Shop.everywhere, device: nil)
        let sent = body(like)

        let answers = try await withThrowingTaskGroup(of: [OperationResult].self) { [server] group in
            for _ in 0..<32 {
                group.addTask {
                    try await server.push(sent, credential: Shop.everywhere, device: nil).results
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }

        #expect(answers.count == 32)
        #expect(Set(answers.map { JSON.object($0[0].json).text() }).count == 1)
        #expect(answers[0].map(\.verdict) == ["applied"])
        #expect(try Connection(path: path, mode: .readOnly).scalar("SELECT likes FROM notes") == 1)
        await server.close()
    }

    @Test func `pushes that arrive together share commits, and each is answered after its own`() async throws
    {
        let before = server.commitStatistics
        try await withThrowingTaskGroup(of: Void.self) { [server, path] group in
            for row in 1...200 {
                let sent = body(note(Int64(row)))
                group.addTask {
                    _ = try await server.push(sent, credential: Shop.everywhere, device: nil)
                    let reader = try Connection(path: path, mode: .readOnly)
                    #expect(
                        try reader.scalar("SELECT 1 FROM notes WHERE id = ?", .text(Shop.id(Int64(row)))) == 1
                    )
                }
            }
            try await group.waitForAll()
        }

        #expect(server.commitStatistics.writes - before.writes == 200)
        #expect(server.commitStatistics.commits - before.commits <= 200)
        #expect(try count("notes") == 200)
        await server.close()
    }

    @Test func `a push that is refused does not harm the one beside it`() async throws {
        let device = Shop.device
        _ = try await server.push(body(note(1, seq: 1)), credential: Shop.everywhere, device: device)

        async let accepted = server.push(body(note(3, seq: 2)), credential: Shop.everywhere, device: device)
        await #expect(throws: Problem.self) {
            try await server.push(body(note(2, seq: 1)), credential: Shop.everywhere, device: device)
        }

        #expect(try await accepted.results.map(\.verdict) == ["applied"])
        #expect(try count("notes") == 2)
        await server.close()
    }

    @Test func `a token's tenant chooses the file`() async throws {
        let north = try TenantName("north")
        let made = try await server.createToken(name: "t", tenant: north, scopes: .all)
        let credential = try #require(try await server.authenticate(made.token))

        _ = try await server.push(body(note(1)), credential: credential, device: nil)
        let elsewhere = try await server.pull(
            cursor: nil,
            limit: nil,
            credential: Shop.everywhere,
            device: nil
        )

        #expect(try PullPage(bytes: elsewhere).changes.isEmpty)
        #expect(try count("notes") == 0)
        #expect(
            try Connection(path: path + "-north", mode: .readOnly).scalar("SELECT count(*) FROM notes") == 1
        )
        await server.close()
    }

    @Test func `a revoked token is nobody at once`() async throws {
        let made = try await server.createToken(name: "t", scopes: .all)
        try await server.revokeToken(id: made.id)

        #expect(try await server.authenticate(made.token) == nil)
        await server.close()
    }

    @Test func `what is no push is a problem that says where`() async throws {
        for text in ["", "{", "[]", "{}", #"{"groups":[{"ops":[]}]}"#, #"{"groups":[{"ops":[{"id":"x"}]}]}"#]
        {
            let problem = await #expect(throws: Problem.self) {
                try await server.push(Array(text.utf8), credential: Shop.everywhere, device: nil)
            }
            #expect(problem?.code == "malformed")
            #expect(problem?.status == 400)
        }
        await server.close()
    }

    @Test func `a device that only pulls is on record once somebody pushes`() async throws {
        let device = try #require(Shop.device)
        _ = try await server.pull(cursor: nil, limit: nil, credential: Shop.first, device: device)

        _ = try await server.push(body(note(1)), credential: Shop.everywhere, device: nil)

        let row = try Connection(path: path, mode: .readOnly).query(
            "SELECT id, token, cursor FROM fieldpost_devices"
        )
        #expect(row == [[.text(device.id), "t-1", 0]])
        await server.close()
    }

    @Test func `a closed server refuses`() async throws {
        await server.close()

        await #expect(throws: ServerError.self) {
            try await server.push(body(note(1)), credential: Shop.everywhere, device: nil)
        }
    }

    @Test func `pulls go on while pushes commit`() async throws {
        let sent = (1...20).map { body(note(Int64($0))) }
        async let pushes: Void = withThrowingTaskGroup(of: Void.self) { [server] group in
            for one in sent {
                group.addTask { _ = try await server.push(one, credential: Shop.everywhere, device: nil) }
            }
            try await group.waitForAll()
        }
        var cursor: String?
        var rows: [String] = []
        func pull() async throws {
            let bytes = try await server.pull(
                cursor: cursor,
                limit: 3,
                credential: Shop.everywhere,
                device: nil
            )
            let page = try PullPage(bytes: bytes)
            rows += page.rows
            cursor = page.cursor
        }
        for _ in 0..<20 { try await pull() }
        try await pushes
        for _ in 0..<10 { try await pull() }

        #expect(rows.count == 20)
        #expect(Set(rows).count == 20)
        await server.close()
    }
}
