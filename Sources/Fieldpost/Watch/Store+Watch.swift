internal import FieldpostCore
internal import FieldpostSQLite

extension Store {
    /// The records of a query, now and whenever they change.
    ///
    ///     for try await orders in store.watch(Order.where(\.status == .open)) { show(orders) }
    ///
    /// Equal queries share one run, however many watch.
    public func watch<Record: SyncedRecord>(_ query: RecordQuery<Record>) -> WatchSequence<[Record]> {
        let records = records
        return watching(kind: "records", { try query.selectSQL(try records.layout(Record.self)) }) {
            context,
            sql in
            try context.hashedAll(sql, try context.records.layout(Record.self).plan)
        }
    }

    /// The record with this key, now and whenever it changes; `nil` while there is none.
    public func watch<Record: SyncedRecord>(_ type: Record.Type, _ id: Record.ID) -> WatchSequence<Record?> {
        let records = records
        return watching(
            kind: "record",
            {
                let layout = try records.layout(type)
                return SQL(layout.selectSQL + layout.whereKey, [try layout.key(id)])
            }
        ) { context, sql in
            let (found, hash): ([Record], Int) = try context.hashedAll(
                sql,
                try context.records.layout(type).plan
            )
            return (found.first, hash)
        }
    }

    /// The rows of SQL as values of a type, now and whenever they change.
    ///
    ///     store.watch(Total.self, "select status, sum(total_idr) as sum from orders group by status")
    public func watch<Result: Decodable & Sendable>(_ type: Result.Type, _ sql: SQL) -> WatchSequence<
        [Result]
    > {
        watching(kind: "rows", { sql }) { context, sql in
            try context.hashedAll(try context.readOnly(sql), try context.plan(type, sql))
        }
    }

    /// The first column of the first row of SQL, now and whenever it changes; `nil` while there is no row, and for `NULL`.
    ///
    ///     store.watchValue(Int.self, "select count(*) from orders where status = 'open'")
    public func watchValue<Part: Decodable & Sendable>(_ type: Part.Type, _ sql: SQL) -> WatchSequence<Part?>
    {
        watching(kind: "value", { sql }) { context, sql in
            let statement = try context.bound(try context.readOnly(sql))
            defer { statement.reset() }
            var hasher = Hasher()
            guard try statement.step() else { return (nil, hasher.finalize()) }
            statement.hash(into: &hasher)
            return (statement.isNull(0) ? nil : try context.value(type, statement), hasher.finalize())
        }
    }

    /// How many records a query has, now and whenever the number changes.
    public func watchCount<Record: SyncedRecord>(_ query: RecordQuery<Record>) -> WatchSequence<Int> {
        let records = records
        return watching(kind: "count", { try query.countSQL(try records.layout(Record.self)) }) {
            context,
            sql in
            let count = Int(try context.connection.scalar(sql.text, sql.arguments)?.integer ?? 0)
            return (count, count)
        }
    }

    /// What a closure reads, now and whenever a commit changes something that it read and the result differs.
    ///
    ///     store.watch { ($0.fetchOne(Order.self, id), try $0.fetchCount(Payment.where(\.orderID == id))) }
    public func watch<Result: Equatable & Sendable>(
        _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
    ) -> WatchSequence<Result> {
        watching(nil, isSame: { $0 == $1 }) { context in (try body(ReadTransaction(context: context)), 0) }
    }

    /// How many queries have been run for watchers; for tests.
    package var watchRunCount: Int { hub.runCount }

    /// How many different queries are watched; for tests.
    package var watchedCount: Int { hub.observationCount }

    private func watching<Element: Sendable>(
        kind: String,
        _ makeSQL: @escaping @Sendable () throws -> SQL,
        _ fetch: @escaping @Sendable (TransactionContext, SQL) throws -> (Element, Int)
    ) -> WatchSequence<Element> {
        WatchSequence { [weak self] subscriber in
            do {
                guard let self else { throw CancellationError() }
                let sql = try makeSQL()
                try sql.check()
                let key = WatchHub.Key(result: ObjectIdentifier(Element.self), kind: kind, sql: sql)
                return self.subscribe(key, subscriber, isSame: { _, _ in true }) { try fetch($0, sql) }
            } catch {
                subscriber.finish(error is CancellationError ? nil : error)
                return WatchLease {}
            }
        }
    }

    func watching<Element: Sendable>(
        _ key: WatchHub.Key?,
        isSame: @escaping @Sendable (Element, Element) -> Bool,
        _ fetch: @escaping @Sendable (TransactionContext) throws -> (Element, Int)
    ) -> WatchSequence<Element> {
        WatchSequence { [weak self] subscriber in
            guard let self else {
                subscriber.finish()
                return WatchLease {}
            }
            return self.subscribe(key, subscriber, isSame: isSame, fetch)
        }
    }

    private func subscribe<Element: Sendable>(
        _ key: WatchHub.Key?,
        _ subscriber: WatchSubscriber<Element>,
        isSame: @escaping @Sendable (Element, Element) -> Bool,
        _ fetch: @escaping @Sendable (TransactionContext) throws -> (Element, Int)
    ) -> WatchLease {
        hub.subscribe(key, subscriber, isSame: isSame) { [weak self] in
            guard let self else { throw StoreError(.closed, "The store is gone; open it again.") }
            return try await self.observe(fetch)
        }
    }

    private func observe<Element: Sendable>(
        _ fetch: @Sendable (TransactionContext) throws -> (Element, Int)
    ) async throws -> Observed<Element> {
        hub.countRun()
        return try await reading { context in
            let ((element, hash), reads) = try context.connection.collectingReads { try fetch(context) }
            return Observed(element: element, fingerprint: hash, reads: reads)
        }
    }
}

extension TransactionContext {
    /// All rows, with a hash of what is stored in them and in which order.
    ///
    /// SipHash with the process's own key: equal hashes of different results are as likely as one in 2^64.
    func hashedAll<Result: Decodable>(_ sql: SQL, _ plan: RowPlan) throws -> ([Result], Int) {
        let statement = try bound(sql)
        defer { statement.reset() }
        let decoder = RowDecoder(statement, plan: plan)
        defer { decoder.finish() }
        var results: [Result] = []
        var hasher = Hasher()
        while try statement.step() {
            statement.hash(into: &hasher)
            results.append(try decoder.decode(Result.self))
        }
        hasher.combine(results.count)
        return (results, hasher.finalize())
    }
}
