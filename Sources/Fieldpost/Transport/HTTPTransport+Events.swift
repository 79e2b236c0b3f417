internal import FieldpostCore
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension HTTPTransport {
    /// Without a heartbeat for three times this long, the server is gone.
    private static let silence = Duration.seconds(15)

    /// Listens to `GET /v1/events`, on connections of its own.
    public func events(cursor: String?, _ context: RequestContext) -> ServerEvents? {
        let (probe, nonce) = probeRequest(context)
        var request = request("v1/events", cursor.map { [("cursor", $0)] } ?? [], context)
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        let (events, sleep) = (request, sleep)
        return ServerEvents(bufferingPolicy: .bufferingNewest(16)) { continuation in
            // Unstructured, since a stream has no task that it belongs to: the stream's end cancels it.
            let task = Task {
                let failure = await Self.listen(
                    Loader(stall: Self.silence, patience: 3, sleep: sleep),
                    probe,
                    nonce,
                    events,
                    now: context.now
                ) { continuation.yield($0) }
                continuation.finish(throwing: failure)
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Listens until it ends; why, unless the server ended it.
    private static func listen(
        _ loader: Loader,
        _ probe: URLRequest,
        _ nonce: String,
        _ events: URLRequest,
        now: Timestamp,
        say: @escaping @Sendable (ServerEvent) -> Void
    ) async -> ExchangeFailure? {
        // A session of its own, since a host may have six connections in one, and pushes must not wait for this.
        defer { loader.invalidate() }
        do throws(ExchangeFailure) {
            // Asked first on the same connection: a portal never sees the token. And on Linux a connection's first request
            // keeps a core busy for as long as it is open, the second does not.
            guard AnswerTable.probe(try await loader.load(probe), nonce: nonce) else {
                throw .unreachable("something that is not a Fieldpost server answered")
            }
            let reader = EventReader(now: now, say: say)
            let answer = try await loader.load(events) { answer, bytes throws(ExchangeFailure) in
                try reader.take(answer, bytes)
            }
            // A refusal is read whole, and says why.
            try AnswerTable.events(answer, now: now)
            return nil
        } catch {
            return error
        }
    }
}

/// Turns the bytes of an answer into events.
private final class EventReader: Sendable {
    private let parser = Locked(EventParser())
    private let isOpen = Locked(false)
    private let now: Timestamp
    private let say: @Sendable (ServerEvent) -> Void

    init(now: Timestamp, say: @escaping @Sendable (ServerEvent) -> Void) {
        self.now = now
        self.say = say
    }

    /// Takes in bytes of a good answer; `false` for those of a refusal.
    func take(_ answer: HTTPAnswer, _ bytes: [UInt8]) throws(ExchangeFailure) -> Bool {
        guard answer.status == 200 else { return false }
        try AnswerTable.events(answer, now: now)
        let wasOpen = isOpen.withLock { isOpen in
            defer { isOpen = true }
            return isOpen
        }
        if !wasOpen { say(.opened) }
        var taking = parser.withLock { $0 }
        let items = try taking.take(bytes)
        parser.withLock { $0 = taking }
        for item in items {
            switch item {
            case .event(name: "changed", _): say(.changed)
            case .retry(let milliseconds): say(.retry(milliseconds: milliseconds))
            case .event: break
            }
        }
        return true
    }
}
