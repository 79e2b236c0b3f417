public import FieldpostCore
internal import Synchronization

/// A backend that is only in memory: an app runs whole, with its data, and no server exists.
///
/// For the first weeks of an app, for previews, demonstrations and tests. It merges as a Fieldpost server does, does each
/// operation once, waits as long as a real network would, and fails on request. What it does not do: check tokens,
/// scopes, references, `checks` and `unique`. It forgets everything with the process; a device that outlives it is given
/// a fresh start by a resync.
///
///     let backend = MockTransport(schema: schema, fixtures: ["notes": [["id": "n1", "title": "Buy milk"]]])
///     let engine = SyncEngine(store: store, transport: backend) { _ in nil }
///     backend.setLatency(.milliseconds(300))
///     backend.fail([.unreachable("the lift")])
public final class MockTransport: Transport {
    private struct Row {
        var version: Int64
        var set: JSONObject?
    }

    private struct State {
        var rows: [String: [String: Row]] = [:]
        var results: [OperationID: OperationResult] = [:]
        var version: Int64 = 0
        var latency = Duration.zero
        var failures: [ExchangeFailure] = []
        var losesAnswers = 0
        var isOffline = false
        var requests = 0
    }

    private let schema: Schema
    private let environment: Environment
    private let refusal: @Sendable (Operation) -> String?
    private let era: String
    private let state: Mutex<State>

    /// Rows of one page.
    private static let pageLimit = 500

    /// A backend that holds `fixtures`: rows in wire form by table; columns left out take their defaults.
    ///
    /// - Parameters:
    ///   - schema: the app's schema.
    ///   - fixtures: the rows that the pretended server has, by table.
    ///   - environment: clock and waiting, for latency.
    ///   - refusal: the code with which an operation is rejected; `nil` accepts it.
    public init(
        schema: Schema,
        fixtures: [String: [JSONObject]] = [:],
        environment: Environment = .live,
        refusal: @escaping @Sendable (Operation) -> String? = { _ in nil }
    ) {
        self.schema = schema
        self.environment = environment
        self.refusal = refusal
        era = String(environment.randomBits(), radix: 16)
        var state = State()
        for table in schema.tables {
            for fixture in fixtures[table.name] ?? [] {
                guard let key = fixture[table.key]?.string else { continue }
                var row = table.emptyRow(key: key)
                for member in fixture.members { row[member.name] = member.value }
                state.version += 1
                state.rows[table.name, default: [:]][key] = Row(version: state.version, set: row)
            }
        }
        self.state = Mutex(state)
    }

    // MARK: How it behaves

    /// How long each request takes from now on.
    public func setLatency(_ latency: Duration) { state.withLock { $0.latency = latency } }

    /// The next requests fail, one after another.
    public func fail(_ failures: [ExchangeFailure]) { state.withLock { $0.failures += failures } }

    /// The next `count` pushes are done, and their answers are lost.
    public func loseAnswers(_ count: Int = 1) { state.withLock { $0.losesAnswers += count } }

    /// Whether nobody reaches it.
    public func setOffline(_ isOffline: Bool) { state.withLock { $0.isOffline = isOffline } }

    /// Requests that have come, failed ones included.
    public var requests: Int { state.withLock { $0.requests } }

    /// The rows of a table as they are now, by key.
    public func rows(_ table: String) -> [String: JSONObject] {
        state.withLock { ($0.rows[table] ?? [:]).compactMapValues(\.set) }
    }

    /// Puts a row in as another device would; `nil` removes it.
    public func put(_ row: JSONObject?, key: String, in table: String) {
        state.withLock { state in
            state.version += 1
            state.rows[table, default: [:]][key] = Row(version: state.version, set: row)
        }
    }

    // MARK: Transport

    /// Applies the operations, each once.
    public func push(_ push: OutgoingPush, _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse
    {
        try await arrive()
        let groups: [OperationGroup]
        do { groups = try push.request().groups } catch {
            throw .invalid(Problem("malformed", status: 400, detail: "the body is no push: \(error)"))
        }
        let (results, isLost): ([OperationResult], Bool) = state.withLock { state in
            var results: [OperationResult] = []
            for group in groups { results += apply(group, &state) }
            let isLost = state.losesAnswers > 0
            if isLost { state.losesAnswers -= 1 }
            return (results, isLost)
        }
        if isLost { throw .unreachable("the answer was lost") }
        return PushResponse(results: results, serverTime: context.now)
    }

    /// What became of the operations; those it does not know never shall.
    public func void(_ operations: [OperationID], _ context: RequestContext) async throws(ExchangeFailure)
        -> PushResponse?
    {
        try await arrive()
        let results = state.withLock { state in
            operations.map { id in
                var result = OperationResult(id: id, status: .rejected)
                (result.code, result.message) = ("voided", "it was withdrawn before it arrived")
                state.results[id] = state.results[id] ?? result
                return state.results[id] ?? result
            }
        }
        return PushResponse(results: results, serverTime: context.now)
    }

    /// The rows that changed since `cursor`.
    public func pull(cursor: String?, _ context: RequestContext) async throws(ExchangeFailure) -> PullPage {
        try await arrive()
        var since: Int64 = 0
        if let cursor {
            let parts = cursor.split(separator: ":")
            guard parts.count == 2, parts[0] == era, let version = Int64(parts[1]) else {
                throw .resyncRequired
            }
            since = version
        }
        let (rows, version) = state.withLock { ($0.rows, $0.version) }
        var changes: [PulledChange] = []
        for (table, rows) in rows {
            for (key, row) in rows where row.version > since {
                changes.append(PulledChange(table: table, row: key, version: row.version, set: row.set))
            }
        }
        changes.sort { $0.version < $1.version }
        let page = Array(changes.prefix(Self.pageLimit))
        let isWhole = page.count == changes.count
        return PullPage(
            changes: page,
            cursor: "\(era):\(isWhole ? version : page[page.count - 1].version)",
            more: !isWhole,
            serverTime: context.now
        )
    }

    /// Whether it is not set to be offline.
    public func probe(_ context: RequestContext) async -> Bool { state.withLock { !$0.isOffline } }

    private func arrive() async throws(ExchangeFailure) {
        let (latency, failure): (Duration, ExchangeFailure?) = state.withLock { state in
            state.requests += 1
            if state.isOffline {
                return (state.latency, ExchangeFailure.unreachable("the mock backend is offline"))
            }
            return (state.latency, state.failures.isEmpty ? nil : state.failures.removeFirst())
        }
        if latency > .zero {
            do { try await environment.sleep(latency) } catch {
                throw .unreachable("the request was cancelled")
            }
        }
        if let failure { throw failure }
    }

    // MARK: Applying

    /// A group is done as one: what stops one stops all.
    private func apply(_ group: OperationGroup, _ state: inout State) -> [OperationResult] {
        let before = state
        var results: [OperationResult] = []
        for operation in group.operations {
            let result = state.results[operation.id] ?? apply(operation, &state)
            results.append(result)
            guard result.status == .applied else {
                state = before
                state.results[operation.id] = result
                return group.operations.map { mate in
                    if mate.id == result.id { return result }
                    var own = OperationResult(id: mate.id, status: result.status)
                    (own.code, own.by) = ("group", result.id)
                    return own
                }
            }
        }
        for result in results { state.results[result.id] = result }
        return results
    }

    private func apply(_ operation: Operation, _ state: inout State) -> OperationResult {
        var result = OperationResult(id: operation.id, status: .applied)
        guard let table = schema.table(operation.table) else {
            (result.status, result.code) = (.rejected, "unknown_table")
            return result
        }
        if let code = refusal(operation) {
            (result.status, result.code, result.message) = (.rejected, code, "the mock backend refuses it")
            return result
        }
        let current = state.rows[table.name]?[operation.row]
        if isConflict(operation, table, current, state) {
            (result.status, result.row, result.version) = (.conflict, current?.set, current?.version)
            result.deleted = current != nil && current?.set == nil
            return result
        }
        let row = Merge.apply(operation, to: current?.set, table: table)
        state.version += 1
        state.rows[table.name, default: [:]][operation.row] = Row(version: state.version, set: row)
        (result.version, result.row) = (state.version, row)
        return result
    }

    private func isConflict(_ operation: Operation, _ table: Table, _ current: Row?, _ state: State) -> Bool {
        switch operation.action {
        case .create:
            guard let row = current?.set else { return false }
            return row != Merge.apply(operation, to: nil, table: table)
        case .update:
            guard current?.set != nil else { return true }
            guard operation.change.columns.contains(where: { table.rule(for: $0) == .compareAndSet }) else {
                return false
            }
            return base(operation, state) != current?.version
        case .delete:
            return table.conflict == .compareAndSet && current?.set != nil
                && base(operation, state) != current?.version
        case .intent: return false
        }
    }

    private func base(_ operation: Operation, _ state: State) -> Int64? {
        switch operation.base {
        case .none: nil
        case .version(let version): version
        case .after(let id): state.results[id]?.version
        }
    }
}
