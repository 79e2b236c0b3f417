import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@testable import FieldpostServer

/// Whoever writes the tables reaches the devices: here a second connection without Fieldpost's help, as the `sqlite3` shell.
@Suite struct TriggerTests {
    private let shop: Shop
    private let shell: Connection
    private let one = sqlString(Shop.id(1))
    private let two = sqlString(Shop.id(2))
    private let three = sqlString(Shop.id(3))

    init() throws {
        shop = try Shop()
        shell = try Connection(path: shop.path)
    }

    /// Runs SQL beside the server and returns what a device of `credential` then pulls.
    private func after(_ sql: String, as credential: Credential = Shop.everywhere) throws -> [String] {
        let cursor = try shop.pull(as: credential).cursor
        try shell.execute(sql)
        return try shop.pull(cursor, as: credential).rows
    }

    private func order(_ id: String, _ branch: String = "B1", _ plate: String = "NULL") -> String {
        "INTO orders (id, branch_id, plate, total_idr) VALUES (\(id), '\(branch)', \(plate), 5)"
    }

    @Test func `inserts, updates and deletes arrive`() throws {
        #expect(try after("INSERT \(order(one))") == ["1"])
        #expect(try after("UPDATE orders SET status = 'paid'") == ["1"])
        #expect(try after("DELETE FROM orders") == ["-1"])
    }

    @Test func `a bulk update gives every row a version of its own`() throws {
        try shell.execute("INSERT \(order(one)); INSERT \(order(two)); INSERT \(order(three))")

        #expect(try after("UPDATE orders SET total_idr = 6") == ["1", "2", "3"])
        #expect(try shop.count("(SELECT DISTINCT version FROM fieldpost_feed)") == 3)
    }

    @Test(arguments: ["INSERT OR REPLACE", "REPLACE"])
    func `REPLACE of a row by its key arrives`(verb: String) throws {
        try shell.execute("INSERT \(order(one))")

        #expect(try after("\(verb) \(order(one, "B1", "'X'"))") == ["1"])
    }

    @Test func `REPLACE that moves a row ends it in its old scope`() throws {
        try shell.execute("INSERT \(order(one))")

        #expect(try after("REPLACE \(order(one, "B2"))", as: Shop.first) == ["-1 scope"])
    }

    @Test func `REPLACE that removes another row by a unique value says so`() throws {
        try shell.execute("INSERT \(order(one, "B1", "'X'")); INSERT \(order(two, "B1", "'Y'"))")

        #expect(try after("REPLACE \(order(three, "B1", "'X'"))").sorted() == ["-1", "3"])
        #expect(
            try after("UPDATE OR REPLACE orders SET plate = 'X' WHERE id = \(two)").sorted() == ["-3", "2"]
        )
        #expect(try shop.count("fieldpost_feed WHERE deleted = 0") == shop.count("orders"))
    }

    @Test func `IGNORE that skips a row says nothing`() throws {
        try shell.execute("INSERT \(order(one, "B1", "'X'"))")

        #expect(try after("INSERT OR IGNORE \(order(two, "B1", "'X'"))") == [])
        #expect(try after("UPDATE OR IGNORE orders SET id = \(two) WHERE id = \(one)") == ["-1", "2"])
    }

    @Test func `an upsert arrives`() throws {
        try shell.execute("INSERT \(order(one))")

        #expect(try after("INSERT \(order(one)) ON CONFLICT (id) DO UPDATE SET total_idr = 9") == ["1"])
        #expect(try shop.row("orders", 1)?["total_idr"] == 9)
    }

    @Test func `a changed key is the end of one row and the begin of another`() throws {
        try shell.execute("INSERT \(order(one))")

        #expect(try after("UPDATE orders SET id = \(two)") == ["-1", "2"])
    }

    @Test func `a key changed onto another row's replaces that row`() throws {
        try shell.execute("INSERT \(order(one)); INSERT \(order(two, "B2"))")

        #expect(
            try after("UPDATE OR REPLACE orders SET id = \(two) WHERE id = \(one)", as: Shop.second) == [
                "-2 scope"
            ]
        )
        #expect(try shop.pull(as: Shop.first).rows == ["-1", "2"])
    }

    @Test func `cascades arrive`() throws {
        try shell.execute("INSERT \(order(one)); INSERT INTO lines VALUES (\(two), \(one), 't')")
        try shell.execute("PRAGMA foreign_keys = ON")

        #expect(try after("DELETE FROM orders", as: Shop.first).sorted() == ["-1", "-2"])
    }

    @Test func `a child that came before its parent appears with it`() throws {
        #expect(try after("INSERT INTO lines VALUES (\(two), \(one), 't')") == [])
        #expect(try after("INSERT \(order(one))", as: Shop.first) == ["1", "2"])
    }

    @Test func `a rolled back transaction leaves no trace`() throws {
        #expect(try after("BEGIN; INSERT \(order(one)); ROLLBACK") == [])
    }

    @Test func `an empty scope, which would be everybody's, is refused to any writer`() throws {
        #expect(throws: StoreError.self) { try shell.execute("INSERT OR IGNORE \(order(one, ""))") }
        #expect(try shop.count("orders") == 0)
    }

    @Test func `an edit by another program counts as a change since the device's base`() throws {
        try shop.push(shop.order(1))
        try shell.execute("UPDATE orders SET status = 'paid'")

        #expect(
            try shop.push(shop.operation("orders", 1, .update, ["total_idr": 1], base: .version(1))).map(
                \.verdict
            )
                == ["conflict"]
        )
    }

    @Test func `the sqlite3 shell itself reaches the devices`() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
        process.arguments = [shop.path, "INSERT \(order(one)); REPLACE \(order(one, "B2"))"]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()

        #expect(process.terminationStatus == 0)
        #expect(try shop.pull().rows == ["1"])
    }
}
