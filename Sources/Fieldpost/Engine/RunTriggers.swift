/// Decides when the next run of sync starts, and how it begins.
///
/// Pure: it draws from the generator it is given, and its times are milliseconds of a clock that never goes back. What
/// happens while a run is going on is kept for the one after it.
package struct RunTriggers: Sendable {
    /// What happened.
    package enum Event: Equatable, Sendable {
        /// The app says that there is a reason to sync.
        case asked
        /// The app came to the foreground.
        case foreground
        /// A write left operations in the outbox.
        case wrote
        /// This is what connects the device now.
        case connectivity(ConnectivityHint)
        /// The server says that it has something new.
        case poked
        /// A run ended, and by itself the next one is due after so many milliseconds.
        case ended(nextIn: Int64)
    }

    /// What to do now.
    package enum Decision: Equatable, Sendable {
        /// Run; where the network may be another by now, whatever delay earlier failures have left is forgotten.
        case run(forgettingBackoff: Bool)
        /// Nothing for so many milliseconds, unless something happens.
        case wait(milliseconds: Int64)
    }

    /// How a run begins.
    package enum Opening: Equatable, Sendable {
        case notDue
        /// Ask whether the server itself answers, before anything else is sent.
        case probe
        case run
    }

    /// Writes that follow each other closely go together.
    static let writeMilliseconds: Int64 = 100
    /// A phone's neighbours regain the same Wi-Fi at the same instant; they must not all return in it.
    static let hintMilliseconds: Int64 = 3_000
    /// Everybody who reads a row is told of its change at the same instant.
    static let pokeMilliseconds: Int64 = 250
    /// A busy shop changes something all the time; nobody pulls more often than this for it.
    static let pokeGapMilliseconds: Int64 = 1_000

    /// When to run, unless the delay that failures have left says later.
    private var due: Int64?
    /// When to run and forget that delay.
    private var fresh: Int64?
    /// When to run because nothing else happened.
    private var timer = Int64.max
    private var lastPoke = Int64.min / 2
    private var connectivity = ConnectivityHint()

    package init() {}

    /// Takes in what happened.
    package mutating func note(_ event: Event, at now: Int64, using random: inout some RandomNumberGenerator)
    {
        switch event {
        case .asked: runBy(now)
        case .foreground: fresh = now
        case .wrote: runBy(now + Self.writeMilliseconds)
        case .poked:
            // One that is still to come serves for this one too.
            if lastPoke < now {
                lastPoke = max(
                    now + .random(in: 0...Self.pokeMilliseconds, using: &random),
                    lastPoke + Self.pokeGapMilliseconds
                )
            }
            runBy(lastPoke)
        case .ended(let delay): timer = now + max(0, delay)
        case .connectivity(let hint):
            if hint == connectivity { return }
            connectivity = hint
            // Without a network nothing can go, and a run that waited for one has lost it again.
            guard !hint.kinds.isEmpty else { return fresh = nil }
            fresh = min(fresh ?? .max, now + .random(in: 0...Self.hintMilliseconds, using: &random))
        }
    }

    private mutating func runBy(_ time: Int64) { due = min(due ?? .max, time) }

    /// What to do at `now`; a run that it asks for has begun.
    package mutating func next(at now: Int64) -> Decision {
        let isFresh = fresh.map { $0 <= now } ?? false
        let soonest = min(due ?? .max, timer)
        if isFresh || soonest <= now {
            // A hint's run may still be to come: what it forgets, this one does not.
            if isFresh { fresh = nil }
            due = nil
            timer = .max
            return .run(forgettingBackoff: isFresh)
        }
        return .wait(milliseconds: min(soonest, fresh ?? .max) - now)
    }

    /// How a run begins that is due in `delay` milliseconds by what failures have left.
    ///
    /// - Parameters:
    ///   - isAsked: whether a person waits for it.
    ///   - delay: how long its time is off, after what it forgets is forgotten.
    ///   - wasOffline: whether the last run ended without a network that leads to the server.
    package static func opening(isAsked: Bool, delay: Int64, wasOffline: Bool) -> Opening {
        if isAsked { return .run }
        if delay > 0 { return .notDue }
        // A portal sees no token, and an outage costs one small request at a time.
        return wasOffline ? .probe : .run
    }
}
