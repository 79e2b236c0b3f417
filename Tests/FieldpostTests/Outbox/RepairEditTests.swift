import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

@Suite struct RepairEditTests {
    let device: Device
    let order = "0191b2a0-0000-7000-8000-00000000000a"

    init() throws { device = try Device() }

    private func createOrder() throws -> OperationID {
        try device.write(
            "INSERT INTO orders (id, branch_id, plate, total_idr) VALUES ('\(order)', 'B1', 'P', 5)"
        )[0]
    }

    private func edit(_ id: OperationID, _ set: JSONObject) throws -> OperationID {
        try Repair(device.db).edit(id, set: set, now: device.now, random: &device.random)
    }

    private func shown(_ column: String) throws -> Value? {
        try device.db.connection.scalar("SELECT \(column) FROM orders WHERE id = ?", .text(order))
    }

    private func code(_ body: () throws -> Void) -> FieldpostError.Code? {
        do { try body() } catch { return (error as? FieldpostError)?.code }
        return nil
    }

    @Test func `a refused operation gets the new value, a new id, and goes again`() throws {
        let old = try createOrder()
        try device.push(OperationResult.rejected("no"))

        let new = try edit(old, ["total_idr": 9])

        #expect(new != old)
        let entry = try #require(try device.entry(new))
        #expect(entry.state == .pending && entry.error == nil)
        #expect(try JSON(text: entry.change ?? "").object?["set"]?.object?["total_idr"] == 9)
        #expect(try JSON(text: entry.change ?? "").object?["set"]?.object?["plate"] == "P")
        #expect(try shown("total_idr") == 9)
    }

    @Test func `an unsent operation keeps its id and shows the new value`() throws {
        let id = try createOrder()

        let same = try edit(id, ["total_idr": 9])

        #expect(same == id)
        #expect(try shown("total_idr") == 9)
        #expect(try shown("plate") == "P")
    }

    @Test func `a value that the table does not take changes nothing`() throws {
        let id = try createOrder()
        let before = try device.entry(id)

        #expect(code { _ = try edit(id, ["total_idr": "x"]) } == .type)
        #expect(code { _ = try edit(id, ["totl": 1]) } == .unknownColumn)
        #expect(code { _ = try edit(id, ["total_idr": -1]) } == .check)

        #expect(try device.entry(id) == before)
        #expect(try shown("total_idr") == 5)
    }

    @Test func `an operation that never was sent is taken back, one that was is not`() throws {
        let id = try createOrder()

        #expect(try Repair(device.db).undo(id, now: device.now) == [id])

        #expect(try device.entry(id) == nil)
        #expect(try shown("total_idr") == nil)
        let sent = try createOrder()
        try device.push(OperationResult.rejected("no"))
        #expect(code { _ = try Repair(device.db).undo(sent, now: device.now) } == .wrongState)
    }
}
