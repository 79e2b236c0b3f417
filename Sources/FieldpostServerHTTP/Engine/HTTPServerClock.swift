import Glibc

/// Where the server reads time from.
package struct HTTPServerClock: Sendable {
    /// Never goes back; deadlines are measured with it.
    package var now: @Sendable () -> ContinuousClock.Instant
    /// Seconds since 1970, for the `Date` header.
    package var unixTime: @Sendable () -> Int
    /// Waits; throws when cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        unixTime: @escaping @Sendable () -> Int,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.now = now
        self.unixTime = unixTime
        self.sleep = sleep
    }

    /// The machine's clocks.
    package static let system = HTTPServerClock(now: { ContinuousClock.now }, unixTime: { time(nil) })
}
