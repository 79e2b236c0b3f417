internal import FieldpostCore

/// One operation on its way, and the decision what a record that is not as expected means for it.
///
/// Pure.
struct RESTWork {
    let operation: Operation
    let mapping: RESTMapping
    /// Later operations of the same transaction on the same row: what a lost answer may already have let through.
    let later: [Operation]
    /// Whether a request of it has been answered before.
    var isRepeated = false

    /// What the server has.
    enum State: Equatable {
        case present(JSONObject, version: Int64?, isDeleted: Bool)
        case absent
        /// There is no way to look.
        case unknown

        init(_ record: JSONObject, _ mapping: RESTMapping, _ answer: HTTPAnswer? = nil) {
            self = .present(
                record,
                version: mapping.version(record, answer),
                isDeleted: mapping.isDeleted(record)
            )
        }
    }

    /// What comes next.
    enum Turn {
        case settled(OperationResult)
        /// Another request, by the same action for `nil`.
        case again(RESTProfile.Action?, RESTSubject)
    }

    /// What ``meeting(_:knownRow:)`` decides.
    enum Decision {
        case settled(OperationResult)
        case again(RESTProfile.Action, RESTSubject)
    }

    var step: RESTProfile.Step {
        switch operation.action {
        case .create: .create
        case .delete: .delete
        default: .update
        }
    }

    var action: RESTProfile.Action? {
        switch operation.action {
        case .create: mapping.resource.create
        case .update: mapping.resource.update
        case .delete: mapping.resource.delete
        case .intent: nil
        }
    }

    func turn(_ decision: Decision) -> Turn {
        switch decision {
        case .settled(let result): .settled(result)
        case .again(let action, let subject): .again(action, subject)
        }
    }

    /// Decides for a record that is not as the operation expected it.
    ///
    /// - Parameter knownRow: the row after the operation, as far as the device knows.
    func meeting(_ state: State, knownRow: JSONObject) -> Decision {
        switch state {
        case .present(let record, let version, isDeleted: false):
            if isReplay(record) { return .settled(applied(record, version)) }
            return changed(record, version)
        case .present, .absent: return gone(knownRow)
        case .unknown: return .settled(conflict(nil, nil))
        }
    }

    /// Whether the record shows that this operation, or it and later ones of its transaction, have been done.
    private func isReplay(_ record: JSONObject) -> Bool {
        if operation.action == .delete { return false }
        var columns = operation.change.set
        if mapping.shows(record, columns) { return true }
        for next in later where next.action == .update {
            for member in next.change.set.members { columns[member.name] = member.value }
            if mapping.shows(record, columns) { return true }
        }
        return false
    }

    private func changed(_ record: JSONObject, _ version: Int64?) -> Decision {
        switch answer {
        case .adopt: return .settled(applied(record, version))
        case .overwrite:
            // A create of a record that is there is a change of it.
            let next = operation.action == .create ? mapping.resource.update : action
            guard let next, let version else { break }
            let current = mapping.row(record, key: operation.row)
            var row = current
            for member in operation.change.set.members { row[member.name] = member.value }
            let columns = next.content == .row ? row : operation.change.set
            return .again(
                next,
                RESTSubject(operation: operation, version: version, columns: columns, row: row)
            )
        case .report, .bySchema: break
        }
        return .settled(conflict(record, version))
    }

    private func gone(_ knownRow: JSONObject) -> Decision {
        let isEnded = later.contains { $0.action == .delete }
        if operation.action == .delete || isEnded {
            return .settled(OperationResult(id: operation.id, status: .applied))
        }
        let wantsRow = mapping.table.onRemoteDelete == .updateWins && answer == .overwrite
        if wantsRow, let create = mapping.resource.create, knownRow[mapping.table.key] != nil {
            return .again(
                create,
                RESTSubject(operation: operation, version: nil, columns: knownRow, row: knownRow)
            )
        }
        return .settled(conflict(nil, nil))
    }

    private var answer: RESTProfile.ConflictAnswer {
        guard mapping.resource.onConflict == .bySchema else { return mapping.resource.onConflict }
        let table = mapping.table
        if operation.action == .delete { return table.conflict == .compareAndSet ? .report : .overwrite }
        if operation.action == .create { return table.conflict == .lastWriteWins ? .overwrite : .report }
        let isGuarded = operation.change.columns.contains { table.rule(for: $0) == .compareAndSet }
        return isGuarded ? .report : .overwrite
    }

    private func applied(_ record: JSONObject, _ version: Int64?) -> OperationResult {
        var result = OperationResult(id: operation.id, status: .applied)
        (result.version, result.row) = (version, mapping.row(record, key: operation.row))
        return result
    }

    /// A conflict with the server's row; one that is gone is newer than what the edit was made on.
    private func conflict(_ record: JSONObject?, _ version: Int64?) -> OperationResult {
        var result = OperationResult(id: operation.id, status: .conflict)
        result.row = record.map { mapping.row($0, key: operation.row) }
        result.version = version
        result.deleted = record == nil
        if record == nil, case .version(let base) = operation.base { result.version = base + 1 }
        return result
    }
}
