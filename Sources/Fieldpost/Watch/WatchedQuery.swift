internal import FieldpostSQLite

/// What a commit asks of everything that is watched.
protocol AnyWatchedQuery: AnyObject, Sendable {
    /// Something was committed.
    func changed(_ changes: DatabaseChanges)
    /// The store closes.
    func close()
}

/// A result with what it depends on.
struct Observed<Element: Sendable>: Sendable {
    var element: Element
    /// Equal for equal results.
    var fingerprint: Int
    /// The columns of each table that the query read.
    var reads: [String: Set<String>]
}

/// One query that somebody watches, run once for all who watch the same.
///
/// The rules are ``WatchedQueryState``; this runs the query and hands results on.
final class WatchedQuery<Element: Sendable>: AnyWatchedQuery {
    typealias Run = @Sendable () async throws -> Observed<Element>

    private let state = Locked(WatchedQueryState<Element>())
    private let run: Run
    private let isSame: @Sendable (Element, Element) -> Bool
    private let onEnd: @Sendable (WatchedQuery) -> Void

    init(
        run: @escaping Run,
        isSame: @escaping @Sendable (Element, Element) -> Bool,
        onEnd: @escaping @Sendable (WatchedQuery) -> Void
    ) {
        self.run = run
        self.isSame = isSame
        self.onEnd = onEnd
    }

    /// Adds a subscriber, who gets the latest result at once where there is one.
    ///
    /// - Returns: its number, or `nil` when the observation has ended meanwhile.
    func subscribe(_ subscriber: WatchSubscriber<Element>) -> Int? {
        guard let (number, latest, action) = state.withLock({ $0.subscribed(subscriber) }) else { return nil }
        if let latest { subscriber.deliver(latest) }
        perform(action)
        return number
    }

    func unsubscribe(_ number: Int) {
        if state.withLock({ $0.unsubscribed(number) }) { onEnd(self) }
    }

    func changed(_ changes: DatabaseChanges) { perform(state.withLock { $0.changed(changes) }) }

    func close() {
        for subscriber in state.withLock({ $0.ended() }) { subscriber.finish() }
    }

    private func perform(_ action: WatchedQueryState<Element>.Action) {
        guard action == .run else { return }
        // Unstructured, since one run serves every subscriber and outlives the cancellation of any of them.
        Task { await execute() }
    }

    private func execute() async {
        while true {
            do {
                let observed = try await run()
                let (subscribers, action) = state.withLock { $0.finished(observed, isSame: isSame) }
                for subscriber in subscribers { subscriber.deliver(observed.element) }
                if action != .run { return }
            } catch {
                for subscriber in state.withLock({ $0.ended() }) { subscriber.finish(error) }
                onEnd(self)
                return
            }
        }
    }
}

/// Decides when a watched query runs again, and who is told.
///
/// Pure: it runs nothing and resumes nobody. Callers report what happened and perform what is returned.
struct WatchedQueryState<Element: Sendable> {
    /// What the caller does next.
    enum Action: Equatable {
        /// Run the query and report to ``finished(_:isSame:)``.
        case run
        /// Nothing.
        case wait
    }

    private var subscribers: [Int: WatchSubscriber<Element>] = [:]
    private var nextNumber = 0
    private var latest: Observed<Element>?
    private var isRunning = false
    /// Whether a commit came while the query ran: its result may be older.
    private var isStale = false
    private var hasEnded = false
    /// Who subscribed during a run, and has seen nothing yet.
    private var newcomers: [Int] = []

    /// Somebody watches.
    mutating func subscribed(_ subscriber: WatchSubscriber<Element>) -> (Int, Element?, Action)? {
        if hasEnded { return nil }
        nextNumber += 1
        subscribers[nextNumber] = subscriber
        if isRunning {
            newcomers.append(nextNumber)
            return (nextNumber, nil, .wait)
        }
        if let latest { return (nextNumber, latest.element, .wait) }
        isRunning = true
        return (nextNumber, nil, .run)
    }

    /// Somebody stopped watching; whether it was the last.
    mutating func unsubscribed(_ number: Int) -> Bool {
        guard subscribers.removeValue(forKey: number) != nil, subscribers.isEmpty else { return false }
        hasEnded = true
        return true
    }

    /// Something was committed.
    mutating func changed(_ changes: DatabaseChanges) -> Action {
        if hasEnded { return .wait }
        // Before the first result nobody knows what the query reads.
        guard latest.map({ changes.affect($0.reads) }) ?? true else { return .wait }
        if isRunning {
            isStale = true
            return .wait
        }
        isRunning = true
        return .run
    }

    /// A run ended; who gets its result, and whether to run again.
    mutating func finished(
        _ observed: Observed<Element>,
        isSame: (Element, Element) -> Bool
    ) -> ([WatchSubscriber<Element>], Action) {
        if hasEnded { return ([], .wait) }
        let isNew =
            latest.map { $0.fingerprint != observed.fingerprint || !isSame($0.element, observed.element) }
            ?? true
        latest = observed
        let again = isStale
        isStale = false
        isRunning = again
        let served = isNew ? Array(subscribers.values) : newcomers.compactMap { subscribers[$0] }
        newcomers = []
        return (served, again ? .run : .wait)
    }

    /// It is over; whom to tell.
    mutating func ended() -> [WatchSubscriber<Element>] {
        hasEnded = true
        defer { subscribers = [:] }
        return Array(subscribers.values)
    }
}
