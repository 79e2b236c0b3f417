import FieldpostCore
import FieldpostSQLite
import Testing

@testable import FieldpostServer

@Suite struct FeedTests {
    @Test func `rows come in the order of their latest change, each once`() throws {
        let shop = try Shop()
        try shop.push(
            shop.note(1),
            shop.note(2),
            shop.note(3),
            shop.operation("notes", 1, .update, ["title": "x"])
        )
        try shop.push(shop.operation("notes", 2, .delete))

        let page = try shop.pull()

        #expect(page.rows == ["3", "1", "-2"])
        #expect(page.changes.map(\.version) == page.changes.map(\.version).sorted())
        #expect(!page.more)
    }

    @Test func `pages follow one another without gap or repetition`() throws {
        let shop = try Shop()
        for row in 1...7 { try shop.push(row % 2 == 0 ? shop.note(Int64(row)) : shop.order(Int64(row))) }
        var rows: [String] = []
        var cursor: String?
        var pages = 0
        repeat {
            let page = try shop.pull(cursor, limit: 2, as: Shop.first)
            #expect(page.changes.count <= 2)
            rows += page.rows
            cursor = page.more ? page.cursor : nil
            pages += 1
        } while cursor != nil

        #expect(rows == ["1", "2", "3", "4", "5", "6", "7"])
        #expect(pages == 4)
    }

    @Test func `a large page is cut by its bytes`() throws {
        let shop = try Shop()
        let text = JSON.string(String(repeating: "x", count: 1 << 20))
        for row in 1...6 { try shop.push(shop.note(Int64(row), ["title": text])) }

        let first = try shop.pull()
        let second = try shop.pull(first.cursor)

        #expect(first.more)
        #expect(first.rows + second.rows == ["1", "2", "3", "4", "5", "6"])
    }

    @Test func `a page that was read to its end is followed by an empty checkpoint`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        let page = try shop.pull()

        let next = try shop.pull(page.cursor)

        #expect(next.changes.isEmpty && !next.more)
        #expect(next.cursor == page.cursor)
    }

    @Test func `a cursor that was tampered with, cut or made up is a resync`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        let cursor = try shop.pull().cursor
        var spoiled = Array(cursor.utf8)
        for index in spoiled.indices {
            let original = spoiled[index]
            spoiled[index] = original == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let text = String(decoding: spoiled, as: UTF8.self)
            // The last character carries padding bits alone in part; whatever it decodes to must not be another cursor.
            if Cursor(text, key: shop.core.signingKey) != Cursor(cursor, key: shop.core.signingKey) {
                try expectResync(shop, text)
            }
            spoiled[index] = original
        }
        for text in [
            "", "0", "null", String(cursor.dropLast()), cursor + cursor, String(repeating: "A", count: 66),
        ] {
            try expectResync(shop, text)
        }
    }

    private func expectResync(_ shop: Shop, _ cursor: String, as credential: Credential = Shop.everywhere)
        throws
    {
        let problem = #expect(throws: Problem.self) { try shop.pull(cursor, as: credential) }
        #expect(problem?.status == 410)
        #expect(problem?.code == "resync-required")
    }

    @Test func `a cursor belongs to scopes and tenant, not to the token`() throws {
        let shop = try Shop()
        try shop.push(shop.order(1))
        let cursor = try shop.pull(as: Shop.first).cursor
        let sameScopes = Credential(tokenID: "another", scopes: .only(["B1"]))
        let otherTenant = Credential(tenant: try TenantName("other"), tokenID: "t", scopes: .only(["B1"]))

        #expect(try shop.pull(cursor, as: sameScopes).changes.isEmpty)
        for credential in [Shop.second, Shop.both, Shop.everywhere, otherTenant] {
            try expectResync(shop, cursor, as: credential)
        }
    }

    @Test func `a cursor of another store is a resync`() throws {
        let cursor = try Shop().pull().cursor
        let shop = try Shop()
        try shop.connection.run("UPDATE fieldpost_epochs SET id = x'0102030405060708'")

        try expectResync(shop, cursor)
    }

    @Test func `after a restore, cursors from the lost time are a resync and older ones go on`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        let backedUp = try shop.pull().cursor
        try shop.connection.execute("SAVEPOINT lost")
        try shop.push(lost: shop.note(2))
        let lost = try shop.page().cursor
        try shop.connection.execute("ROLLBACK TO lost; RELEASE lost")
        try Epoch.begin(shop.connection, random: { shop.random.bytes($0) })
        try shop.push(shop.note(3))

        try expectResync(shop, lost)
        #expect(try shop.pull(backedUp).rows == ["3"])
    }

    @Test func `a page tells the results of this device's operations since the cursor, and of no other's`()
        throws
    {
        let shop = try Shop()
        let before = try shop.pull().cursor
        let results = try shop.push(
            shop.note(1),
            shop.order(2, total: -1),
            shop.operation("notes", 9, .delete)
        )
        try shop.push(shop.note(3), device: Shop.otherDevice)

        let page = try shop.pull(before, device: Shop.device)

        #expect(page.settled.map(\.id) == results.map(\.id))
        #expect(page.settled.map(\.verdict) == results.map(\.verdict))
        #expect(page.settled[0].version == results[0].version)
        #expect(try shop.pull(page.cursor, device: Shop.device).settled.isEmpty)
    }

    @Test func `an echo never comes in an earlier page than its result`() throws {
        let shop = try Shop()
        let operations = (1...5).map { shop.note(Int64($0)) }
        try shop.push(groups: operations.map { [$0] })
        var cursor: String?
        repeat {
            let page = try shop.pull(cursor, limit: 2, device: Shop.device)
            #expect(page.settled.map(\.version) == page.changes.map(\.version))
            cursor = page.more ? page.cursor : nil
        } while cursor != nil
    }

    @Test func `a page of many results is cut where they end`() throws {
        let shop = try Shop()
        let note = shop.note(1)
        let likes = (1...25).map { _ in
            var like = shop.operation("notes", 1, .update)
            like.change.inc = ["likes": 1]
            return like
        }
        let all = [note] + likes
        try shop.push(groups: all.map { [$0] })
        var feed = Feed(shop.core, shop.connection, credential: Shop.everywhere)
        feed.settledPerPage = 10
        var settled: [OperationID] = []
        var rows: [String] = []
        var cursor: String?
        var pages = 0
        repeat {
            let page = try feed.page(cursor: cursor, limit: nil, device: Shop.device, now: shop.now)
            settled += page.settled.map(\.id)
            rows += page.rows
            cursor = page.more ? page.cursor : nil
            pages += 1
        } while cursor != nil

        #expect(pages == 3)
        #expect(settled == all.map(\.id))
        #expect(rows == ["1"])
    }

    @Test func `a rejection that left no row behind is settled by the checkpoint`() throws {
        let shop = try Shop()
        try shop.push(shop.note(1))
        let cursor = try shop.pull().cursor
        try shop.push(shop.order(2, total: -1))

        #expect(
            try shop.pull(cursor, device: Shop.device).settled.map(\.verdict) == [
                "rejected total_not_negative"
            ]
        )
    }
}

extension Shop {
    /// A push inside an open savepoint.
    func push(lost operation: Operation) throws {
        _ = try core.apply(
            PushRequest(groups: [OperationGroup(operations: [operation])]),
            on: connection,
            credential: Shop.everywhere,
            device: nil,
            now: now
        )
    }

    /// A page inside an open savepoint.
    func page() throws -> PullPage {
        try core.page(cursor: nil, on: connection, credential: Shop.everywhere, device: nil, now: now)
    }
}
