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
        let session = DeviceSession(
            store: device.store,
            engine: device.engine,
            network: device.network,
            clock: device.clock,
            console: console,
            isLive: isLive
        )
        await withTaskGroup(of: Void.self) { group in
            if isLive {
                if let engine = device.engine { group.addTask { try? await engine.run() } }
                group.addTask { await announce(device.store, on: console) }
            }
            await session.run()
            group.cancelAll()
        }
        await device.store.close()
        return .done
    }

    /// How often a live device looks whether its status has changed.
    private static let look = Duration.milliseconds(100)

    /// Prints the status whenever it has changed, until cancelled.
    private static func announce(_ store: Store, on console: Console) async {
        var last: SyncStatus?
        while !Task.isCancelled {
            if let status = try? await store.status(), status != last {
                last = status
                console.line(JSON.object(["event": "status", "status": .object(status.json)]).text())
            }
            try? await store.environment.sleep(look)
        }
    }
}
