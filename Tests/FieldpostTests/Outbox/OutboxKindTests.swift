import FieldpostCore
import FieldpostSQLite
import FieldpostTesting
import Testing

@testable import Fieldpost

/// Random lives of a few rows, for each kind of outbox: created, edited, deleted, created again, by transactions of several
/// statements and by a program that knows nothing of Fieldpost, sent over a network that loses requests and answers, and
/// killed at any statement.
@Suite struct OutboxKindTests {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case operations, coalesced, state
        var testDescription: String { rawValue }
    }

    static func schema(_ kind: Kind) -> Schema {
        func outbox(_ table: Table) -> Table {
            switch kind {
            case .operations: table
            case .coalesced: table.coalesced()
            case .state: table.outbox(.state)
            }
        }
        return Schema(version: 1) {
            outbox(
                Table("folders") {
                    Column("id", .text).primaryKey()
                    Column("name", .text)
                }
            )
            outbox(
                Table("notes") {
                    Column("id", .text).primaryKey()
                    Column("title", .text)
                    Column("likes", .integer).defaults(to: 0)
                    Column("tags", .set).defaults(to: [])
                    Column("folder", .text).optional().references("folders")
                }
                .rule("likes", .counter).rule("tags", .set)
            )
            Table("visits") {
                Column("id", .text).primaryKey()
                Column("place", .text)
            }
        }
    }

    /// One device's life.
    private struct Life {
        let device: Device
        let server: MockServer
        var random: SeededRandom
        var turn = 0
        var kills = 0

        init(_ kind: Kind, seed: UInt64) throws {
            device = try Device(OutboxKindTests.schema(kind))
            server = try MockServer(schema: OutboxKindTests.schema(kind))
            random = SeededRandom(seed: seed)
        }

        private mutating func statement() -> String {
            turn += 1
            let (note, folder) = ("n\(random.below(3))", "f\(random.below(2))")
            switch random.below(12) {
            case 0, 1: return "INSERT OR IGNORE INTO notes (id, title) VALUES ('\(note)', 't\(turn)')"
            case 2:
                return
                    "INSERT OR REPLACE INTO notes (id, title, likes) VALUES ('\(note)', 't\(turn)', \(turn))"
            case 3, 4: return "UPDATE notes SET title = 't\(random.below(3))' WHERE id = '\(note)'"
            case 5: return "UPDATE notes SET likes = likes + \(random.below(5)) - 2 WHERE id = '\(note)'"
            case 6: return "UPDATE notes SET tags = '[\(random.below(3))]' WHERE id = '\(note)'"
            case 7: return "DELETE FROM notes WHERE id = '\(note)'"
            case 8: return "INSERT OR IGNORE INTO folders (id, name) VALUES ('\(folder)', 'n\(turn)')"
            case 9: return "UPDATE folders SET name = 'n\(turn)' WHERE id = '\(folder)'"
            case 10:
                return
                    "UPDATE notes SET folder = (SELECT id FROM folders WHERE id = '\(folder)') WHERE id = '\(note)'"
            default: return "INSERT INTO visits (id, place) VALUES ('v\(turn)', 'x')"
            }
        }

        private mutating func deleteFolder() -> [String] {
            let folder = "f\(random.below(2))"
            return [
                "UPDATE notes SET folder = NULL WHERE folder = '\(folder)'",
                "DELETE FROM folders WHERE id = '\(folder)'",
            ]
        }

        mutating func step() async throws {
            switch random.below(10) {
            case 0..<6:
                var statements = random.chance(12) ? deleteFolder() : []
                for _ in 0...random.below(3) { statements.append(statement()) }
                try mayDie { device in
                    try device.db.write(at: device.now) {
                        for statement in statements { try device.db.connection.execute(statement) }
                    }
                }
            case 6: try device.db.connection.execute(statement())
            default: try await exchange()
            }
            device.advance(1)
        }

        private mutating func mayDie(_ body: (Device) throws -> Void) throws {
            guard random.chance(15) else { return try body(device) }
            let device = device
            if try device.killed(after: random.below(40), { try body(device) }) { kills += 1 }
        }

        /// Sends one request, which may get lost, as may its answer.
        private mutating func exchange() async throws {
            var batch: PushBatch?
            let limit = random.below(5) + 1
            try mayDie { batch = try $0.plan(operations: limit) }
            guard let batch, random.chance(80) else { return }
            let context = RequestContext(
                token: MockServer.everyScope,
                device: try device.db.deviceID(),
                schema: 1,
                now: device.now
            )
            let response = try await server.push(OutgoingPush(body: batch.body), context)
            let results = Dictionary(uniqueKeysWithValues: response.results.map { ($0.id, $0) })
            for result in response.results where result.status != .applied {
                Issue.record("nothing here can be refused: \(result)")
            }
            guard random.chance(70) else { return }
            try mayDie { try $0.settle(batch) { results[$0.id] } }
        }

        /// At most one unsent entry a row, but where a transaction or a reference keeps two apart.
        func unsentOfOneRow() throws -> Int64 {
            try device.scalar(
                """
                SELECT max(n) FROM (SELECT count(*) AS n FROM fieldpost_outbox
                WHERE seq > (SELECT sent_upto FROM fieldpost_lease) AND tbl = 'notes' GROUP BY row)
                """
            )?.integer ?? 0
        }

        func rows(_ table: String, _ query: (String) throws -> [[Value]]) rethrows -> [[Value]] {
            let columns = OutboxKindTests.schema(.state).table(table)?.columns.map(\.name) ?? []
            return try query("SELECT \(columns.joined(separator: ", ")) FROM \(table) ORDER BY 1")
        }
    }

    @Test(arguments: Kind.allCases, 0..<UInt64(40))
    func `any life ends with equal rows here, on the server and on a second device`(kind: Kind, seed: UInt64)
        async throws
    {
        var life = try Life(kind, seed: seed)
        for _ in 0..<60 { try await life.step() }

        for _ in 0..<20 where try await life.device.sync(with: life.server).pushed.applied > 0 {}

        #expect(try life.device.outboxCount == 0)
        let other = try Device(Self.schema(kind))
        try await other.sync(with: life.server)
        for table in ["folders", "notes", "visits"] {
            let here = try life.rows(table) { try life.device.db.connection.query($0) }
            #expect(try life.rows(table) { try life.server.query($0) } == here)
            #expect(try life.rows(table) { try other.db.connection.query($0) } == here)
        }
    }

    @Test(arguments: 0..<UInt64(20))
    func `state: a long time without a network leaves one entry a row`(seed: UInt64) async throws {
        var life = try Life(.state, seed: seed)
        for _ in 0..<60 {
            _ = life.random.next()
            try life.device.write(
                "INSERT OR IGNORE INTO notes (id, title) VALUES ('n\(life.random.below(3))', 'x')"
            )
            try life.device.write("UPDATE notes SET likes = likes + 1 WHERE id = 'n\(life.random.below(3))'")
            if life.random.chance(20) {
                try life.device.write("DELETE FROM notes WHERE id = 'n\(life.random.below(3))'")
            }
            #expect(try life.unsentOfOneRow() <= 1)
        }
    }
}
