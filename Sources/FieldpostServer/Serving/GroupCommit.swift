internal import FieldpostSQLite

/// Commits the writes that arrive together in one transaction, each in its own savepoint.
///
/// One commit costs one flush to the disk whatever is in it. While it runs, the next writes gather and are taken together.
/// Nobody is answered before the commit that holds their write has returned.
final class GroupCommit: Sendable {
    /// Writes in one transaction: enough to make the flush cheap, few enough that the first is not kept waiting.
    static let writesPerCommit = 64

    private let writer: Writer
    private let waiting = Guarded<[Ticket]>([])

    /// How many transactions were committed, and how many writes they held.
    private let counts = Guarded<(commits: Int, writes: Int)>((0, 0))
    var statistics: (commits: Int, writes: Int) { counts.withLock { $0 } }

    init(_ writer: Writer) { self.writer = writer }

    /// One write that waits for its commit.
    private final class Ticket: Sendable {
        let body: @Sendable (Connection) throws -> any Sendable
        let outcome = Guarded<Result<any Sendable, any Error>?>(nil)

        init(_ body: @escaping @Sendable (Connection) throws -> any Sendable) { self.body = body }
    }

    /// Runs `body` in a savepoint of the next transaction and returns once that is committed.
    ///
    /// - Throws: What `body` throws, and then nothing of it is kept; or why the transaction as a whole failed.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Connection) throws -> Value) async throws
        -> Value
    {
        let ticket = Ticket(body)
        waiting.withLock { $0.append(ticket) }
        // Every write queues one turn on the writer. A turn takes what has gathered, so by the time its own turn is over
        // a write was taken by this one or by an earlier one; no task has to outlive its caller.
        while ticket.outcome.withLock({ $0 == nil }) {
            try await writer.perform { connection in self.commit(on: connection) }
        }
        guard let value = try ticket.outcome.withLock({ $0 })?.get() as? Value else {
            throw CancellationError()
        }
        return value
    }

    private func commit(on connection: Connection) {
        let batch = waiting.withLock { tickets in
            let batch = Array(tickets.prefix(GroupCommit.writesPerCommit))
            tickets.removeFirst(batch.count)
            return batch
        }
        if batch.isEmpty { return }
        do {
            let outcomes = try connection.transaction(.immediate) {
                try batch.map { ticket in try outcome(of: ticket, on: connection) }
            }
            counts.withLock { $0 = ($0.commits + 1, $0.writes + batch.count) }
            for (ticket, outcome) in zip(batch, outcomes) { ticket.outcome.withLock { $0 = outcome } }
        } catch {
            for ticket in batch { ticket.outcome.withLock { $0 = .failure(error) } }
        }
    }

    /// Runs one write; its failure is its own, unless it took the whole transaction with it.
    private func outcome(of ticket: Ticket, on connection: Connection) throws -> Result<
        any Sendable, any Error
    > {
        do {
            return .success(try connection.savepoint("fieldpost_push") { try ticket.body(connection) })
        } catch {
            guard connection.inTransaction else { throw error }
            return .failure(error)
        }
    }
}
