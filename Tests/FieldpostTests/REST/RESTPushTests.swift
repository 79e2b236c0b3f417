import FieldpostCore
import FieldpostTesting
import Testing

@testable import Fieldpost

/// What operations become on their way to a REST server, and what its answers mean for them.
@Suite struct RESTPushTests {
    private typealias Samples = RESTSamples
    private let title: JSONObject = ["title": "A", "done": true, "n": .null]

    // MARK: Requests

    @Test func `an operation becomes one request with its columns renamed and wrapped`() async throws {
        let rig = try RESTRig([Samples.answer("201 Created", Samples.record(7))])

        let results = try await rig.push([Samples.operation(1, .create, "n1", title)]).get()

        #expect(results.map(\.status) == [.applied])
        #expect(results[0].version == 7)
        #expect(results[0].row == ["id": "n1", "title": "A", "done": true, "n": .null])
        let request = rig.server.requests[0]
        #expect(request.hasPrefix("POST /api/notes HTTP/1.1"))
        #expect(request.hasSuffix(#"{"data":{"done":true,"name":"A","source":"app"}}"#))
        #expect(request.lowercased().contains("idempotency-key: \(Samples.id(1).text)"))
        #expect(request.contains("Authorization: Bearer ayu:secret"))
        await rig.server.stop()
    }

    @Test func `the same operation is the same bytes at every retry`() async throws {
        let operation = Samples.operation(1, .update, "n/1", ["title": "B"], base: .version(7))
        let known = RESTKnowledge(lastKnown: { _, _ in ["id": "n/1", "title": "A", "done": true, "n": 3] })
        let lost = RawServer.Reply([], then: .reset)
        let rig = try RESTRig(
            [lost, lost, Samples.answer("200 OK", Samples.record(8, "B"))],
            knowledge: known
        )

        _ = await rig.push([operation])
        _ = await rig.push([operation])
        let results = try await rig.push([operation]).get()

        #expect(results.map(\.status) == [.applied])
        let requests = rig.server.requests
        #expect(requests.count == 3)
        // The network library has its own order of headers.
        #expect(Set(requests.map { $0.split(separator: "\r\n").sorted() }).count == 1)
        #expect(requests[0].hasPrefix("PUT /api/notes/n%2F1 HTTP/1.1"))
        #expect(requests[0].hasSuffix(#"{"data":{"done":true,"id":"n/1","n":3,"name":"B"}}"#))
        #expect(requests[0].contains("If-Match: \"7\""))
        await rig.server.stop()
    }

    @Test func `an edit on an edit of the same transaction names the version that the first one got`()
        async throws
    {
        let rig = try RESTRig([
            Samples.answer("201 Created", Samples.record(7)),
            Samples.answer("200 OK", Samples.record(8, "B")),
        ])
        let create = Samples.operation(1, .create, "n1", title)
        let update = Samples.operation(
            2,
            .update,
            "n1",
            ["title": "B"],
            base: .after(create.id),
            after: [create.id]
        )

        let results = try await rig.push([create, update]).get()

        #expect(results.map(\.version) == [7, 8])
        #expect(rig.server.requests[1].contains("If-Match: \"7\""))
        await rig.server.stop()
    }

    @Test func `a row is written once in a push, so that a replay can be told from another's edit`()
        async throws
    {
        let rig = try RESTRig([Samples.answer("201 Created", Samples.record(7))])
        let create = Samples.operation(1, .create, "n1", title)
        let update = Samples.operation(2, .update, "n1", ["title": "B"], base: .after(create.id))

        let results = try await rig.push([create], [update]).get()

        #expect(results.map(\.id) == [create.id])
        #expect(rig.server.requests.count == 1)
        await rig.server.stop()
    }

    @Test func `without the version that guards a write, the record is looked at first`() async throws {
        let rig = try RESTRig([
            Samples.answer("200 OK", Samples.record(9)), Samples.answer("200 OK", Samples.record(10, "B")),
        ])

        let results = try await rig.push([
            Samples.operation(2, .update, "n1", ["title": "B"], base: .after(Samples.id(1)))
        ]).get()

        #expect(results.map(\.version) == [10])
        #expect(rig.lines.map { $0.prefix(3) } == ["GET", "PUT"])
        #expect(rig.server.requests[1].contains("If-Match: \"9\""))
        await rig.server.stop()
    }

    // MARK: Order and groups

    @Test func `the first network failure ends the push with what was settled so far`() async throws {
        let rig = try RESTRig([Samples.answer("201 Created", Samples.record(7)), .init([], then: .reset)])

        let results = try await rig.push(
            [Samples.operation(1, .create, "n1", title)],
            [Samples.operation(2, .create, "n2", title)],
            [Samples.operation(3, .create, "n3", title)]
        ).get()

        #expect(results.map(\.id) == [Samples.id(1)])
        #expect(rig.server.requests.count == 2)
        await rig.server.stop()
    }

    @Test func `after a refusal the rest of the transaction is not sent, and what was done is said`()
        async throws
    {
        let rig = try RESTRig([
            Samples.answer("201 Created", Samples.record(7)),
            Samples.answer("422 Unprocessable", #"{"code":"too_short","message":"the name is too short"}"#),
        ])

        let results = try await rig.push(
            (1...3).map { Samples.operation($0, .create, "n\($0)", title) }
        ).get()

        #expect(results.map(\.status) == [.applied, .rejected, .rejected])
        #expect(results.map(\.code) == ["applied_alone", "too_short", "group"])
        #expect(results[1].message == "the name is too short")
        #expect(results[2].by == Samples.id(2))
        #expect(rig.server.requests.count == 2)
        await rig.server.stop()
    }

    @Test func `what depends on a refused operation is not sent, and the rest goes on`() async throws {
        let rig = try RESTRig([
            Samples.answer("400 Bad Request", "{}"), Samples.answer("201 Created", Samples.record(7)),
        ])

        let results = try await rig.push(
            [Samples.operation(1, .create, "n1", title)],
            [Samples.operation(2, .create, "n2", title, after: [Samples.id(1)])],
            [Samples.operation(3, .create, "n3", title)]
        ).get()

        #expect(results.map(\.id) == [Samples.id(1), Samples.id(3)])
        #expect(results.map(\.status) == [.rejected, .applied])
        await rig.server.stop()
    }

    // MARK: Replays and conflicts

    @Test func `a refused precondition on a record that shows what was sent is a replay`() async throws {
        let existing = #"{"details":{"existing":{"id":"n1","name":"A","done":true,"version":9}}}"#
        let rig = try RESTRig(
            schema: Samples.schema(.compareAndSet),
            [Samples.answer("412 Precondition Failed", existing)]
        )

        let results = try await rig.push([Samples.operation(1, .create, "n1", title)]).get()

        #expect(results.map(\.status) == [.applied])
        #expect(results[0].version == 9)
        await rig.server.stop()
    }

    @Test func `a replay is recognised through a later edit of the same transaction`() async throws {
        let existing = #"{"details":{"existing":{"id":"n1","name":"B","done":true,"version":9}}}"#
        let rig = try RESTRig(
            schema: Samples.schema(.compareAndSet),
            [
                Samples.answer("412 Precondition Failed", existing),
                Samples.answer("412 Precondition Failed", existing),
            ]
        )
        let create = Samples.operation(1, .create, "n1", title)

        let results = try await rig.push([
            create, Samples.operation(2, .update, "n1", ["title": "B"], base: .after(create.id)),
        ]).get()

        #expect(results.map(\.status) == [.applied, .applied])
        await rig.server.stop()
    }

    @Test func `another's edit is a conflict under compare-and-set, with the server's row`() async throws {
        let existing = #"{"details":{"existing":{"id":"n1","name":"X","done":true,"version":9}}}"#
        let rig = try RESTRig(
            schema: Samples.schema(.compareAndSet),
            [Samples.answer("412 Precondition Failed", existing)]
        )

        let results = try await rig.push([
            Samples.operation(1, .update, "n1", ["title": "B"], base: .version(7))
        ]).get()

        #expect(results.map(\.status) == [.conflict])
        #expect(results[0].row?["title"] == "X")
        #expect(results[0].version == 9)
        await rig.server.stop()
    }

    @Test func `where the last write wins, the edit goes again on the record as it is`() async throws {
        let existing = #"{"details":{"existing":{"id":"n1","name":"X","done":false,"version":9}}}"#
        let rig = try RESTRig([
            Samples.answer("412 Precondition Failed", existing),
            Samples.answer("200 OK", Samples.record(10, "B")),
        ])

        let results = try await rig.push([
            Samples.operation(1, .update, "n1", ["title": "B"], base: .version(7))
        ]).get()

        #expect(results.map(\.version) == [10])
        let second = rig.server.requests[1]
        #expect(second.contains("If-Match: \"9\""))
        // The columns that were not touched are the server's.
        #expect(second.hasSuffix(#"{"data":{"done":false,"id":"n1","n":null,"name":"B"}}"#))
        await rig.server.stop()
    }

    @Test func `an edit of a record that is gone is a conflict without a row, newer than its base`()
        async throws
    {
        let rig = try RESTRig([Samples.answer("404 Not Found", "{}")])

        let results = try await rig.push([
            Samples.operation(1, .update, "n1", ["title": "B"], base: .version(7))
        ]).get()

        #expect(results.map(\.status) == [.conflict])
        #expect(results[0].row == nil)
        #expect(results[0].version == 8)
        await rig.server.stop()
    }

    @Test func `a deletion of what is gone is done`() async throws {
        let rig = try RESTRig([Samples.answer("404 Not Found", "{}")])
        let results = try await rig.push([Samples.operation(1, .delete, base: .version(7))]).get()
        #expect(results.map(\.status) == [.applied])
        await rig.server.stop()
    }

    @Test func `a record that changes at every try has the edit wait`() async throws {
        let replies = (9...11).map {
            Samples.answer(
                "412 Precondition Failed",
                #"{"details":{"existing":{"id":"n1","name":"X","version":\#($0)}}}"#
            )
        }
        let rig = try RESTRig(replies)

        let results = try await rig.push([
            Samples.operation(1, .update, "n1", ["title": "B"], base: .version(7))
        ]).get()

        #expect(results.map(\.status) == [.retry])
        #expect(results.map(\.code) == ["contended"])
        #expect(rig.server.requests.count == 3)
        await rig.server.stop()
    }

    // MARK: The table of answers

    @Test(arguments: [
        ("400 Bad", OperationResult.Status.rejected), ("403 Forbidden", .rejected),
        ("413 Too Large", .rejected),
        ("422 Unprocessable", .rejected), ("500 Error", .retry), ("507 Full", .retry),
    ])
    func `a status about one operation is its result`(status: String, result: OperationResult.Status)
        async throws
    {
        let rig = try RESTRig([Samples.answer(status, "{}")])
        let results = try await rig.push([Samples.operation(1, .create, "n1", title)]).get()
        #expect(results.map(\.status) == [result])
        await rig.server.stop()
    }

    @Test(arguments: [
        ("408 Timeout", ExchangeFailure.busy(retryAfterSeconds: 7)),
        ("425 Early", .busy(retryAfterSeconds: 7)),
        ("429 Many", .busy(retryAfterSeconds: 7)), ("502 Bad", .busy(retryAfterSeconds: 7)),
        ("503 Busy", .busy(retryAfterSeconds: 7)), ("504 Timeout", .busy(retryAfterSeconds: 7)),
        ("401 Unauthorized", .unauthenticated),
        ("404 Not Found", .misconfigured("gone (404); correct the profile's address")),
        ("405 Not Allowed", .misconfigured("gone (405); correct the profile's address")),
        ("307 Redirect", .unreachable("the request was redirected (307): a portal or a wrong address")),
    ])
    func `a status about the server stops the push`(status: String, failure: ExchangeFailure) async throws {
        let headers = [
            "Retry-After: 7", "Location: http://127.0.0.1:1/x", "WWW-Authenticate: Basic realm=\"x\"",
        ]
        let rig = try RESTRig([
            .init(status, headers: headers, body: Array(#"{"message":"gone"}"#.utf8), isOurs: false)
        ])
        #expect(await rig.push([Samples.operation(1, .create, "n1", title)]) == .failure(failure))
        await rig.server.stop()
    }

    @Test(arguments: [#"{"data":{"id":"n1","vers"#, "<html>Please log in</html>", ""])
    func `a success that is not whole proves nothing`(body: String) async throws {
        let rig = try RESTRig([Samples.answer("200 OK", body), Samples.answer("404 Not Found", "{}")])
        guard case .failure(.unreachable) = await rig.push([Samples.operation(1, .create, "n1", title)])
        else {
            Issue.record("the push went through")
            return
        }
        await rig.server.stop()
    }

    @Test func `a 503 for one operation from a server that is well holds up only that one`() async throws {
        let rig = try RESTRig([
            Samples.answer("503 Busy", "{}", "Retry-After: 3"), Samples.answer("200 OK", "{}"),
            Samples.answer("201 Created", Samples.record(7)),
        ]) { $0.health = "/health" }

        let results = try await rig.push(
            [Samples.operation(1, .create, "n1", title)],
            [Samples.operation(2, .create, "n2", title)]
        ).get()

        #expect(results.map(\.status) == [.retry, .applied])
        #expect(results[0].afterMilliseconds == 3_000)
        await rig.server.stop()
    }

    @Test func `a second failure in one push says that it is the server`() async throws {
        let rig = try RESTRig([Samples.answer("500 Error", "{}"), Samples.answer("500 Error", "{}")])

        let results = try await rig.push(
            [Samples.operation(1, .create, "n1", title)],
            [Samples.operation(2, .create, "n2", title)],
            [Samples.operation(3, .create, "n3", title)]
        ).get()

        #expect(results.map(\.status) == [.retry, .retry])
        #expect(rig.server.requests.count == 2)
        await rig.server.stop()
    }

    @Test func `a change that the server has no request for is refused`() async throws {
        let rig = try RESTRig([]) { $0.resources["notes"]?.create = nil }
        let results = try await rig.push([Samples.operation(1, .create, "n1", title)]).get()
        #expect(results.map(\.code) == ["read_only"])
        await rig.server.stop()
    }
}
