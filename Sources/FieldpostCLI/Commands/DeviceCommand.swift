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
            clock: device.clock,
            console: console
        )
        let engine = device.engine
        if isLive {
            // Said before the engine is told, so that no change is sent before it was seen waiting.
            session.wrote = {
                await announcer.announce()
                await engine?.poke()
            }
        }
        let live = session
        await withTaskGroup(of: Void.self) { group in
            if isLive {
                if let engine { group.addTask { try? await engine.run() } }
                group.addTask { await announcer.run() }
            }
            await live.run()
            group.cancelAll()
        }
        await device.store.close()
        return .done
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
