import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// What is asked of a list, and what its pages mean.
@Suite struct RESTPullTests {
    private typealias Samples = RESTSamples

    private func item(_ id: String, _ version: Int) -> String {
        #"{"id":"\#(id)","name":"\#(id)","version":\#(version)}"#
    }

    private func list(_ items: String..., headers: String...) -> RawServer.Reply {
        .init(
            "200 OK",
            headers: headers + ["Content-Type: application/json"],
            body: Array("{\"data\":[\(items.joined(separator: ","))]}".utf8),
            isOurs: false
        )
    }

    private func failure(_ rig: RESTRig, _ cursor: String?) async -> ExchangeFailure? {
        do throws(ExchangeFailure) {
            _ = try await rig.transport.pull(cursor: cursor, Samples.context())
            return nil
        } catch { return error }
    }

    @Test func `pages are followed by path and query alone, and the cursor moves at the last`() async throws {
        let rig = try RESTRig([
            list(item("n1", 5), item("n2", 6), headers: "Next-Page: http://elsewhere:9/api/notes?token=x"),
            list(#"{"id":"n3","deleted":true,"version":8}"#), list(),
        ])

        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        let second = try await rig.transport.pull(cursor: first.cursor, Samples.context())
        let third = try await rig.transport.pull(cursor: second.cursor, Samples.context())

        #expect(first.more)
        #expect(first.changes.map(\.row) == ["n1", "n2"])
        #expect(first.changes[0].set == ["id": "n1", "title": "n1", "done": .null, "n": .null])
        #expect(!second.more)
        #expect(second.changes.map(\.set) == [nil])
        #expect(third.changes.isEmpty)
        #expect(third.cursor == second.cursor)
        // The third begins behind the cursor, since an older version may have been shown late; never below nothing.
        #expect(
            rig.lines == [
                "GET /api/notes?limit=2&since=0 HTTP/1.1", "GET /api/notes?token=x HTTP/1.1",
                "GET /api/notes?limit=2&since=0 HTTP/1.1",
            ]
        )
        await rig.server.stop()
    }

    @Test func `a pull begins as far behind the cursor as versions may come late`() async throws {
        let rig = try RESTRig([list(item("n1", 500)), list(item("n1", 500))])

        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        _ = try await rig.transport.pull(cursor: first.cursor, Samples.context())

        #expect(rig.lines[1] == "GET /api/notes?limit=2&since=490 HTTP/1.1")
        await rig.server.stop()
    }

    @Test(arguments: [
        (
            RESTProfile.List.Next.link,
            "Link: </api/notes?p=2>; rel=\"next\", </api/notes?p=9>; rel=\"last\"", "{\"data\":[]}"
        ),
        (.field("page.next"), "X-Nothing: 1", #"{"data":[],"page":{"next":"/api/notes?p=2"}}"#),
        (.token(field: "next", parameter: "p"), "X-Nothing: 1", #"{"data":[],"next":2}"#),
    ])
    func `the next page may be named in several ways`(
        next: RESTProfile.List.Next,
        header: String,
        body: String
    ) async throws {
        let rig = try RESTRig([
            .init("200 OK", headers: [header], body: Array(body.utf8), isOurs: false), list(),
        ]) {
            $0.resources["notes"]?.list?.next = next
            $0.resources["notes"]?.list?.query = [:]
        }

        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        let second = try await rig.transport.pull(cursor: first.cursor, Samples.context())

        #expect(first.more)
        #expect(!second.more)
        #expect(rig.lines[1] == "GET /api/notes?p=2 HTTP/1.1")
        await rig.server.stop()
    }

    @Test func `a page that names itself as the next is no page`() async throws {
        let again = "Next-Page: /api/notes?token=x"
        let rig = try RESTRig([list(headers: again), list(headers: again)])
        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        #expect(await failure(rig, first.cursor) == .unreachable("the next page of the list leads nowhere"))
        await rig.server.stop()
    }

    @Test(arguments: [("W/\"700\"", false), ("\"600\"", true), ("\"800\"", true)])
    func `a list that went back, or forward without showing why, is read from the start`(
        etag: String,
        isLost: Bool
    ) async throws {
        let rig = try RESTRig([
            list(item("n1", 650), headers: "ETag: \"700\""), list(headers: "ETag: \(etag)"),
        ]) {
            $0.resources["notes"]?.list?.cursorHeader = "ETag"
        }
        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        #expect(await failure(rig, first.cursor) == (isLost ? .resyncRequired : nil))
        await rig.server.stop()
    }

    @Test func `a version far in the future is not asked with`() async throws {
        let rig = try RESTRig([list(item("n1", 4_102_444_800_000)), list()]) {
            $0.resources["notes"]?.list?.isTime = true
        }

        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        _ = try await rig.transport.pull(cursor: first.cursor, Samples.context())

        #expect(rig.lines[1].contains("since=1795999999990 "))
        await rig.server.stop()
    }

    @Test func `tables are read one after another, and a record that cannot be read stops nothing`()
        async throws
    {
        var tables = RESTSamples.schema().tables
        tables.append(tables[0])
        tables[1].name = "tasks"
        let rig = try RESTRig(
            schema: Schema(version: 1, tables: tables),
            [list(#"{"name":"no key"}"#, item("n1", 5)), list(item("t1", 9))]
        ) {
            $0.resources["tasks"] = $0.resources["notes"]
            $0.resources["tasks"]?.list?.path = "/tasks"
        }

        let first = try await rig.transport.pull(cursor: nil, Samples.context())
        let second = try await rig.transport.pull(cursor: first.cursor, Samples.context())

        #expect(first.changes.map(\.row) == ["n1"])
        #expect(first.unreadable.map(\.place) == ["notes[0]"])
        #expect(first.more)
        #expect(second.changes.map(\.table) == ["tasks"])
        #expect(!second.more)
        await rig.server.stop()
    }

    @Test(arguments: [
        ("410 Gone", ExchangeFailure.resyncRequired), ("401 Unauthorized", .unauthenticated),
        ("503 Busy", .busy(retryAfterSeconds: nil)), ("500 Error", .serverError(500)),
        ("403 Forbidden", .forbidden("the server answered 403")),
        ("404 Not Found", .misconfigured("the server answered 404 (404); correct the profile's address")),
        ("200 OK", .unreachable("the list of notes is not whole JSON with its records")),
    ])
    func `an answer that is no page says why`(status: String, expected: ExchangeFailure) async throws {
        let rig = try RESTRig([Samples.answer(status, "{}")])
        #expect(await failure(rig, nil) == expected)
        await rig.server.stop()
    }

    @Test func `a cursor that is not ours is given up`() async throws {
        let rig = try RESTRig([])
        #expect(await failure(rig, "c1") == .resyncRequired)
        await rig.server.stop()
    }

    @Test(arguments: [("200 OK", "{}", true), ("503 Ill", "{}", false), ("200 OK", "<html>", false)])
    func `the health path decides whether the server is there`(status: String, body: String, isThere: Bool)
        async throws
    {
        let rig = try RESTRig([Samples.answer(status, body)]) { $0.health = "/health" }
        #expect(await rig.transport.probe(Samples.context()) == isThere)
        await rig.server.stop()
    }
}
