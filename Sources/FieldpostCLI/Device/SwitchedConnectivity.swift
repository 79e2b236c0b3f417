internal import Fieldpost
internal import Synchronization

/// The system's hints and those of the device's own switch, which hides the system's while it is down.
final class SwitchedConnectivity: ConnectivitySource {
    private let system: any ConnectivitySource
    private let manual = ManualConnectivity()
    private let isUp = Mutex(true)

    init(_ system: any ConnectivitySource) { self.system = system }

    /// Turns the network on or off.
    func set(up: Bool) {
        let wasUp = isUp.withLock { isUp in
            defer { isUp = up }
            return isUp
        }
        // What comes back is not known before the system says more.
        if wasUp != up { manual.send(ConnectivityHint(up ? [.other] : [])) }
    }

    func hints() -> AsyncStream<ConnectivityHint> {
        let sources = [(manual.hints(), true), (system.hints(), false)]
        return AsyncStream { continuation in
            // Unstructured, since a stream has no task that it belongs to: the stream's end cancels them.
            let tasks = sources.map { hints, isOwn in
                Task {
                    for await hint in hints where isOwn || isUp.withLock({ $0 }) { continuation.yield(hint) }
                }
            }
            continuation.onTermination = { _ in for task in tasks { task.cancel() } }
        }
    }
}
