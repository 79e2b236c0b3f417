internal import FieldpostCore
internal import FieldpostServer

extension Routes {
    /// What clients wait, about, before they come again.
    private static let retryMilliseconds = 5_000
    /// When someone who found no place may ask again: long enough that the place of one who is gone is free by then.
    private static let fullSeconds = 60

    /// Opens a stream of events.
    ///
    /// The token is looked at again before anything is said, so that a revoked one ends its stream at once or with the
    /// next heartbeat.
    func events(_ head: HTTPRequestHead, _ token: String, _ credential: Credential, _ context: RequestContext)
        async throws -> HTTPResponse
    {
        guard let place = streams.enter() else {
            throw Problem(
                "too-many-streams",
                status: 503,
                detail: "As many event streams are open as this server may have.",
                retryAfterSeconds: Routes.fullSeconds
            )
        }
        let (listener, lease) = try await server.listen(
            credential,
            device: context.device,
            cursor: Query(head.query)["cursor"]
        )
        place.opened(listener, lease)
        let answer = Answer(headers: [("X-Accel-Buffering", "no")], contentType: "text/event-stream")
        var response = finish(context, answer, compress: false)
        response.headers.append(("Content-Type", answer.contentType))
        let server = server
        response.body = .stream(.endless) { writer in
            // The place is held by this closure, and so for as long as the answer is, also when it is never sent.
            defer { withExtendedLifetime(place) {} }
            try await writer.write("retry: \(Routes.retryMilliseconds)\n\n")
            while let message = await listener.next() {
                guard try await server.authenticate(token) == credential else { return }
                switch message {
                case .changed: try await writer.write("event: changed\ndata: {}\n\n")
                case .heartbeat: try await writer.write(":\n\n")
                }
            }
        }
        return response
    }
}
