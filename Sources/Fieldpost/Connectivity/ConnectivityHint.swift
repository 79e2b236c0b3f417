/// What connects a device, as its system says.
///
/// Only a hint: a Wi-Fi may lead to a portal, and a cable to nowhere. It says when to try again, never that it will work.
public struct ConnectivityHint: Hashable, Sendable {
    /// What kind of link there is.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A wireless local network.
        case wifi
        /// A mobile operator's network.
        case cellular
        /// A cable.
        case ethernet
        /// Any other: a tunnel, a bridge.
        case other
    }

    /// The links that can carry something now; empty without a network.
    public var kinds: Set<Kind>
    /// Whether somebody pays for each byte.
    public var isMetered: Bool

    /// A hint of the given parts; without any, no network.
    public init(_ kinds: Set<Kind> = [], isMetered: Bool = false) {
        self.kinds = kinds
        self.isMetered = isMetered
    }
}

/// Where hints of connectivity come from.
public protocol ConnectivitySource: Sendable {
    /// What connects the device, whenever that has changed since the call.
    func hints() -> AsyncStream<ConnectivityHint>
}

/// Hints that are given by hand: in tests, and where the app hears of the network itself, as on Android.
///
///     let connectivity = ManualConnectivity()
///     configuration.environment.connectivity = connectivity
///     …
///     connectivity.send(ConnectivityHint([.wifi]))
public final class ManualConnectivity: ConnectivitySource {
    private let listeners = Locked<(next: Int, byNumber: [Int: AsyncStream<ConnectivityHint>.Continuation])>(
        (0, [:])
    )

    /// A source that has said nothing yet.
    public init() {}

    /// Says what connects the device now.
    public func send(_ hint: ConnectivityHint) {
        for listener in listeners.withLock({ Array($0.byNumber.values) }) { listener.yield(hint) }
    }

    /// What ``send(_:)`` says from now on.
    public func hints() -> AsyncStream<ConnectivityHint> {
        AsyncStream { continuation in
            let number = listeners.withLock { state in
                state.next += 1
                state.byNumber[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [weak self] _ in
                self?.listeners.withLock { $0.byNumber[number] = nil }
            }
        }
    }
}
