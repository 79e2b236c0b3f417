import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@Suite struct KillTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `the hook sees each statement once, before it starts`() throws {
        let connection = try folder.notes()
        var seen: [String] = []
        connection.willStep = { seen.append($0) }

        try connection.transaction {
            try connection.execute("INSERT INTO notes VALUES ('a', 1), ('b', 2); SELECT 3")
        }
        _ = try connection.query("SELECT id FROM notes")

        let expected = [
            "BEGIN IMMEDIATE", "INSERT INTO notes VALUES ('a', 1), ('b', 2);", " SELECT 3", "COMMIT",
            "SELECT id FROM notes",
        ]
        #expect(seen == expected)
    }

    @Test(arguments: ["BEGIN IMMEDIATE", "INSERT INTO notes (id) VALUES (?)", "COMMIT"])
    func `a kill before any statement of a transaction leaves nothing of it`(_ victim: String) throws {
        let connection = try folder.notes()
        connection.willStep = { sql throws(StoreError) in if sql == victim { throw .killed } }

        let error = storeError {
            try connection.transaction { try connection.run("INSERT INTO notes (id) VALUES (?)", "a") }
        }

        #expect(error?.code == .killed)
        connection.willStep = nil
        #expect(storeError { try connection.run("ROLLBACK") }?.code == .killed)
        #expect(storeError { try connection.run("COMMIT") }?.code == .killed)
        #expect(storeError { _ = try connection.query("SELECT 1") }?.code == .killed)
        #expect(storeError { try connection.execute("SELECT 1") }?.code == .killed)
        connection.close()
        #expect(try folder.countOfNotes() == 0)
    }

    @Test func `a kill after the commit leaves all of it, and no checkpoint`() throws {
        let connection = try folder.notes()
        try connection.transaction { try connection.run("INSERT INTO notes (id) VALUES (?)", "a") }
        connection.willStep = { _ throws(StoreError) in throw .killed }
        #expect(storeError { try connection.run("SELECT 1") }?.code == .killed)

        connection.close()

        #expect(FileManager.default.fileExists(atPath: folder.file("store.db-wal")))
        #expect(try folder.countOfNotes() == 1)
    }

    @Test func `a kill in the middle of a query stops it at the next row`() throws {
        let connection = try folder.notes()
        try connection.run("INSERT INTO notes (id) VALUES ('a'), ('b')")
        var rows = 0
        connection.willStep = { sql throws(StoreError) in if sql == "SELECT 1" { throw .killed } }

        let error = storeError {
            try connection.forEach("SELECT id FROM notes") { _ in
                rows += 1
                try? connection.run("SELECT 1")
            }
        }

        #expect(error?.code == .killed && rows == 1)
    }

    @Test func `any other error of the hook fails one statement alone`() throws {
        let connection = try folder.notes()
        connection.willStep = { sql throws(StoreError) in
            if sql == "SELECT 1" { throw StoreError(.full, "scripted") }
        }

        #expect(storeError { try connection.run("SELECT 1") }?.code == .full)
        #expect(try connection.scalar("SELECT 2") == 2)
    }
}
