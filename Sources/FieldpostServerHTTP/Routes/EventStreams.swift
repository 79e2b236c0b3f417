internal import FieldpostServer

/// The event streams that are open: how many there may be, and when each shows that it is alive.
final class EventStreams: Sendable {
    /// Every stream has its turn once in so many ticks of a second, so that they do not all write at the same instant.
    static let ticksPerHeartbeat: UInt64 = 20
    private static let tick = Duration.seconds(1)

    private struct State {
        var next: UInt64 = 0
        var open: [UInt64: NewsListener] = [:]
        /// Places that are taken, by streams that are open or about to be.
        var taken = 0
        var ticks: UInt64 = 0
        var isTicking = false
    }

    private let limit: Int
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state = Guarded(State())

    init(limit: Int, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        self.limit = limit
        self.sleep = sleep
    }

    /// How many places are taken.
    var count: Int { state.withLock { $0.taken } }

    /// Takes a place, which is free again with the last reference to it; `nil` when all are taken.
    func enter() -> EventPlace? {
        state.withLock { state in
            guard state.taken < limit else { return nil }
            state.taken += 1
            state.next += 1
            return EventPlace(number: state.next, streams: self)
        }
    }

    fileprivate func opened(_ number: UInt64, _ listener: NewsListener) {
        let begins = state.withLock { state in
            state.open[number] = listener
            defer { state.isTicking = true }
            return !state.isTicking
        }
        // Unstructured, since one clock serves all streams; it ends soon after the last of them.
        if begins { Task { await self.keepTicking() } }
    }

    fileprivate func left(_ number: UInt64) {
        state.withLock { state in
            state.open[number] = nil
            state.taken -= 1
        }
    }

    private func keepTicking() async {
        while (try? await sleep(Self.tick)) != nil, beat() {}
    }

    /// Lets those show that they are alive whose turn it is; `false` when nobody is left.
    private func beat() -> Bool {
        let (due, goesOn) = state.withLock { state in
            state.ticks += 1
            let turn = state.ticks % Self.ticksPerHeartbeat
            state.isTicking = !state.open.isEmpty
            return (state.open.filter { $0.key % Self.ticksPerHeartbeat == turn }, state.isTicking)
        }
        for listener in due.values { listener.post(.heartbeat) }
        return goesOn
    }
}

/// One of the places for event streams.
final class EventPlace: Sendable {
    private let number: UInt64
    private let streams: EventStreams
    private let lease = Guarded<NewsLease?>(nil)

    fileprivate init(number: UInt64, streams: EventStreams) {
        self.number = number
        self.streams = streams
    }

    /// Says who sits here.
    func opened(_ listener: NewsListener, _ lease: NewsLease) {
        self.lease.withLock { $0 = lease }
        streams.opened(number, listener)
    }

    deinit { streams.left(number) }
}
