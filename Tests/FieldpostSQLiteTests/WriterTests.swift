import FieldpostCore
import FieldpostSQLite
import Testing

@Suite struct WriterTests {
    struct Stop: Error {}

    let folder: TemporaryFolder
    let writer: Writer

    init() throws {
        folder = try TemporaryFolder()
        writer = Writer(try folder.notes())
    }

    @Test func `a write commits when its body returns`() async throws {
        let inTransaction = try await writer.write { connection in
            try connection.run("INSERT INTO notes (id) VALUES ('a')")
            return connection.inTransaction
        }

        #expect(inTransaction)
        #expect(try folder.countOfNotes() == 1)
    }

    @Test func `a write is undone when its body throws, and the next one runs`() async throws {
        await #expect(throws: Stop.self) {
            try await writer.write { connection in
                try connection.run("INSERT INTO notes (id) VALUES ('a')")
                throw Stop()
            }
        }

        try await writer.write { try $0.run("INSERT INTO notes (id) VALUES ('b')") }
        #expect(try folder.countOfNotes() == 1)
    }

    @Test func `a transaction that is left open is rolled back and reported`() async throws {
        await #expect {
            try await writer.perform { try $0.execute("BEGIN; INSERT INTO notes (id) VALUES ('a')") }
        } throws: {
            ($0 as? StoreError)?.code == .misuse
        }

        #expect(try await writer.perform { $0.inTransaction } == false)
        #expect(try folder.countOfNotes() == 0)
    }

    @Test func `concurrent writes are served one at a time`() async throws {
        try await withThrowingTaskGroup { group in
            for number in 0..<50 {
                group.addTask {
                    try await writer.write {
                        try $0.run("INSERT INTO notes VALUES (?, 1)", .text("\(number)"))
                    }
                }
            }
            try await group.waitForAll()
        }

        #expect(try folder.countOfNotes() == 50)
    }

    @Test func `a closed writer refuses`() async {
        await writer.close()

        await #expect {
            try await writer.write { _ in }
        } throws: {
            ($0 as? StoreError)?.code == .closed
        }
    }
}
