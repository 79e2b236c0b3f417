internal import Fieldpost
internal import FieldpostCore
internal import Foundation

/// `fieldpost outbox …`: the operations that a device has not settled.
enum OutboxCommands {
    private static let db = CommandSpec.Option.required("db", "FILE", "the device's database")
    private static let operand = CommandSpec.Operand(
        name: "OPERATION",
        help: "the operation's id, or its number in the first column of the list"
    )
    private static let beside = "Works beside a running device; the file keeps its own schema."

    static let list = CommandSpec(
        path: ["outbox", "list"],
        summary: "List what waits to be sent, and what failed.",
        options: [
            db, .optional("state", "STATE", "only pending, inFlight, held or failed ones"),
            .optional("limit", "N", "show at most N (default 100; 0 shows all)"), .json,
        ],
        notes: [beside]
    ) { invocation, console in
        let state = try invocation["state"].map(state)
        guard let limit = Int(invocation["limit"] ?? "100"), limit >= 0 else {
            throw UsageError("--limit takes a number, such as 100.", command: "outbox list")
        }
        return try await withStore(invocation) { store in
            var items = try await store.outbox(state, limit: limit == 0 ? .max : limit + 1)
            let hasMore = limit > 0 && items.count > limit
            if hasMore { items.removeLast() }
            if invocation.has("json") {
                console.line(JSON.object(["entries": .array(items.map { .object($0.json) })]).text())
            } else {
                let now = Int64((Date().timeIntervalSince1970 * 1_000).rounded())
                console.write(OutboxTable.text(items, now: Timestamp(milliseconds: now), hasMore: hasMore))
            }
            return .done
        }
    }

    static let show = CommandSpec(
        path: ["outbox", "show"],
        summary: "Show one operation whole.",
        operands: [operand],
        options: [db, .json],
        notes: [beside]
    ) { invocation, console in
        try await withStore(invocation) { store in
            let item = try await find(invocation.operands[0], in: store)
            console.write(
                invocation.has("json")
                    ? item.json.text + "\n" : OutboxTable.details(item, now: Environment.live.now())
            )
            return .done
        }
    }

    static let retry = CommandSpec(
        path: ["outbox", "retry"],
        summary: "Send a failed operation again, with its group.",
        operands: [operand],
        options: [db, .json],
        notes: [
            "Prints the ids that the group has from now on; the device sends it with its next sync.", beside,
        ]
    ) { invocation, console in
        try await withStore(invocation) { store in
            let item = try await find(invocation.operands[0], in: store)
            return report(try await store.retry(item.operation), "Will be sent again", invocation, console)
        }
    }

    static let discard = CommandSpec(
        path: ["outbox", "discard"],
        summary: "Give an operation up, with its group, and take it back.",
        operands: [operand],
        options: [db, .flag("dependants", "also what depends on it"), .json],
        notes: [beside]
    ) { invocation, console in
        return try await withStore(invocation) { store in
            let item = try await find(invocation.operands[0], in: store)
            let ids = try await store.discard(item.operation, dependants: invocation.has("dependants"))
            let isDecided = try await store.outboxItem(item.operation)?.decision != nil
            return report(
                ids,
                isDecided ? "Will be discarded, unless the server has it" : "Discarded",
                invocation,
                console
            )
        }
    }

    static let edit = CommandSpec(
        path: ["outbox", "edit"],
        summary: "Give a failed or unsent operation other values, and send it again.",
        operands: [operand],
        options: [db, .required("set", "JSON", "the new values by column, such as '{\"amount\":5}'"), .json],
        notes: ["Columns left out stay as they were recorded. Prints the id it has from now on.", beside]
    ) { invocation, console in
        let text = try invocation.required("set")
        guard let values = try? JSON(text: text).object else {
            throw UsageError(
                "--set takes a JSON object of columns, such as {\"amount\":5}.",
                command: "outbox edit"
            )
        }
        return try await withStore(invocation) { store in
            let item = try await find(invocation.operands[0], in: store)
            let id = try await store.edit(item.operation, set: values)
            let isDecided = try await store.outboxItem(id)?.decision != nil
            return report(
                [id],
                isDecided ? "Will be edited, once the server has said whether it has it" : "Will be sent",
                invocation,
                console
            )
        }
    }

    static let undo = CommandSpec(
        path: ["outbox", "undo"],
        summary: "Take back an operation that was never sent, with its group.",
        operands: [operand],
        options: [db, .json],
        notes: [beside]
    ) { invocation, console in
        try await withStore(invocation) { store in
            let item = try await find(invocation.operands[0], in: store)
            return report(try await store.undo(item.operation), "Undone", invocation, console)
        }
    }

    static let export = CommandSpec(
        path: ["outbox", "export"],
        summary: "Print every operation as a line of JSON.",
        options: [db],
        notes: [beside]
    ) { invocation, console in
        try await withStore(invocation) { store in
            var last: Int64 = 0
            while true {
                let items = try await store.outbox(after: last)
                guard let end = items.last else { return .done }
                console.write(items.map { $0.json.text + "\n" }.joined())
                last = end.seq
            }
        }
    }

    // MARK: Parts

    private static func withStore(
        _ invocation: Invocation,
        _ body: (Store) async throws -> ExitCode
    ) async throws -> ExitCode {
        let store = try await Store.open(at: try invocation.required("db"))
        do {
            let code = try await body(store)
            await store.close()
            return code
        } catch {
            await store.close()
            throw error
        }
    }

    private static func state(_ word: String) throws(UsageError) -> OutboxItem.State {
        if let state = OutboxItem.State(rawValue: word) { return state }
        let known = OutboxItem.State.allCases.map(\.rawValue)
        throw UsageError("--state is one of \(known.joined(separator: ", ")).", command: "outbox list")
    }

    private static func find(_ text: String, in store: Store) async throws -> OutboxItem {
        var found: OutboxItem?
        if let seq = Int64(text) {
            found = try await store.outbox(after: seq - 1, limit: 1).first { $0.seq == seq }
        } else if let id = OperationID(text) {
            found = try await store.outboxItem(id)
        }
        guard let found else {
            throw Failure(
                "operation_missing",
                "There is no unsettled operation \(text); fieldpost outbox list shows them.",
                exit: .usage
            )
        }
        return found
    }

    private static func report(
        _ ids: [OperationID],
        _ words: String,
        _ invocation: Invocation,
        _ console: Console
    ) -> ExitCode {
        if invocation.has("json") {
            console.line(
                JSON.object(["ok": true, "operations": .array(ids.map { .string($0.text) })]).text()
            )
        } else {
            for id in ids { console.line("\(words): \(id.text)") }
        }
        return .done
    }
}
