import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// The process dies at statement k of a whole round, for every k; the next one finishes the work exactly once.
@Suite struct RecoveryTests {
    private func prepare(_ device: Device, _ server: MockServer) async throws {
        try device.write("INSERT INTO notes (id, title, likes) VALUES ('a', '1', 1)")
        try await device.sync(with: server)
        try device.write("UPDATE notes SET likes = likes + 10")
        try device.write(
            "UPDATE notes SET likes = likes + 100",
            "INSERT INTO notes (id, title) VALUES ('b', '2')"
        )
        try device.write(
            "INSERT INTO orders (id, branch_id, total_idr) VALUES ('0191b2a0-0000-7000-8000-00000000000a', 'B1', 5)"
        )
        try device.write("DELETE FROM notes WHERE id = 'b'")
    }

    private func check(_ device: Device, _ server: MockServer) throws {
        #expect(try device.outboxCount == 0)
        #expect(try server.query("SELECT id, likes FROM notes") == [["a", 111]])
        #expect(try server.query("SELECT count(*) FROM orders") == [[1]])
        #expect(try device.db.connection.query("SELECT id, likes FROM notes") == [["a", 111]])
        // Each of the six operations has one line in the server's log.
        #expect(
            try server.query("SELECT count(*), count(DISTINCT id) FROM fieldpost_operations") == [[6, 6]]
        )
    }

    @Test func `a kill at any statement of a round, then a clean round: everything exactly once`()
        async throws
    {
        for statement in 0..<400 {
            let device = try Device()
            let server = try MockServer(schema: Samples.shop)
            try await prepare(device, server)

            let wasKilled = try await killed(device, server, after: statement)
            try await device.sync(with: server)

            try check(device, server)
            if !wasKilled {
                #expect(statement > 60)
                return
            }
        }
        Issue.record("the round takes more statements than expected")
    }

    @Test func `a kill at any statement after a lost answer: everything exactly once`() async throws {
        for statement in stride(from: 0, to: 400, by: 3) {
            let device = try Device()
            let server = try MockServer(schema: Samples.shop)
            try await prepare(device, server)
            server.loseAnswers()
            try await device.sync(with: server)

            let wasKilled = try await killed(device, server, after: statement)
            try await device.sync(with: server)

            try check(device, server)
            if !wasKilled { return }
        }
        Issue.record("the round takes more statements than expected")
    }

    private func killed(_ device: Device, _ server: MockServer, after statements: Int) async throws -> Bool {
        let countdown = Countdown(statements)
        device.db.connection.willStep = { _ throws(StoreError) in if countdown.isOver() { throw .killed } }
        do {
            try await device.sync(with: server)
            device.db.connection.willStep = nil
            return false
        } catch let error as StoreError where error.code == .killed {
            try device.reopen()
            return true
        }
    }

    private final class Countdown {
        private var left: Int
        init(_ count: Int) { left = count }

        func isOver() -> Bool {
            left -= 1
            return left < 0
        }
    }
}
