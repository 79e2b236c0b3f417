internal import FieldpostCore
internal import FieldpostSQLite

extension Store {
    /// Where the user's data stands, now and whenever it changes.
    ///
    ///     for try await status in store.statusUpdates { label.text = status.sentence }
    public var statusUpdates: WatchSequence<SyncStatus> {
        let key = WatchHub.Key(result: ObjectIdentifier(SyncStatus.self), kind: "status", sql: "")
        return watching(key, isSame: { $0 == $1 }) { [engineFailure] context in
            (try StatusReader(context).status(failure: engineFailure.withLock { $0 }), 0)
        }
    }

    /// Tells watchers of the status that the engine could not use the file, or that it can again.
    func noteFailure(_ reason: String?) {
        let isNews = engineFailure.withLock { known in
            defer { known = reason }
            return known != reason
        }
        if isNews { hub.changed(.everything) }
    }

    /// Where the row of a record stands now.
    ///
    /// - Throws: ``FieldpostError/Code/rowMissing`` for a row that is nowhere.
    public func status<Record: SyncedRecord>(of record: Record) async throws -> RowStatus {
        try await reading { try $0.status(of: record) }
    }

    /// Where the row of a record stands, now and whenever it changes; `nil` while the row is nowhere.
    public func watchStatus<Record: SyncedRecord>(of record: Record) -> WatchSequence<RowStatus?> {
        watching(nil, isSame: { $0 == $1 }) { context in
            do {
                return (try context.status(of: record), 0)
            } catch let error as FieldpostError where error.code == .rowMissing {
                return (nil, 0)
            }
        }
    }
}

extension TransactionContext {
    fileprivate func status<Record: SyncedRecord>(of record: Record) throws -> RowStatus {
        let layout = try records.layout(Record.self)
        let key = try layout.key(record.id).text ?? ""
        return try StatusReader(self).status(of: key, table: layout.table)
    }
}
