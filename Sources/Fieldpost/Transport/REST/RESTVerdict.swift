internal import FieldpostCore

/// What one answer means, by a profile's table.
struct RESTVerdict: Equatable {
    var outcome: RESTProfile.Outcome
    /// The error's code, as text.
    var code: String
    /// The error in the server's words.
    var message: String
    /// Where a conflict's answer holds the record.
    var current: String?

    /// Reads `answer` to `step` by the table of `profile`.
    init(_ answer: HTTPAnswer, to step: RESTProfile.Step, _ profile: RESTProfile) {
        let body = answer.status >= 400 ? RESTValues.json(answer) : nil
        let code = RESTValues.text(RESTValues.at(profile.errors.code, in: body))
        let line = (profile.answers + RESTProfile.standardAnswers).first { line in
            line.status.contains(answer.status) && (line.steps.isEmpty || line.steps.contains(step))
                && (line.code == nil || line.code == code)
        }
        outcome = line?.outcome ?? .unreachable
        current = line?.current
        self.code = code ?? "http_\(answer.status)"
        message =
            RESTValues.text(RESTValues.at(profile.errors.message, in: body))
            ?? "the server answered \(answer.status)"
        // A page of a portal is no verdict on anything.
        if answer.headers["content-type"]?.contains("html") ?? false, body == nil, answer.status < 500 {
            outcome = .unreachable
        }
    }

    /// The failure of the whole exchange that this is; `nil` for a verdict on one operation.
    func failure(_ answer: HTTPAnswer, now: Timestamp) -> ExchangeFailure? {
        switch outcome {
        case .busy: .busy(retryAfterSeconds: RetryAfter.seconds(answer.headers["retry-after"], now: now))
        case .unauthenticated: .unauthenticated
        case .forbidden: .forbidden(message)
        case .misconfigured: .misconfigured("\(message) (\(answer.status)); correct the profile's address")
        case .resync: .resyncRequired
        case .unreachable where (300..<400).contains(answer.status):
            .unreachable("the request was redirected (\(answer.status)): a portal or a wrong address")
        case .unreachable: .unreachable("something that is not the server answered (\(answer.status))")
        case .applied, .conflict, .absent, .rejected, .retry, .failed: nil
        }
    }
}
