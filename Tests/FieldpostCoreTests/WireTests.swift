import FieldpostCore
import Testing

@Suite struct WireTests {
    static let push =
        #"{"groups":[{"ops":[{"id":"0191d3a0-0000-7000-8000-000000000001","table":"notes","row":"n","action":"update","#
        + #""set":{"title":"T"},"inc":{"likes":1},"add":{"tags":["a"]},"remove":{"tags":["b"]},"base":812,"seq":41,"schema":3,"at":1764460800000},"#
        + #"{"id":"0191d3a0-0000-7000-8000-000000000002","table":"notes","row":"n","action":"delete","#
        + #""base":{"after":"0191d3a0-0000-7000-8000-000000000001"},"after":["0191d3a0-0000-7000-8000-000000000001"],"seq":42,"schema":3,"at":1764460800001}]}]}"#

    @Test func `a push is read and written in the same bytes`() throws {
        let request = try PushRequest(bytes: Array(Self.push.utf8))

        #expect(String(decoding: request.bytes(), as: UTF8.self) == Self.push)
        #expect(request.groups[0].operations[1].base == .after(request.groups[0].operations[0].id))
    }

    @Test func `the fingerprint ignores where and when, and nothing else`() throws {
        let operation = try PushRequest(bytes: Array(Self.push.utf8)).groups[0].operations[0]
        var moved = operation
        (moved.seq, moved.at) = (99, Timestamp(milliseconds: 1))
        var changed = operation
        changed.change.set["title"] = "U"

        #expect(moved.canonicalBytes == operation.canonicalBytes)
        #expect(changed.canonicalBytes != operation.canonicalBytes)
    }

    @Test(arguments: [
        "[]", "{}", #"{"groups":[{"ops":[]}]}"#, #"{"groups":[{"ops":[{"id":"x"}]}]}"#,
        #"{"groups":[{"ops":[{"id":"0191d3a0-0000-7000-8000-000000000001","table":"t","row":"r","action":"upsert"}]}]}"#,
        #"{"groups":[{"ops":[{"id":"0191d3a0-0000-7000-8000-000000000001","table":"t","row":"r","action":"update","set":[]}]}]}"#,
        #"{"groups":[{"ops":[{"id":"0191d3a0-0000-7000-8000-000000000001","table":"t","row":"r","action":"update","base":"x"}]}]}"#,
    ])
    func `a push that is none names the place`(text: String) {
        #expect(throws: WireError.self) { try PushRequest(bytes: Array(text.utf8)) }
    }

    @Test func `one unreadable change does not spoil its page`() throws {
        let text =
            #"{"changes":[{"table":"t","row":"a","version":1,"set":{"id":"a"}},{"table":"t"},{"table":"t","row":"b","version":2,"deleted":true}],"#
            + #""cursor":"c","more":false,"server_time":5}"#
        let page = try PullPage(bytes: Array(text.utf8))

        #expect(page.changes.map(\.row) == ["a", "b"])
        #expect(page.unreadable.map(\.place) == ["changes[1]"])
        #expect(try PullPage(bytes: page.bytes()).changes == page.changes)
    }

    @Test func `a result says everything about an operation`() throws {
        let text =
            #"{"id":"0191d3a0-0000-7000-8000-000000000001","status":"rejected","code":"total_negative","message":"m","fields":["total_idr"]}"#
        let result = try OperationResult(json: JSON(text: text))

        #expect(JSON.object(result.json).text() == text)
    }

    @Test func `a problem document keeps its type`() {
        let problem = Problem("resync-required", status: 410, detail: "Start again.")
        #expect(Problem(bytes: problem.bytes(), status: 410) == problem)
        #expect(Problem(bytes: Array("<html>".utf8), status: 410) == nil)
    }

    @Test func `ids made later sort later`() {
        var random = SystemRandomNumberGenerator()
        let ids = (0..<100).map {
            UUIDText.version7(at: Timestamp(milliseconds: 1_764_460_800_000 + $0), using: &random)
        }
        #expect(ids == ids.sorted())
        #expect(ids.allSatisfy { OperationID($0) != nil && $0.dropFirst(14).first == "7" })
    }
}
