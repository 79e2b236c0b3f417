internal import FieldpostCore
internal import FieldpostSQLite

/// Everything that is watched on one store.
final class WatchHub: Sendable {
    /// Names one query: equal keys share one observation.
    struct Key: Hashable {
        var result: ObjectIdentifier
        var kind: String
        var sql: SQL
    }

    private struct State {
        var all: [ObjectIdentifier: any AnyWatchedQuery] = [:]
        var shared: [Key: any AnyWatchedQuery] = [:]
        /// Who is told that the outbox has more to send.
        var listeners: [Int: @Sendable () -> Void] = [:]
        var nextListener = 0
        var isClosed = false
        var outside: OutsideChanges?
    }

    private let state = Locked(State())
    private let runs = Locked(0)
    private let watchOutside: @Sendable () -> OutsideChanges?

    /// - Parameter watchOutside: begins to look for other processes' writes; kept while something is watched.
    init(watchOutside: @escaping @Sendable () -> OutsideChanges?) { self.watchOutside = watchOutside }

    /// How many queries have been run for watchers.
    var runCount: Int { runs.withLock { $0 } }

    /// How many observations there are.
    var observationCount: Int { state.withLock { $0.all.count } }

    func countRun() { runs.withLock { $0 += 1 } }

    /// Tells all that are watched what was committed.
    func changed(_ changes: DatabaseChanges) {
        if changes.isEmpty { return }
        for observation in state.withLock({ Array($0.all.values) }) { observation.changed(changes) }
    }

    /// Ends everything.
    func close() {
        let (all, outside) = state.withLock { state in
            defer { (state.all, state.shared, state.listeners, state.outside) = ([:], [:], [:], nil) }
            state.isClosed = true
            return (Array(state.all.values), state.outside)
        }
        outside?.stop()
        for observation in all { observation.close() }
    }

    /// Subscribes to the observation called `key`, which is made where it is missing.
    func subscribe<Element: Sendable>(
        _ key: Key?,
        _ subscriber: WatchSubscriber<Element>,
        isSame: @escaping @Sendable (Element, Element) -> Bool,
        run: @escaping WatchedQuery<Element>.Run
    ) -> WatchLease {
        while true {
            let made: WatchedQuery<Element>? = state.withLock { state in
                if state.isClosed { return nil }
                if let key, let known = state.shared[key] as? WatchedQuery<Element> { return known }
                let new = WatchedQuery(run: run, isSame: isSame) { [weak self] ended in
                    self?.remove(ended, key)
                }
                state.all[ObjectIdentifier(new)] = new
                if let key { state.shared[key] = new }
                return new
            }
            guard let observation = made else {
                subscriber.finish()
                return WatchLease {}
            }
            beginWatchingOutside()
            // One that has just ended is no longer in the table, so the next turn makes a new one.
            guard let number = observation.subscribe(subscriber) else {
                remove(observation, key)
                continue
            }
            return WatchLease { observation.unsubscribe(number) }
        }
    }

    private func remove(_ observation: some AnyWatchedQuery, _ key: Key?) {
        let outside = state.withLock { state in
            state.all[ObjectIdentifier(observation)] = nil
            if let key, state.shared[key] === observation { state.shared[key] = nil }
            return Self.takeUnneeded(&state)
        }
        outside?.stop()
    }

    private static func takeUnneeded(_ state: inout State) -> OutsideChanges? {
        guard state.all.isEmpty, state.listeners.isEmpty else { return nil }
        defer { state.outside = nil }
        return state.outside
    }

    /// Calls `body` whenever the outbox has more to send, until the lease is let go; it must return quickly.
    func listen(_ body: @escaping @Sendable () -> Void) -> WatchLease {
        let number = state.withLock { state in
            state.nextListener += 1
            if !state.isClosed { state.listeners[state.nextListener] = body }
            return state.nextListener
        }
        beginWatchingOutside()
        return WatchLease { [weak self] in
            let outside = self?.state.withLock { state in
                state.listeners[number] = nil
                return Self.takeUnneeded(&state)
            }
            outside?.stop()
        }
    }

    /// Tells who listens that the outbox has more to send.
    func operationsArrived() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener() }
    }

    private func beginWatchingOutside() {
        guard state.withLock({ $0.outside == nil && !$0.isClosed }), let new = watchOutside() else { return }
        let unneeded = state.withLock { state in
            if state.outside != nil || state.isClosed { return OutsideChanges?.some(new) }
            state.outside = new
            return nil
        }
        unneeded?.stop()
    }
}
