package import FieldpostCore
internal import FieldpostSQLite

extension Problem {
    /// What a client is told of any failure: what it can do about it, and nothing of the server's insides.
    ///
    /// A store that is busy, full or away is `503`: the same request may succeed later. Anything else is `500`, so that a
    /// client counts it against the operations it sent and does not repeat one poisonous request for ever.
    package init(failure: any Error) {
        switch failure {
        case let problem as Problem: self = problem
        case let error as StoreError: self = Problem(store: error)
        case is ServerError, is CancellationError: self = .unavailable(after: 5)
        default: self = .internalFailure
        }
    }

    private init(store error: StoreError) {
        switch error.code {
        case .busy, .interrupted: self = .unavailable(after: 1)
        case .full, .ioError, .readOnly, .cantOpen, .accessDenied, .missing, .outOfMemory, .closed, .corrupt,
            .notADatabase,
            .newerFormat, .killed:
            self = .unavailable(after: 10)
        default: self = .internalFailure
        }
    }

    private static func unavailable(after seconds: Int) -> Problem {
        Problem(
            "store-unavailable",
            status: 503,
            detail: "The server cannot reach its store now; try again later.",
            retryAfterSeconds: seconds
        )
    }

    private static let internalFailure = Problem(
        "internal",
        status: 500,
        detail: "The server failed on this request; its log says why."
    )
}
