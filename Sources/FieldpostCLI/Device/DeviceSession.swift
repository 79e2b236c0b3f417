internal import Fieldpost
internal import FieldpostCore

/// One device driven by lines: reads commands ahead, works them off in order, and answers each.
///
/// It uses the network only for `sync`, unless the engine runs beside it.
struct DeviceSession: Sendable {
    let store: Store
    let engine: SyncEngine?
    let network: SwitchedTransport?
    let connectivity: SwitchedConnectivity
    let clock: AdjustableClock
    let console: Console
    /// Called after each local change.
    var wrote: @Sendable () async -> Void = {}

    private typealias Work = Result<DeviceRequest, Failure>

    /// Works until the input ends.
    func run() async {
        let queue = CommandQueue<Work>()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while let line = await console.nextLine() {
                    let work = Work { () throws(Failure) in try DeviceRequest(line: line) }
                    act(on: work)
                    await queue.put(work)
                }
                await queue.end()
            }
            while let work = await queue.take() { console.line(await reply(to: work).text) }
        }
    }

    /// The network and the clock change when the line is read, also in the middle of a sync.
    private func act(on work: Work) {
        switch work {
        case .success(.network(let up)):
            network?.set(up: up)
            connectivity.set(up: up)
        case .success(.clock(let offset)): clock.set(offset: offset)
        default: break
        }
    }

    private func reply(to work: Work) async -> JSONObject {
        do {
            var reply: JSONObject = ["ok": true]
            for member in try await perform(try work.get()).members {
                reply.append(member.name, member.value)
            }
            return reply
        } catch {
            return Failure(error).json
        }
    }

    private func perform(_ request: DeviceRequest) async throws -> JSONObject {
        switch request {
        case .write(let writes): return try await write(writes)
        case .exec(let sql, let arguments):
            let changes = try await store.write { try $0.execute(sql, arguments) }
            await wrote()
            return ["changes": .integer(Int64(changes))]
        case .query(let sql, let arguments):
            let rows = try await store.read { try $0.query(sql, arguments) }
            return ["rows": .array(rows.map(SQLValues.json))]
        case .sync: return try await sync()
        case .status(let table?, let row?):
            return ["status": .string(try await store.status(of: row, in: table).rawValue)]
        case .status: return ["status": .object(try await store.status().json)]
        case .outbox: return entries(try await store.outbox(limit: .max).map(\.json))
        case .failed: return entries(try await store.outbox(.failed, limit: .max).map(\.json))
        case .conflicts: return entries(try await store.conflicts().map(\.json))
        case .retry(let text):
            let ids = try await store.retry(try operation(text))
            await wrote()
            return ids.json
        case .discard(let text, let dependants):
            let ids = try await store.discard(try operation(text), dependants: dependants)
            await wrote()
            return ids.json
        case .undo(let text):
            let ids = try await store.undo(try operation(text))
            await wrote()
            return ids.json
        case .edit(let text, let set):
            let id = try await store.edit(try operation(text), set: set)
            await wrote()
            return [id].json
        case .settle(let conflict, let winner):
            let ids = try await store.settle(conflict, keep: winner)
            await wrote()
            return ids.json
        case .settled(let text):
            let outcome = try await store.outcome(of: try operation(text))
            return ["outcome": outcome.map { .object($0.json) } ?? .null]
        case .clock, .network: return [:]
        }
    }

    private func entries(_ list: [JSONObject]) -> JSONObject { ["entries": .array(list.map(JSON.object))] }

    private func operation(_ text: String) throws(Failure) -> OperationID {
        guard let id = OperationID(text) else {
            throw Failure(
                "operation_missing",
                "There is no operation with this id; ids are UUIDs.",
                exit: .usage
            )
        }
        return id
    }

    private func write(_ writes: [DeviceRequest.Write]) async throws -> JSONObject {
        let (rows, operations) = try await store.write { transaction in
            var rows: [String] = []
            for write in writes {
                switch write.action {
                case .create: rows.append(try transaction.create(write.table, row: write.row, set: write.set))
                case .update:
                    try transaction.update(write.table, row: write.row ?? "", set: write.set)
                    rows.append(try transaction.key(write.row ?? "", in: write.table))
                case .delete:
                    try transaction.delete(write.table, row: write.row ?? "")
                    rows.append(try transaction.key(write.row ?? "", in: write.table))
                }
            }
            return (rows, try transaction.operations())
        }
        await wrote()
        return [
            "operations": .array(operations.map { .string($0.text) }), "rows": .array(rows.map(JSON.string)),
        ]
    }

    private func sync() async throws -> JSONObject {
        let report: SyncReport?
        if let engine {
            report = try await DeviceSync(store: store, engine: engine).run()
        } else {
            report = nil
        }
        let reason = report?.reason ?? "no server is configured; start the device with --server"
        return [
            "online": .bool(report?.isOnline ?? false), "reason": reason.isEmpty ? .null : .string(reason),
            "status": .object(try await store.status().json), "pushed": .integer(Int64(report?.pushed ?? 0)),
            "conflicts": .integer(Int64(report?.conflicts ?? 0)),
            "rejected": .integer(Int64(report?.rejected ?? 0)),
            "pulled": .integer(Int64(report?.pulled ?? 0)),
        ]
    }
}

extension [OperationID] {
    fileprivate var json: JSONObject { ["operations": .array(map { .string($0.text) })] }
}
