import FieldpostCore
import Testing

@testable import Fieldpost

/// One test for each line of “What an answer means”.
@Suite struct AnswerTableTests {
    private let now = Timestamp(milliseconds: 784_111_777_000)
    private let ours = ["Fieldpost-Protocol": "1", "Content-Type": "application/json"]

    private func failure(
        _ status: Int,
        _ headers: [String: String]? = nil,
        problem: String? = nil,
        body: String = ""
    ) -> ExchangeFailure? {
        let bytes = problem.map { Problem($0, status: status, detail: "why").bytes() } ?? Array(body.utf8)
        let answer = HTTPAnswer(status: status, headers: headers ?? ours, body: bytes)
        do {
            _ = try AnswerTable.push(answer, now: now)
            return nil
        } catch { return error }
    }

    private func isUnreachable(_ failure: ExchangeFailure?) -> Bool {
        if case .unreachable? = failure { true } else { false }
    }

    @Test func `results are handed on`() throws {
        let id = "0191b2a0-0000-7000-8000-000000000001"
        let body = #"{"results":[{"id":"\#(id)","status":"applied","version":3}],"server_time":5}"#

        let response = try AnswerTable.push(
            HTTPAnswer(status: 200, headers: ours, body: Array(body.utf8)),
            now: now
        )

        #expect(response.results.map(\.id.text) == [id])
        #expect(response.results[0].version == 3)
        #expect(response.calmSeconds == nil)
    }

    @Test(arguments: [408, 425, 429, 502, 503, 504])
    func `the server is struggling, and Retry-After is honoured`(_ status: Int) {
        #expect(failure(status, ["Retry-After": "17"]) == .busy(retryAfterSeconds: 17))
        #expect(failure(status, ours) == .busy(retryAfterSeconds: nil))
        #expect(
            failure(status, ["Retry-After": "soon", "Content-Type": "text/html"])
                == .busy(retryAfterSeconds: nil)
        )
    }

    @Test(arguments: [500, 501, 505, 507, 599])
    func `another 5xx may be the request's fault`(_ status: Int) {
        #expect(failure(status) == .serverError(status))
    }

    @Test(
        arguments: [("7", 7), ("0", 0), ("-3", nil), ("x", nil), ("99999999999", 86_400)] as [(String, Int?)]
    )
    func `a success may ask for calm`(_ header: String, _ expected: Int?) throws {
        var headers = ours
        headers["Backoff"] = header
        let body = Array(#"{"results":[],"server_time":5}"#.utf8)
        let page = Array(#"{"changes":[],"cursor":"c","more":false,"server_time":5}"#.utf8)

        let response = try AnswerTable.push(HTTPAnswer(status: 200, headers: headers, body: body), now: now)
        let pulled = try AnswerTable.pull(HTTPAnswer(status: 200, headers: headers, body: page), now: now)

        #expect(response.calmSeconds == expected)
        #expect(pulled.calmSeconds == expected)
    }

    @Test func `401, and 403 for an expired token, ask for a fresh one`() {
        #expect(failure(401) == .unauthenticated)
        #expect(failure(403, problem: "token-expired") == .unauthenticated)
    }

    @Test func `another 403 pauses`() {
        #expect(failure(403, problem: "not-a-device") == .forbidden("why"))
        #expect(
            failure(403, body: "<html>")
                == .forbidden("the server refuses this credential and gives no reason")
        )
    }

    @Test func `409 says which conflict it is`() {
        #expect(failure(409, problem: "in-progress") == .inProgress)
        #expect(failure(409, problem: "device-reset") == .deviceReset)
        #expect(failure(409, problem: "server-behind") == .serverBehind)
        #expect(failure(409) == .inProgress)
    }

    @Test func `410 asks to start over`() {
        #expect(failure(410, problem: "resync-required") == .resyncRequired)
    }

    @Test func `413 is too large, whoever says so`() {
        #expect(failure(413) == .tooLarge)
        #expect(failure(413, ["Content-Type": "text/html"], body: "<html>nginx</html>") == .tooLarge)
    }

    @Test(arguments: [400, 406, 415, 422, 431])
    func `another 4xx of a Fieldpost server is the request's fault`(_ status: Int) {
        guard case .invalid(let problem) = failure(status, problem: "malformed") else {
            Issue.record("not invalid")
            return
        }
        #expect(problem.code == "malformed")
    }

    @Test(arguments: [404, 405])
    func `no such endpoint is a wrong address`(_ status: Int) {
        for headers in [ours, [:], ["Content-Type": "text/plain"]] {
            guard case .misconfigured = failure(status, headers) else {
                Issue.record("not misconfigured: \(headers)")
                return
            }
        }
        #expect(isUnreachable(failure(status, ["Content-Type": "text/html; charset=utf-8"], body: "<html>")))
    }

    @Test func `a newer protocol asks for a newer app`() {
        #expect(
            failure(200, ["Fieldpost-Protocol": "2"], body: #"{"results":[],"server_time":5}"#)
                == .needsUpgrade
        )
        #expect(failure(426) == .needsUpgrade)
        #expect(failure(400, problem: "protocol-too-new") == .needsUpgrade)
    }

    @Test(arguments: ["2", "0", "-1", "1.1", "yes", ""])
    func `a protocol that this app does not speak asks for a newer app, whatever else is said`(
        _ version: String
    ) {
        for status in [200, 302, 400, 401, 403, 404, 409, 410, 413, 500] {
            #expect(failure(status, ["Fieldpost-Protocol": version]) == .needsUpgrade)
        }
        #expect(failure(503, ["Fieldpost-Protocol": version]) == .busy(retryAfterSeconds: nil))
    }

    @Test(arguments: [301, 302, 303, 307, 308, 304])
    func `a redirect is a portal`(_ status: Int) {
        #expect(isUnreachable(failure(status, ["Location": "http://portal.example/"])))
        #expect(isUnreachable(failure(status, ours)))
    }

    @Test(arguments: [200, 201, 204, 400, 401, 403, 409, 410, 418, 422, 500])
    func `an answer without our header is a portal, whatever its status`(_ status: Int) {
        #expect(isUnreachable(failure(status, ["Content-Type": "text/html"], body: "<html>Welcome</html>")))
    }

    @Test(arguments: [
        "", "{", #"{"results":"#, #"{"results":[],"server_time":5"#, "[]", "null", "<html></html>",
        #"{"results":[{"id":"x","status":"applied"}],"server_time":5}"#,
        #"{"results":[{"id":"0191b2a0-0000-7000-8000-000000000001","status":"fine"}],"server_time":5}"#,
        #"{"results":{},"server_time":5}"#, #"{"results":[]} {"results":[],"server_time":5}"#,
    ])
    func `a malformed or cut answer is the network's failure, never an acknowledgement`(_ body: String) {
        #expect(isUnreachable(failure(200, ours, body: body)))
    }

    @Test(arguments: [201, 202, 204, 206, 100])
    func `a success of another kind means nothing here`(_ status: Int) {
        #expect(isUnreachable(failure(status, ours, body: #"{"results":[],"server_time":5}"#)))
    }

    @Test func `every status has a meaning`() {
        for status in -1...1_000 {
            for headers in [ours, [:], ["Content-Type": "text/html"]] {
                #expect(failure(status, headers) != nil)
            }
        }
    }

    @Test func `a probe is answered by 204 and its own nonce`() {
        func probe(_ status: Int, _ headers: [String: String]) -> Bool {
            AnswerTable.probe(HTTPAnswer(status: status, headers: headers), nonce: "7f")
        }

        #expect(probe(204, ["Fieldpost-Probe": "7f"]))
        #expect(!probe(204, ["Fieldpost-Probe": "7e"]))
        #expect(!probe(204, [:]))
        #expect(!probe(200, ["Fieldpost-Probe": "7f"]))
    }
}
