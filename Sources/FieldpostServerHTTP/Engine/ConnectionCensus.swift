/// Counts the open connections of all loops and says who may come in.
final class ConnectionCensus: Sendable {
    private struct State {
        var total = 0
        var perNetwork: [PeerAddress.Network: Int] = [:]
    }

    private let limits: HTTPLimits
    private let state = Guarded(State())

    init(limits: HTTPLimits) { self.limits = limits }

    /// Counts a connection in, or refuses it.
    func admit(_ network: PeerAddress.Network) -> Bool {
        state.withLock { state in
            let here = state.perNetwork[network, default: 0]
            guard state.total < limits.connections, here < limits.connectionsPerAddress else { return false }
            state.total += 1
            state.perNetwork[network] = here + 1
            return true
        }
    }

    /// Counts an admitted connection out.
    func release(_ network: PeerAddress.Network) {
        state.withLock { state in
            state.total -= 1
            let here = state.perNetwork[network, default: 1] - 1
            state.perNetwork[network] = here == 0 ? nil : here
        }
    }

    var count: Int { state.withLock { $0.total } }
}
