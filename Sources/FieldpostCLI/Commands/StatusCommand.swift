internal import Fieldpost
internal import FieldpostCore

/// `fieldpost status`.
enum StatusCommand {
    static let spec = CommandSpec(
        path: ["status"],
        summary: "Say where a device's data stands.",
        options: [.required("db", "FILE", "the device's database"), .json],
        notes: [
            "Works beside a running device. Exits with 0 when all is synced, 3 when work remains, 4 when a person is "
                + "needed."
        ]
    ) { invocation, console in
        let store = try await Store.open(at: try invocation.required("db"))
        let status = try await store.status()
        await store.close()
        if invocation.has("json") {
            console.line(status.json.text)
        } else {
            console.line(status.sentence)
            console.line(status.counts)
            if let error = status.lastError { console.line("Last run: \(error.message)") }
        }
        return status.exitCode
    }
}

extension SyncStatus {
    /// The counts that are not zero, for people.
    var counts: String {
        let all = [
            ("local", local), ("pending", pending), ("in flight", inFlight), ("held", held),
            ("failed", failed),
            ("conflicts", conflicts),
        ]
        let some = all.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }
        return some.isEmpty ? "Nothing waits." : some.joined(separator: ", ")
    }

    /// What a caller has to know: a person who is needed comes before work that remains.
    var exitCode: ExitCode {
        if failed + conflicts > 0 { return .personNeeded }
        switch state {
        case .needsAttention, .needsSignIn, .forbidden, .misconfigured, .needsUpgrade: return .personNeeded
        case .storeFailed: return .unavailable
        case .waiting, .syncing, .offline, .serverBehind: return .workRemains
        case .allSynced: return local + pending + inFlight + held > 0 ? .workRemains : .done
        }
    }
}
