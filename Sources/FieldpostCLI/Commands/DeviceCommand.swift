internal import Fieldpost
internal import FieldpostCore

/// `fieldpost device`.
enum DeviceCommand {
    static let spec = CommandSpec(
        path: ["device"],
        summary: "Be a device: one JSON command a line in, one reply a line out.",
        options: OpenDevice.options + [.flag("live", "sync by itself, and print events")],
        notes: [
            #"Commands: {"do":"write","ops":[…]}, exec, query, sync, status, outbox, failed, conflicts, retry, discard, "#
                + #"settled, {"do":"clock","offset_ms":n}, {"do":"network","up":false}."#,
            "Replies come in order; network and clock act as soon as they are read. A bad command gets an error, and the "
                + "device goes on. The end of input ends it with 0.",
        ]
    ) { invocation, console in
        let device = try await OpenDevice(invocation)
        let isLive = invocation.has("live")
        let announcer = StatusAnnouncer(store: device.store, console: console)
        var session = DeviceSession(
            store: device.store,
            engine: device.engine,
            network: device.network,
            connectivity: device.connectivity,
            clock: device.clock,
            console: console
        )
        let engine = device.engine
        if isLive {
            // Said at once: the engine waits a moment for more writes, so every change is seen waiting before it is sent.
            session.wrote = { await announcer.announce() }
        }
        let live = session
        // Begun before anything else, so that no change is missed.
        let hints = device.connectivity.hints()
        await withTaskGroup(of: Void.self) { group in
            if isLive {
                if let engine { group.addTask { try? await engine.run() } }
                group.addTask { await announcer.run() }
                group.addTask { for await hint in hints { console.line(JSON.object(hint.json).text()) } }
            }
            await live.run()
            group.cancelAll()
        }
        await device.store.close()
        return .done
    }
}

extension ConnectivityHint {
    /// The line that tells of it.
    fileprivate var json: JSONObject {
        let kinds = kinds.map(\.rawValue).sorted().map(JSON.string)
        return ["event": "connectivity", "transports": .array(kinds), "metered": .bool(isMetered)]
    }
}

/// Prints the status of a live device whenever it has changed.
private actor StatusAnnouncer {
    /// How often to look.
    private static let interval = Duration.milliseconds(100)

    private let store: Store
    private let console: Console
    private var last: SyncStatus?

    init(store: Store, console: Console) {
        self.store = store
        self.console = console
    }

    func announce() async {
        guard let status = try? await store.status(), status != last else { return }
        last = status
        console.line(JSON.object(["event": "status", "status": .object(status.json)]).text())
    }

    /// Looks until cancelled.
    func run() async {
        while !Task.isCancelled {
            await announce()
            try? await store.environment.sleep(Self.interval)
        }
    }
}
