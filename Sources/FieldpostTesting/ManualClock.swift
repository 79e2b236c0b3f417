public import Fieldpost
public import FieldpostCore
internal import Foundation

/// A clock that stands still until a test advances it, for stores, engines and transports alike.
///
/// Whatever sleeps on it wakes only when the time it waits for is reached. A test waits for a sleeper with
/// ``untilSleeping(_:)``: nothing polls and nothing really sleeps.
///
///     let clock = ManualClock(seed: 1)
///     var configuration = Store.Configuration()
///     configuration.environment = clock.environment
///     …
///     await clock.untilSleeping()
///     clock.advance(by: .seconds(30))
public final class ManualClock: @unchecked Sendable {
    // Safe because: every access is under the lock.
    private let lock = NSLock()
    private var time: Int64
    /// Time that has passed, however the wall clock was set.
    private var elapsed: Int64 = 0
    private var random: SeededRandom
    private var sleepers: [Int: Sleeper] = [:]
    private var watchers: [Watcher] = []
    private var nextSleeper = 0
    private var asked: [Duration] = []
    /// The network's changes, which a test sends.
    public let connectivity = ManualConnectivity()

    private struct Watcher {
        var isSatisfied: @Sendable (ManualClock) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct Sleeper {
        var duration: Duration
        var due: Int64
        var continuation: CheckedContinuation<Void, any Error>
    }

    /// A clock that shows `time`; `seed` decides every random number of its ``environment``.
    public init(at time: Timestamp = Timestamp(milliseconds: 1_764_460_800_000), seed: UInt64 = 1) {
        self.time = time.milliseconds
        random = SeededRandom(seed: seed)
    }

    /// The time it shows.
    public var now: Timestamp { lock.withLock { Timestamp(milliseconds: time) } }

    /// How long each sleep so far was to last, in the order they began.
    public var sleeps: [Duration] { lock.withLock { asked } }

    /// How many sleep now.
    public var sleeperCount: Int { lock.withLock { sleepers.count } }

    /// This clock, its sleeps, its random numbers and its ``connectivity``, to be given to a store.
    public var environment: Environment {
        var environment = Environment(
            now: { self.now },
            sleep: { try await self.sleep(for: $0) },
            randomBits: { self.lock.withLock { self.random.next() } }
        )
        environment.connectivity = connectivity
        environment.uptime = { self.lock.withLock { self.elapsed } }
        return environment
    }

    /// Lets time pass, and wakes whoever waited for it, the earliest first.
    public func advance(by duration: Duration) {
        let milliseconds = duration.wholeMilliseconds
        let due = lock.withLock {
            time &+= milliseconds
            elapsed &+= milliseconds
            let due = sleepers.filter { $0.value.due <= elapsed }.sorted {
                ($0.value.due, $0.key) < ($1.value.due, $1.key)
            }
            for (id, _) in due { sleepers[id] = nil }
            return due.map(\.value.continuation)
        }
        for sleeper in due { sleeper.resume() }
    }

    /// Sets what the wall clock shows, forward or back.
    ///
    /// Nobody wakes: a person changed the time, none has passed.
    public func set(to time: Timestamp) { lock.withLock { self.time = time.milliseconds } }

    /// Returns once at least `count` sleep.
    public func untilSleeping(_ count: Int = 1) async { await until { $0.sleepers.count >= count } }

    /// Returns once `count` sleeps have begun, whether they are over or not.
    public func untilSlept(_ count: Int) async { await until { $0.asked.count >= count } }

    /// Returns once somebody sleeps whose whole sleep is as long as `isMeant` wants it.
    public func untilSleeping(for isMeant: @escaping @Sendable (Duration) -> Bool) async {
        await until { $0.sleepers.values.contains { isMeant($0.duration) } }
    }

    /// Returns once `isSatisfied`, which is asked under the lock.
    private func until(_ isSatisfied: @escaping @Sendable (ManualClock) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isThere = lock.withLock {
                if isSatisfied(self) { return true }
                watchers.append(Watcher(isSatisfied: isSatisfied, continuation: continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Returns once `duration` has passed on this clock.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func sleep(for duration: Duration) async throws {
        let id = lock.withLock {
            nextSleeper += 1
            return nextSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in begin(id, duration, continuation) }
        } onCancel: {
            lock.withLock { sleepers.removeValue(forKey: id) }?.continuation.resume(
                throwing: CancellationError()
            )
        }
    }

    private func begin(_ id: Int, _ duration: Duration, _ continuation: CheckedContinuation<Void, any Error>)
    {
        // A cancellation that came before this point found nobody to wake.
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        let woken = lock.withLock {
            asked.append(duration)
            let due = elapsed &+ duration.wholeMilliseconds
            sleepers[id] = Sleeper(duration: duration, due: due, continuation: continuation)
            let woken = watchers.filter { $0.isSatisfied(self) }
            watchers.removeAll { $0.isSatisfied(self) }
            return woken
        }
        for watcher in woken { watcher.continuation.resume() }
        // The cancellation may also have come between the question above and the entry in the list.
        if Task.isCancelled {
            lock.withLock { sleepers.removeValue(forKey: id) }?.continuation.resume(
                throwing: CancellationError()
            )
        }
    }
}

extension Duration {
    /// Whole milliseconds, rounded up: a sleep never ends early.
    fileprivate var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
