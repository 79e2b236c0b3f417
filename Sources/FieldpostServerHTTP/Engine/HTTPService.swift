/// What an ``HTTPServer`` serves.
package protocol HTTPService: Sendable {
    /// Decides from the head what to do with the body.
    ///
    /// Called on the loop's thread, which serves every other connection too: it must not block.
    func plan(_ head: HTTPRequestHead) -> BodyPlan

    /// Answers one request.
    ///
    /// Starts on the loop's thread (see ``HTTPServer/HandlerStart``), so that an answer that needs no waiting costs no
    /// thread hop: whatever blocks, as SQL or compression, must move elsewhere first. The task is cancelled when the client
    /// leaves; the answer then goes nowhere.
    func handle(_ request: HTTPRequest) async -> HTTPResponse

    /// The answer to what never became a request: a malformed head, a body too large or too slow.
    func refusal(status: Int, reason: String) -> HTTPResponse
}

extension HTTPService {
    package func refusal(status: Int, reason: String) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: [("Content-Type", "text/plain; charset=utf-8")],
            body: .bytes(Array("\(reason)\n".utf8))
        )
    }
}
