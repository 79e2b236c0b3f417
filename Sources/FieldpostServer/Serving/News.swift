internal import FieldpostCore
internal import FieldpostSQLite

/// Tells those who listen that a scope of theirs has something new.
///
/// It knows who listens and nothing of how they are reached; what is new they pull.
final class News: Sendable {
    private struct State {
        var next: UInt64 = 0
        /// By the scope they read; those who read all of them under `nil`.
        var byScope: [String?: [UInt64: NewsListener]] = [:]
    }

    private let state = Guarded(State())

    /// Adds a listener, who is gone with the last reference to the lease.
    func add(_ listener: NewsListener) -> NewsLease {
        let scopes: [String?] =
            switch listener.credential.scopes {
            case .all: [nil]
            case .only(let names): Array(names)
            }
        let number = state.withLock { state in
            state.next += 1
            for scope in scopes { state.byScope[scope, default: [:]][state.next] = listener }
            return state.next
        }
        return NewsLease { [weak self] in
            self?.state.withLock { state in
                for scope in scopes {
                    state.byScope[scope]?[number] = nil
                    if state.byScope[scope]?.isEmpty == true { state.byScope[scope] = nil }
                }
            }
        }
    }

    /// Tells all who read one of `scopes`, but for the device that made the change.
    func publish(_ scopes: Set<String>, by device: Device?) {
        if scopes.isEmpty { return }
        let told = state.withLock { state in
            // A global row is read by everybody.
            if scopes.contains("") { return state.byScope.values.flatMap(\.values) }
            return ([nil] + scopes.map(Optional.some)).flatMap {
                state.byScope[$0].map { Array($0.values) } ?? []
            }
        }
        for listener in told where device == nil || listener.device != device?.id { listener.post(.changed) }
    }
}

/// Keeps a listener known; letting it go ends that.
package final class NewsLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}

/// Somebody who waits for news; messages that are not taken yet are kept once.
package final class NewsListener: Sendable {
    /// What it is told.
    package enum Message: Sendable {
        /// Something in its scopes is new.
        case changed
        /// Nothing; it is time to show that the line is alive.
        case heartbeat
    }

    private struct State {
        var hasChanged = false
        var isDue = false
        var waiter: CheckedContinuation<Message?, Never>?

        mutating func take() -> Message? {
            if hasChanged {
                // A change shows as well that the line is alive.
                (hasChanged, isDue) = (false, false)
                return .changed
            }
            defer { isDue = false }
            return isDue ? .heartbeat : nil
        }
    }

    package let credential: Credential
    let device: String?
    private let state = Guarded(State())

    init(_ credential: Credential, device: Device?) {
        self.credential = credential
        self.device = device?.id
    }

    /// Tells it something.
    package func post(_ message: Message) {
        let (waiter, message) = state.withLock { state in
            switch message {
            case .changed: state.hasChanged = true
            case .heartbeat: state.isDue = true
            }
            guard let waiter = state.waiter else {
                return (CheckedContinuation<Message?, Never>?.none, Message?.none)
            }
            state.waiter = nil
            return (waiter, state.take())
        }
        waiter?.resume(returning: message)
    }

    /// The next message, for one task at a time; `nil` once cancelled.
    package func next() async -> Message? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (message, isOver) = state.withLock { state -> (Message?, Bool) in
                    if Task.isCancelled { return (nil, true) }
                    if let message = state.take() { return (message, true) }
                    state.waiter = continuation
                    return (nil, false)
                }
                if isOver { continuation.resume(returning: message) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(returning: nil)
        }
    }
}

extension Feed {
    /// The version that the next change will be above.
    static func version(_ connection: Connection) throws -> Int64 {
        try connection.scalar("SELECT version FROM fieldpost_sequence")?.integer ?? 0
    }

    /// The scopes in which something is newer than `version`; `""` for global rows.
    static func scopes(_ connection: Connection, changedSince version: Int64) throws -> Set<String> {
        let rows = try connection.query(
            "SELECT DISTINCT scope FROM fieldpost_feed WHERE version > ?",
            .integer(version)
        )
        return Set(rows.compactMap { $0[0].text })
    }

    /// Whether the credential would get something with this cursor; a cursor that counts no more gets that told.
    func hasNews(since cursor: String?) throws -> Bool {
        guard let cursor, let version = core.version(of: cursor) else { return true }
        guard case .only(let scopes) = credential.scopes else {
            return try connection.scalar(
                "SELECT 1 FROM fieldpost_feed WHERE version > ? LIMIT 1",
                .integer(version)
            ) != nil
        }
        return try ([""] + scopes).contains { scope in
            try connection.scalar(
                "SELECT 1 FROM fieldpost_feed WHERE scope = ? AND version > ? LIMIT 1",
                .text(scope),
                .integer(version)
            ) != nil
        }
    }
}
