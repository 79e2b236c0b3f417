internal import Fieldpost
internal import FieldpostCore
internal import FieldpostSQLite

/// `fieldpost sync`.
enum SyncCommand {
    static let spec = CommandSpec(
        path: ["sync"],
        summary: "Sync a device once, or for some seconds, and say how it went.",
        options: OpenDevice.options + [
            .optional("for", "SECONDS", "keep syncing for so long, then once more"), .json,
        ],
        notes: [
            "Exits with 0 when all is synced, 3 when work remains (also offline), 4 when a person is needed."
        ]
    ) { invocation, console in
        let seconds = try invocation["for"].map(seconds)
        let device = try await OpenDevice(invocation)
        guard let engine = device.engine else {
            throw UsageError("--server is missing; add it, or --rest.", command: "sync")
        }
        if let seconds {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await engine.run() }
                try? await device.store.environment.sleep(.seconds(seconds))
                group.cancelAll()
            }
        }
        let report = try await DeviceSync(store: device.store, engine: engine).run()
        let status = try await device.store.status()
        await device.store.close()
        console.line(invocation.has("json") ? json(report, status).text : text(report, status))
        if case .storeFailed = report.end {
            return report.storeFailure.map { Failure(StoreError($0, report.reason)).exit } ?? .unavailable
        }
        let code = status.exitCode
        return code == .done && report.end != .done ? .workRemains : code
    }

    private static func seconds(_ text: String) throws(UsageError) -> Double {
        guard let seconds = Double(text), seconds >= 0, seconds <= 86_400 else {
            throw UsageError("--for takes seconds, from 0 to 86400.", command: "sync")
        }
        return seconds
    }

    private static func text(_ report: SyncReport, _ status: SyncStatus) -> String {
        let reason = report.reason.isEmpty ? "" : " (\(report.reason))"
        return "\(status.sentence)\(reason): \(report.pushed) pushed, \(report.pulled) pulled, "
            + "\(report.conflicts) conflicts, \(report.rejected) rejected"
    }

    private static func json(_ report: SyncReport, _ status: SyncStatus) -> JSONObject {
        [
            "ok": true, "online": .bool(report.isOnline),
            "reason": report.reason.isEmpty ? .null : .string(report.reason),
            "status": .object(status.json), "pushed": .integer(Int64(report.pushed)),
            "conflicts": .integer(Int64(report.conflicts)), "rejected": .integer(Int64(report.rejected)),
            "pulled": .integer(Int64(report.pulled)),
        ]
    }
}
