public import FieldpostCore
internal import Foundation

/// Everything from outside that decisions depend on: the clock, waiting and chance.
///
/// The only place in the library that reads the real ones; a test passes its own.
public struct Environment: Sendable {
    /// The wall clock, which may jump.
    public var now: @Sendable () -> Timestamp
    /// Waits; throws when cancelled.
    public var sleep: @Sendable (Duration) async throws -> Void
    /// A number from the whole range of 64 bits.
    public var randomBits: @Sendable () -> UInt64
    /// What says when the network has changed.
    public var connectivity: any ConnectivitySource = ManualConnectivity()
    /// Milliseconds since some instant, asleep or awake, however the wall clock is set.
    package var uptime: @Sendable () -> Int64 = { Uptime.milliseconds() }
    /// Names this process and one use of it, for ``isOwnerAlive``.
    var ownerName: @Sendable () -> String = { OwnerName.next() }
    /// Whether the process of a name that ``ownerName`` gave, here or elsewhere on this machine, may still run.
    var isOwnerAlive: @Sendable (String) -> Bool = { OwnerName.isAlive($0) }

    /// An environment of the given parts, which hears nothing of the network.
    public init(
        now: @escaping @Sendable () -> Timestamp,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        randomBits: @escaping @Sendable () -> UInt64
    ) {
        self.now = now
        self.sleep = sleep
        self.randomBits = randomBits
    }

    /// The machine's clock, the system's random numbers and its hints of connectivity.
    public static let live: Environment = {
        var environment = clocks
        environment.connectivity = SystemConnectivity()
        return environment
    }()

    private static let clocks = Environment(
        now: { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded())) },
        sleep: { try await Task.sleep(for: $0) },
        randomBits: {
            var system = SystemRandomNumberGenerator()
            return system.next()
        }
    )

    /// A generator over ``randomBits``.
    package var random: EnvironmentRandom { EnvironmentRandom(bits: randomBits) }
}

/// Draws from an environment.
package struct EnvironmentRandom: RandomNumberGenerator {
    let bits: @Sendable () -> UInt64

    package mutating func next() -> UInt64 { bits() }
}

private enum Uptime {
    private static let start = ContinuousClock.now

    static func milliseconds() -> Int64 {
        let (seconds, attoseconds) = start.duration(to: .now).components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}

/// Names for those who send: the process, and a number within it.
enum OwnerName {
    static func next() -> String {
        var system = SystemRandomNumberGenerator()
        return "\(ProcessInfo.processInfo.processIdentifier)/\(String(system.next() as UInt64, radix: 16))"
    }

    /// Whether the process still runs; one that may not be asked about counts as running.
    static func isAlive(_ name: String) -> Bool {
        guard let process = name.split(separator: "/").first.flatMap({ Int32($0) }), process > 0 else {
            return true
        }
        return kill(process, 0) == 0 || errno != ESRCH
    }
}
