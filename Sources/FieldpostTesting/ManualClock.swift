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
    private var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    private var nextSleeper = 0
    private var asked: [Duration] = []

    private struct Sleeper {
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

    /// This clock, its sleeps and its random numbers, to be given to a store.
    public var environment: Environment {
        Environment(
            now: { self.now },
            sleep: { try await self.sleep(for: $0) },
            randomBits: { self.lock.withLock { self.random.next() } }
        )
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
    public func untilSleeping(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = lock.withLock {
                if sleepers.count >= count { return true }
                watchers.append((count, continuation))
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
            sleepers[id] = Sleeper(due: elapsed &+ duration.wholeMilliseconds, continuation: continuation)
            let woken = watchers.filter { $0.count <= sleepers.count }
            watchers.removeAll { $0.count <= sleepers.count }
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
