package import FieldpostCore
internal import FieldpostCrypto
internal import Foundation

/// Where a server takes its time and its randomness from.
public struct ServerEnvironment: Sendable {
    /// Milliseconds since 1970.
    public var milliseconds: @Sendable () -> Int64
    /// So many bytes that nobody can guess.
    public var random: @Sendable (Int) -> [UInt8]

    /// An environment of the given clock and randomness.
    public init(
        milliseconds: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.milliseconds = milliseconds
        self.random = random
    }

    /// The machine's clock and its secure random numbers.
    public static let system = ServerEnvironment(
        milliseconds: { Int64((Date().timeIntervalSince1970 * 1_000).rounded(.down)) },
        random: { randomBytes($0) }
    )

    package var now: Timestamp { Timestamp(milliseconds: milliseconds()) }
}
