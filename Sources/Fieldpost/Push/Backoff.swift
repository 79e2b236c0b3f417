/// How long to wait after failures: exponential, capped, and spread so that devices do not return together.
public struct Backoff: Equatable, Sendable {
    /// How a delay is spread.
    public enum Jitter: Sendable {
        /// Anywhere from nothing to the whole delay.
        case full
        /// Anywhere from half to the whole delay.
        case equal
        /// The whole delay.
        case none
    }

    /// The delay before the first retry, in milliseconds.
    public var baseMilliseconds: Int64 = 1_000
    /// The longest delay, in milliseconds.
    public var capMilliseconds: Int64 = 300_000
    /// How it is spread.
    public var jitter = Jitter.full

    /// One second, doubled up to five minutes, full jitter.
    public init() {}

    /// The delay after `failures` failures in a row, from 1.
    public func delay(failures: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let doublings = max(1, min(failures, 41)) - 1
        let (product, overflow) = baseMilliseconds.multipliedReportingOverflow(by: 1 << Int64(doublings))
        let limit = max(0, overflow ? capMilliseconds : min(capMilliseconds, product))
        switch jitter {
        case .full: return Int64.random(in: 0...limit, using: &random)
        case .equal: return Int64.random(in: (limit / 2)...limit, using: &random)
        case .none: return limit
        }
    }
}
