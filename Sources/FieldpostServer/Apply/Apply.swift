package import FieldpostCore
package import FieldpostSQLite

/// Applies a push: every group whole or not at all, every operation once.
///
/// Synchronous and without clock or randomness of its own. It works inside the caller's transaction and answers for what
/// is true once that transaction commits. What a rule refuses is a result; what it throws is a ``Problem`` with the whole
/// request, or a failure of the store, and then the caller must undo everything.
package struct Apply {
    let core: ServerCore
    let connection: Connection
    let credential: Credential
    let now: Timestamp
    let log: OperationLog

    package init(
        _ core: ServerCore,
        _ connection: Connection,
        credential: Credential,
        device: Device?,
        now: Timestamp
    ) {
        self.core = core
        self.connection = connection
        self.credential = credential
        self.now = now
        log = OperationLog(connection: connection, credential: credential, device: device, now: now)
    }

    /// The results of all operations, in the order sent.
    package func push(_ request: PushRequest) throws -> [OperationResult] {
        let count = request.groups.reduce(0) { $0 + $1.operations.count }
        guard count <= WireLimits.operationsPerPush else {
            throw Problem(
                "too-many-operations",
                status: 413,
                detail: "A push holds at most \(WireLimits.operationsPerPush) operations; send fewer at once."
            )
        }
        var results: [OperationResult] = []
        results.reserveCapacity(count)
        for group in request.groups { results += try apply(group) }
        let highest = request.groups.flatMap(\.operations).map(\.seq).max() ?? 0
        try log.noteDevice(highestSeq: highest)
        return results
    }

    // MARK: Groups

    private func apply(_ group: OperationGroup) throws -> [OperationResult] {
        do {
            return try connection.savepoint("fieldpost_group") {
                var applied: [Applied] = []
                for (index, operation) in group.operations.enumerated() {
                    do { applied.append(try apply(operation)) } catch let refusal as Refusal {
                        throw GroupRefusal(index: index, refusal: refusal)
                    }
                }
                // References are deferred: a parent may come after its child, but not after its group.
                try ReferenceCheck(apply: self).check(applied)
                return applied.map(\.result)
            }
        } catch let refused as GroupRefusal {
            return try answers(group, refused)
        }
    }

    /// The answers of a group that was rolled back: the operation at fault gets its own, the others follow it.
    private func answers(_ group: OperationGroup, _ refused: GroupRefusal) throws -> [OperationResult] {
        let culprit = refused.refusal
        if culprit.isFinal {
            try log.store(culprit.operation, culprit.result, version: try log.nextVersion())
        }
        return try group.operations.enumerated().map { index, operation in
            if index == refused.index { return culprit.result }
            let mate = NormalisedOperation(operation, table: core.tables[operation.table]?.table)
            // A mate that has its own stored answer keeps it, whatever becomes of the group now.
            if let entry = try log.entry(mate.operation.id), entry.answers(mate) { return entry.result }
            var result = OperationResult(id: operation.id, status: culprit.result.status)
            result.code = "group"
            result.by = culprit.result.id
            result.message = "Another operation of its group was not applied."
            return result
        }
    }

    // MARK: Operations

    private func apply(_ sent: Operation) throws -> Applied {
        let normal = NormalisedOperation(sent, table: core.tables[sent.table]?.table)
        if let entry = try log.entry(sent.id) { return try replay(entry, normal) }
        try checkRequest(sent)
        if let by = try unsettledDependency(of: sent) {
            var result = OperationResult(id: sent.id, status: .blocked)
            result.by = by
            result.message = "An operation it depends on is not applied."
            throw Refusal(operation: normal, result: result, isFinal: false)
        }
        let operation = normal.operation.upcast(to: core.schema)
        var result = OperationResult(id: sent.id, status: .applied)
        let outcome: Outcome
        do { outcome = try execute(operation) } catch let rejection as Rejection {
            throw Refusal(operation: normal, rejection)
        } catch let conflict as RowConflict {
            throw Refusal(operation: normal, result: conflict.result(sent.id), isFinal: true)
        }
        result.version = outcome.version
        // An operation of an older app shows other columns than the row has now.
        let shown = operation.schema == sent.schema ? outcome.shown(sent) : nil
        if let row = outcome.after, row != shown { result.row = row }
        let version = outcome.changed ? outcome.version : nil
        try log.store(normal, result, version: try version ?? log.nextVersion())
        return Applied(operation: operation, normal: normal, result: result, isFresh: true)
    }

    private func replay(_ entry: OperationLog.Entry, _ normal: NormalisedOperation) throws -> Applied {
        guard entry.answers(normal) else {
            let rejection = Rejection("key_reused", "Another operation was sent under this id before.")
            throw Refusal(operation: normal, rejection, isFinal: false)
        }
        guard entry.result.status == .applied else {
            throw Refusal(operation: normal, result: entry.result, isFinal: false)
        }
        return Applied(operation: normal.operation, normal: normal, result: entry.result, isFresh: false)
    }

    /// Refuses what no single operation can be blamed for.
    private func checkRequest(_ operation: Operation) throws {
        if try log.isForked(operation) {
            throw Problem(
                "device-reset",
                status: 409,
                detail:
                    "Another operation has this device's number; take a new device identity and send again."
            )
        }
        if operation.schema > core.schema.version {
            throw Problem(
                "server-behind",
                status: 409,
                detail:
                    "The operation is of schema version \(operation.schema), the server of \(core.schema.version)."
            )
        }
    }

    /// The first operation this one depends on that has no `applied` result.
    private func unsettledDependency(of operation: Operation) throws -> OperationID? {
        var dependencies = operation.after
        if case .after(let id) = operation.base { dependencies.append(id) }
        return try dependencies.first { try log.entry($0)?.result.status != .applied }
    }

    private func execute(_ operation: Operation) throws -> Outcome {
        if case .intent(let name) = operation.action { return try perform(name, operation) }
        guard let access = core.tables[operation.table] else {
            throw Rejection("unknown_table", "The server has no such table.")
        }
        guard access.table.writable.contains(credential.role) else {
            throw Rejection("role", "This token may not write to the table.")
        }
        let change = RowChange(apply: self, access: access, operation: operation)
        do {
            switch operation.action {
            case .create: return try change.create()
            case .update: return try change.update()
            case .delete, .intent: return try change.delete()
            }
        } catch let error as StoreError {
            // A failure that ended the transaction is never the operation's.
            guard connection.inTransaction, let rejection = Rejection(error, table: access.table) else {
                throw error
            }
            throw rejection
        }
    }

    private func perform(_ name: String, _ operation: Operation) throws -> Outcome {
        guard let handler = core.intents[name] else {
            throw Rejection("unknown_intent", "The server has no handler of this name.")
        }
        let payload = operation.change.payload ?? .null
        try handler.run(
            payload,
            IntentTransaction(connection: connection, operation: operation, credential: credential, now: now)
        )
        guard let access = core.tables[operation.table] else { return Outcome() }
        let state = try access.state(connection, operation.row)
        guard let values = state.values, let scope = state.scope, credential.scopes.contains(scope) else {
            return Outcome()
        }
        return Outcome(version: state.version, after: access.wire(values))
    }
}

/// An operation that is in effect, now or since an earlier send.
struct Applied {
    /// As it reads under the server's schema.
    var operation: Operation
    /// As it was sent.
    var normal: NormalisedOperation
    var result: OperationResult
    /// Whether this request applied it.
    var isFresh: Bool
}

/// What carrying out an operation did.
struct Outcome {
    /// The row's version after it.
    var version: Int64?
    /// The row after it in wire form, or `nil` where there is none.
    var after: JSONObject?
    /// Whether it changed the row, so that ``version`` is its own.
    var changed = false
    /// The row as its device shows it, given the operation as sent; `nil` where the device cannot know the row.
    var shown: (Operation) -> JSONObject? = { _ in nil }
}

/// Ends an operation that is not applied, and with it its group.
struct Refusal: Error {
    let operation: NormalisedOperation
    let result: OperationResult
    /// Whether the result is stored, and so the same for ever.
    let isFinal: Bool

    init(operation: NormalisedOperation, result: OperationResult, isFinal: Bool) {
        self.operation = operation
        self.result = result
        self.isFinal = isFinal
    }

    init(operation: NormalisedOperation, _ rejection: Rejection, isFinal: Bool = true) {
        var result = OperationResult(id: operation.operation.id, status: .rejected)
        result.code = rejection.code
        result.message = rejection.message
        result.fields = rejection.fields
        self.init(operation: operation, result: result, isFinal: isFinal)
    }
}

/// Rolls a group back.
struct GroupRefusal: Error {
    let index: Int
    let refusal: Refusal
}

/// The row is not what the operation was made on.
struct RowConflict: Error {
    var version: Int64?
    var row: JSONObject?
    var deleted = false

    func result(_ id: OperationID) -> OperationResult {
        var result = OperationResult(id: id, status: .conflict)
        result.version = version
        result.row = row
        result.deleted = deleted
        return result
    }
}
