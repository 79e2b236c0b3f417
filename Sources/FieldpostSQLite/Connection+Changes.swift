internal import FieldpostCore

extension Connection {
    /// Begins to note what statements read and what commits change.
    ///
    /// Statements prepared before are forgotten. It costs some nanoseconds a row written.
    package func startObserving() throws(StoreError) {
        guard database.observer == nil else { return }
        forgetStatements()
        database.observer = ChangeObserver(database.pointer)
        try learnSilentTables()
    }

    /// What was committed on this connection since the last call; empty unless it is observed.
    package func takeCommittedChanges() throws(StoreError) -> DatabaseChanges {
        guard let observer = database.observer else { return DatabaseChanges() }
        let changes = observer.takeCommitted()
        if observer.needsSilentTables { try learnSilentTables() }
        return changes
    }

    /// Runs `body` and returns what its statements read: the columns of each table.
    package func collectingReads<Result>(_ body: () throws -> Result) throws -> (
        Result, [String: Set<String>]
    ) {
        guard let observer = database.observer else { return (try body(), [:]) }
        observer.beginReads()
        do {
            let result = try body()
            return (result, observer.endReads())
        } catch {
            _ = observer.endReads()
            throw error
        }
    }

    /// Tables whose changes SQLite's update hook does not mention.
    private func learnSilentTables() throws(StoreError) {
        let rows = try query("SELECT name FROM pragma_table_list WHERE wr = 1 OR type = 'virtual'")
        database.observer?.setSilentTables(Set(rows.compactMap { $0[0].text }))
    }
}
