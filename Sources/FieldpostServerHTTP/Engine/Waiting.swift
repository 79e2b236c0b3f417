/// What a connection waits for, which decides how long it may.
///
/// Pure: the time is an argument.
enum Waiting: Equatable {
    typealias Instant = ContinuousClock.Instant

    /// The first byte of a request.
    case request(since: Instant)
    /// The rest of a head.
    case head(since: Instant)
    /// The rest of a body. `since` moves forward by the time in which the handler, not the client, was slow.
    case body(since: Instant, received: Int)
    /// A handler: nobody is late.
    case handler
    /// The client, to take bytes of the answer; `since` is when it last took some.
    case reader(since: Instant)
    /// The client, to close its side after an early answer.
    case goodbye(since: Instant)

    enum Verdict: Equatable {
        case onTime
        /// Tell the client that it was too slow, then close.
        case answerTimeout
        case close
    }

    func verdict(at now: Instant, _ limits: HTTPLimits) -> Verdict {
        guard let deadline = deadline(limits), now >= deadline else { return .onTime }
        switch self {
        case .head, .body: return .answerTimeout
        case .request, .reader, .goodbye, .handler: return .close
        }
    }

    private func deadline(_ limits: HTTPLimits) -> Instant? {
        switch self {
        case .request(let since): since + limits.idleTime
        case .head(let since): since + limits.headTime
        case .body(let since, let received):
            since + limits.bodyGrace + .milliseconds(received * 1_000 / limits.bodyBytesPerSecond)
        case .handler: nil
        case .reader(let since): since + limits.writeStall
        case .goodbye(let since): since + limits.lingerTime
        }
    }
}
