import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct GroupCommitTests {
    private let folder: ScratchFolder
    private let writer: Writer
    private let commits: GroupCommit

    init() throws {
        folder = try ScratchFolder()
        let connection = try Connection(path: folder.path + "/x.db")
        try connection.configureWriter(synchronous: .full)
        try connection.execute(
            """
            CREATE TABLE parents (id INTEGER PRIMARY KEY);
            CREATE TABLE rows (n INTEGER, parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
            """
        )
        writer = Writer(connection)
        commits = GroupCommit(writer)
    }

    private struct Stop: Error {}

    private func rows() throws -> [Int64] {
        try Connection(path: folder.path + "/x.db", mode: .readOnly).query("SELECT n FROM rows ORDER BY n")
            .compactMap(\.[0].integer)
    }

    /// Holds the writer until every write in `bodies` waits, so that they are taken together.
    private func together(
        _ bodies: [@Sendable (Connection) throws -> Void]
    ) async throws -> [Bool] {
        let (held, release) = (Gate(), Gate())
        async let holding: Void = writer.perform { _ in
            held.open()
            release.wait()
        }
        await held.opened()
        let results = await withTaskGroup(of: (Int, Bool).self) { [commits] group in
            for (index, body) in bodies.enumerated() {
                group.addTask { (index, (try? await commits.write(body)) != nil) }
            }
            while commits.waitingCount < bodies.count { await Task.yield() }
            release.open()
            return await group.reduce(into: [Int: Bool]()) { $0[$1.0] = $1.1 }
        }
        try await holding
        return bodies.indices.map { results[$0] ?? false }
    }

    @Test func `writes that wait together share one commit`() async throws {
        let told = try await together(
            (0..<10).map { n in { try $0.run("INSERT INTO rows VALUES (?, NULL)", .integer(Int64(n))) } }
        )

        #expect(told == Array(repeating: true, count: 10))
        #expect(commits.statistics.commits == 1)
        #expect(try rows() == Array(0..<10))
    }

    @Test func `a write that fails leaves nothing, and its neighbours everything`() async throws {
        let told = try await together([
            { try $0.run("INSERT INTO rows VALUES (1, NULL)") },
            { connection in
                try connection.run("INSERT INTO rows VALUES (2, NULL)")
                throw Stop()
            },
            { try $0.run("INSERT INTO rows VALUES (3, NULL)") },
        ])

        #expect(told == [true, false, true])
        #expect(try rows() == [1, 3])
    }

    @Test func `when the commit fails everybody hears of it and nothing is kept`() async throws {
        let told = try await together([
            { try $0.run("INSERT INTO rows VALUES (1, NULL)") },
            { try $0.run("INSERT INTO rows VALUES (2, 99)") },
        ])

        #expect(told == [false, false])
        #expect(try rows() == [])
        try await commits.write { try $0.run("INSERT INTO rows VALUES (3, NULL)") }
        #expect(try rows() == [3])
    }

    @Test func `a failure that ends the transaction ends it for all in it`() async throws {
        let told = try await together([
            { try $0.run("INSERT INTO rows VALUES (1, NULL)") },
            { connection in
                try connection.run("ROLLBACK")
                throw Stop()
            },
        ])

        #expect(told == [false, false])
        #expect(try rows() == [])
    }

    @Test func `a closed writer refuses and nobody waits for ever`() async throws {
        await writer.close()

        await #expect(throws: StoreError.self) { try await commits.write { _ in } }
    }
}
