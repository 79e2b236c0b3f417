import Glibc

/// Where the server reads time from.
package struct HTTPServerClock: Sendable {
    /// Never goes back; deadlines are measured with it.
    package var now: @Sendable () -> ContinuousClock.Instant
    /// Seconds since 1970, for the `Date` header.
    package var unixTime: @Sendable () -> Int

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        unixTime: @escaping @Sendable () -> Int
    ) {
        self.now = now
        self.unixTime = unixTime
    }

    /// The machine's clocks.
    package static let system = HTTPServerClock(now: { ContinuousClock.now }, unixTime: { time(nil) })
}
