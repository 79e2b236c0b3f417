import FieldpostCore
import FieldpostSQLite
import Testing

@Suite struct TransactionTests {
    struct Stop: Error {}

    let folder: TemporaryFolder
    let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try folder.notes()
    }

    private func insert(_ id: String) throws {
        try connection.run("INSERT INTO notes (id) VALUES (?)", .text(id))
    }

    private func ids() throws -> [String] {
        try connection.query("SELECT id FROM notes ORDER BY id").compactMap { $0[0].text }
    }

    @Test func `a transaction commits when its body returns`() throws {
        let result = try connection.transaction {
            try insert("a")
            return connection.inTransaction
        }

        #expect(result && !connection.inTransaction)
        #expect(try folder.countOfNotes() == 1)
    }

    @Test func `a transaction is undone when its body throws, and the error is the body's`() throws {
        #expect(throws: Stop.self) {
            try connection.transaction {
                try insert("a")
                throw Stop()
            }
        }

        #expect(!connection.inTransaction)
        #expect(try ids().isEmpty)
    }

    @Test func `a rollback that fails does not hide the first error`() throws {
        #expect(throws: Stop.self) {
            try connection.transaction {
                try connection.run("ROLLBACK")
                throw Stop()
            }
        }
    }

    @Test func `a commit that fails undoes the transaction`() throws {
        try connection.execute(
            """
            CREATE TABLE lines (id PRIMARY KEY, note REFERENCES notes DEFERRABLE INITIALLY DEFERRED)
            """
        )

        let error = storeError {
            try connection.transaction {
                #expect(!connection.deferredForeignKeyViolations)
                try connection.run("INSERT INTO lines VALUES (1, 'nobody')")
                #expect(connection.deferredForeignKeyViolations)
            }
        }

        #expect(error?.constraint == .foreignKey)
        #expect(!connection.inTransaction)
        #expect(try connection.scalar("SELECT count(*) FROM lines") == 0)
    }

    @Test func `an immediate transaction keeps other writers out from its start`() throws {
        let other = try Connection(path: folder.file("store.db"), busyTimeout: .zero)

        try connection.transaction(.immediate) {
            #expect(storeError { try other.run("INSERT INTO notes (id) VALUES ('b')") }?.code == .busy)
        }

        try other.run("INSERT INTO notes (id) VALUES ('b')")
    }

    @Test func `a savepoint undoes only its own part`() throws {
        try connection.transaction {
            try insert("a")
            try? connection.savepoint {
                try insert("b")
                try? connection.savepoint("inner \"quoted\"") {
                    try insert("c")
                    throw Stop()
                }
                #expect(try ids() == ["a", "b"])
                throw Stop()
            }
            try connection.savepoint { try insert("d") }
        }

        #expect(try ids() == ["a", "d"])
    }

    @Test func `closing undoes an open transaction, though a statement is still held`() throws {
        try connection.run("BEGIN IMMEDIATE")
        try insert("a")
        let held = try connection.prepare("SELECT id FROM notes")
        try held.step()

        connection.close()

        #expect(try folder.countOfNotes() == 0)
        #expect(storeError { try held.step() }?.code == .closed)
        #expect(storeError { try connection.run("SELECT 1") }?.code == .closed)
        #expect(!connection.inTransaction && !connection.isOpen && connection.changes == 0)
        connection.close()
    }

    @Test func `a connection that goes away releases its lock`() throws {
        var other: Connection? = try Connection(path: folder.file("store.db"))
        try other?.run("BEGIN IMMEDIATE")
        #expect(other != nil)

        other = nil

        try insert("b")
        #expect(try ids() == ["b"])
    }

    @Test func `a writer in FULL or NORMAL uses the write-ahead log and foreign keys`() throws {
        #expect(try connection.scalar("PRAGMA journal_mode") == "wal")
        #expect(try connection.scalar("PRAGMA synchronous") == 1)
        #expect(try connection.scalar("PRAGMA foreign_keys") == 1)

        try connection.configureWriter(synchronous: .full)

        #expect(try connection.scalar("PRAGMA synchronous") == 2)
        #expect(try connection.scalar("PRAGMA wal_autocheckpoint") == 1_000)
    }

    @Test func `a reader can not write and does not checkpoint`() throws {
        let reader = try Connection(path: folder.file("store.db"))

        try reader.configureReader()

        #expect(storeError { try reader.run("DELETE FROM notes") }?.code == .readOnly)
        #expect(try reader.scalar("PRAGMA wal_autocheckpoint") == 0)
    }

    @Test func `the data version tells that another connection wrote`() throws {
        let before = try connection.dataVersion
        try insert("a")
        #expect(try connection.dataVersion == before)

        try Connection(path: folder.file("store.db")).run("INSERT INTO notes (id) VALUES ('b')")

        #expect(try connection.dataVersion != before)
    }
}
