internal import FieldpostCore

/// Carries the operations of one push to a REST server, one request each, in order.
///
/// A server of this kind settles one record at a time. So operations of one transaction are sent one after another, and
/// those after a failed one are not sent; what went before it stays done there, and the group is reported as failed. What
/// a lost answer did is found out by sending again: a refused precondition is compared with what was sent.
struct RESTPush {
    let profile: RESTProfile
    let schema: Schema
    let knowledge: RESTKnowledge
    let now: Timestamp
    /// Sends one request.
    let load: @Sendable (RESTRequest) async throws(ExchangeFailure) -> HTTPAnswer
    /// Whether the server is well; `nil` where a profile has no way to ask.
    let health: @Sendable () async -> Bool?

    /// Seconds the server asked to be left in peace.
    private(set) var calmSeconds: Int?
    /// Operations that are not applied; what depends on them is not sent.
    private var unsettled: Set<OperationID> = []
    /// Rows written by earlier groups of this push.
    private var written: Set<RESTRowName> = []
    /// What this push has done to the rows of the group that is being sent.
    private var versions: [OperationID: Int64] = [:]
    private var rows: [RESTRowName: JSONObject?] = [:]

    init(
        profile: RESTProfile,
        schema: Schema,
        knowledge: RESTKnowledge,
        now: Timestamp,
        load: @escaping @Sendable (RESTRequest) async throws(ExchangeFailure) -> HTTPAnswer,
        health: @escaping @Sendable () async -> Bool?
    ) {
        self.profile = profile
        self.schema = schema
        self.knowledge = knowledge
        self.now = now
        self.load = load
        self.health = health
    }

    /// Tries of one request after lost races and changed records, before the operation has to wait.
    private static let maxTries = 3
    /// The most a server is asked for before what is settled is stored.
    static let maxOperations = 100

    /// Sends groups until something stops it; returns the results of whole groups.
    ///
    /// - Parameter isInTime: asked before each group: what is settled must be stored before the right to send runs out.
    /// - Throws: the failure that stopped it, when nothing was settled before.
    mutating func send(
        _ groups: [OperationGroup],
        while isInTime: @Sendable () -> Bool
    ) async throws(ExchangeFailure) -> [OperationResult] {
        var results: [OperationResult] = []
        var failures = 0
        for group in groups {
            let names = Set(group.operations.map { RESTRowName($0) })
            // A row written twice in one push could not be told from another's edit after a lost answer.
            if !results.isEmpty, !isInTime() || !written.isDisjoint(with: names) { break }
            if group.operations.contains(where: { $0.after.contains(where: unsettled.contains) }) {
                unsettled.formUnion(group.operations.map(\.id))
                continue
            }
            do {
                let settled = try await send(group)
                results += settled
                if settled.contains(where: { $0.status == .retry }) { failures += 1 }
            } catch {
                if results.isEmpty { throw error }
                break
            }
            written.formUnion(names)
            // One operation that cannot go must not stop the others; a second says that it is the server.
            if failures > 1 || results.count >= Self.maxOperations { break }
        }
        return results
    }

    private mutating func send(_ group: OperationGroup) async throws(ExchangeFailure) -> [OperationResult] {
        var results: [OperationResult] = []
        rows = [:]
        for (index, operation) in group.operations.enumerated() {
            let later = group.operations[(index + 1)...].filter { RESTRowName($0) == RESTRowName(operation) }
            let result = try await send(operation, later: later)
            results.append(result)
            if result.status != .applied {
                unsettled.formUnion(group.operations.map(\.id))
                return Self.failed(group, results)
            }
            if let version = result.version { versions[operation.id] = version }
            if let table = schema.table(operation.table) {
                let before = await row(operation, table)
                rows[RESTRowName(operation)] = .some(Merge.apply(operation, to: before, table: table))
            }
        }
        return results
    }

    /// The results of a group whose last sent operation failed.
    private static func failed(_ group: OperationGroup, _ sent: [OperationResult]) -> [OperationResult] {
        var results = sent
        guard let failed = sent.last else { return results }
        for index in results.indices.dropLast() {
            results[index].code = "applied_alone"
            results[index].message =
                "the server has done this, but not another change of the same transaction; retry or discard both"
        }
        for operation in group.operations.dropFirst(sent.count) {
            var mate = OperationResult(id: operation.id, status: failed.status)
            (mate.code, mate.by) = ("group", failed.id)
            mate.message = "not sent, since another change of the same transaction was not applied"
            results.append(mate)
        }
        return results
    }

    // MARK: One operation

    private mutating func send(
        _ operation: Operation,
        later: [Operation]
    ) async throws(ExchangeFailure) -> OperationResult {
        guard let table = schema.table(operation.table), let resource = profile.resources[operation.table]
        else {
            return Self.rejected(
                operation,
                "unknown_table",
                "the profile says nothing of the table \(operation.table)"
            )
        }
        let mapping = RESTMapping(table: table, resource: resource)
        var work = RESTWork(operation: operation, mapping: mapping, later: later)
        guard let action = work.action else { return try await withoutAction(work) }
        var subject = await subject(operation, table, action)
        var next = action
        for _ in 0..<Self.maxTries {
            switch try await attempt(next, subject, work) {
            case .settled(let result): return result
            case .again(let action, let changed): (next, subject) = (action ?? next, changed)
            }
            work.isRepeated = true
        }
        return Self.waiting(operation, "contended", "the record keeps changing", nil)
    }

    /// One request, and what its answer means.
    private mutating func attempt(
        _ action: RESTProfile.Action,
        _ subject: RESTSubject,
        _ work: RESTWork
    ) async throws(ExchangeFailure) -> RESTWork.Turn {
        let request: RESTRequest
        do { request = try work.mapping.request(action, subject) } catch {
            guard error.name == "version" else {
                let message = "the row has no usable value for {\(error.name)}"
                return .settled(Self.rejected(work.operation, "bad_path", message))
            }
            // Never sent without what guards against overwriting: first see what is there.
            return work.turn(work.meeting(try await look(work), knownRow: subject.row))
        }
        let answer = try await load(request)
        note(answer)
        return try await read(answer, work, subject)
    }

    /// What an operation is sent with at first.
    private func subject(_ operation: Operation, _ table: Table, _ action: RESTProfile.Action) async
        -> RESTSubject
    {
        let before = await row(operation, table)
        let after = Merge.apply(operation, to: before, table: table)
        var version: Int64?
        switch operation.base {
        case .none: break
        case .version(let base): version = base
        case .after(let id):
            if let own = versions[id] { version = own } else { version = await knowledge.version(id) }
        }
        let known = after ?? before ?? operation.change.set
        return RESTSubject(
            operation: operation,
            version: version,
            columns: action.content == .row ? known : operation.change.set,
            row: known
        )
    }

    /// The row before an operation, as far as the device knows what the server has.
    private func row(_ operation: Operation, _ table: Table) async -> JSONObject? {
        if let row = rows[RESTRowName(operation)] { return row }
        if operation.action == .create { return nil }
        return await knowledge.lastKnown(table, operation.row)
    }

    private func read(
        _ answer: HTTPAnswer,
        _ work: RESTWork,
        _ subject: RESTSubject
    ) async throws(ExchangeFailure) -> RESTWork.Turn {
        let operation = work.operation
        let verdict = RESTVerdict(answer, to: work.step, profile)
        let pause = RetryAfter.seconds(answer.headers["retry-after"], now: now).map { Int64($0) * 1_000 }
        switch verdict.outcome {
        case .applied: return .settled(try await applied(answer, work, subject))
        case .rejected: return .settled(Self.rejected(operation, verdict.code, verdict.message))
        case .failed: return .settled(Self.waiting(operation, verdict.code, verdict.message, pause))
        case .retry:
            if work.isRepeated {
                return .settled(Self.waiting(operation, verdict.code, verdict.message, pause))
            }
            return .again(nil, subject)
        case .absent: return work.turn(work.meeting(.absent, knownRow: subject.row))
        case .conflict:
            let current = RESTValues.at(
                verdict.current,
                in: verdict.current == nil ? nil : RESTValues.json(answer)
            )?.object
            let state = if let current { RESTWork.State(current, work.mapping) } else { try await look(work) }
            return work.turn(work.meeting(state, knownRow: subject.row))
        case .busy where await health() == true:
            // Well, but not for this operation: it alone waits, and one day is a dead letter.
            return .settled(Self.waiting(operation, verdict.code, verdict.message, pause))
        default: throw verdict.failure(answer, now: now) ?? .unreachable("an answer that means nothing")
        }
    }

    /// What a success says of the row.
    private func applied(
        _ answer: HTTPAnswer,
        _ work: RESTWork,
        _ subject: RESTSubject
    ) async throws(ExchangeFailure) -> OperationResult {
        let body = RESTValues.json(answer)
        // Half an answer, or a portal's page, proves nothing.
        if !answer.body.isEmpty, body == nil { throw .unreachable("the answer is not whole JSON") }
        let record = work.mapping.record(body)
        var result = OperationResult(id: work.operation.id, status: .applied)
        result.version = work.mapping.version(record, answer)
        if work.step == .delete { return result }
        if let record {
            result.row = work.mapping.answeredRow(record, key: work.operation.row, sent: subject.columns)
        }
        if result.version != nil { return result }
        // Without a version nothing later could be told from it.
        if case .present(let record, let version, _) = try await look(work), let version {
            result.version = version
            result.row = work.mapping.row(record, key: work.operation.row)
            return result
        }
        throw .unreachable("the answer names no version of the record")
    }

    /// The record as it is now.
    private func look(_ work: RESTWork) async throws(ExchangeFailure) -> RESTWork.State {
        guard let item = work.mapping.resource.item else { return .unknown }
        var subject = RESTSubject(
            operation: work.operation,
            version: nil,
            columns: [:],
            row: work.operation.change.set
        )
        if let known = await row(work.operation, work.mapping.table) { subject.row = known }
        let action = RESTProfile.Action("GET", item, content: .none)
        guard let request = try? work.mapping.request(action, subject) else { return .unknown }
        let answer = try await load(request)
        let verdict = RESTVerdict(answer, to: .update, profile)
        if let failure = verdict.failure(answer, now: now) { throw failure }
        if verdict.outcome == .absent { return .absent }
        guard verdict.outcome == .applied else {
            throw .unreachable("the record cannot be read (\(answer.status))")
        }
        guard let record = work.mapping.record(RESTValues.json(answer)) else {
            throw .unreachable("the record is not whole JSON")
        }
        return RESTWork.State(record, work.mapping, answer)
    }

    /// An operation that the server has no request for: the row takes the server's state.
    private func withoutAction(_ work: RESTWork) async throws(ExchangeFailure) -> OperationResult {
        let refusal = Self.rejected(
            work.operation,
            "read_only",
            "the server takes no such change of this table"
        )
        guard work.mapping.resource.onConflict == .adopt else { return refusal }
        guard case .settled(let result) = work.meeting(try await look(work), knownRow: [:]) else {
            return refusal
        }
        return result.status == .applied ? result : refusal
    }

    private mutating func note(_ answer: HTTPAnswer) {
        if let calm = AnswerTable.calm(answer) { calmSeconds = max(calm, calmSeconds ?? 0) }
    }

    // MARK: Results

    private static func rejected(_ operation: Operation, _ code: String, _ message: String) -> OperationResult
    {
        var result = OperationResult(id: operation.id, status: .rejected)
        (result.code, result.message) = (code, message)
        return result
    }

    private static func waiting(
        _ operation: Operation,
        _ code: String,
        _ message: String,
        _ pause: Int64?
    ) -> OperationResult {
        var result = OperationResult(id: operation.id, status: .retry)
        (result.code, result.message, result.afterMilliseconds) = (code, message, pause)
        return result
    }
}

/// A row by table and key.
struct RESTRowName: Hashable {
    let table: String
    let row: String

    init(_ operation: Operation) { (table, row) = (operation.table, operation.row) }
}
