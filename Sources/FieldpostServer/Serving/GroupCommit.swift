internal import FieldpostSQLite

/// Commits the writes that arrive together in one transaction, each in its own savepoint.
///
/// One commit costs one flush to the disk whatever is in it. While it runs, the next writes gather and are taken
/// together. Nobody is answered before the commit that holds their write has returned.
final class GroupCommit: Sendable {
    /// Writes in one transaction: enough to make the flush cheap, few enough that the first is not kept waiting.
    static let writesPerCommit = 64

    /// Each case names what leaves it.
    private struct State {
        /// In the order they came.
        var waiting: [Ticket] = []
        /// Whether somebody commits; until then whoever comes begins.
        var isCommitting = false
        var commits = 0
        var writes = 0
    }

    /// One write that waits for its commit.
    private struct Ticket: Sendable {
        /// Runs the write in its savepoint and returns how to answer it, which is done after the commit.
        let run: @Sendable (Connection) throws -> Answer
        /// Answers that the transaction as a whole failed.
        let fail: @Sendable (any Error) -> Void
    }

    private typealias Answer = @Sendable () -> Void

    private let writer: Writer
    private let state = Guarded(State())

    init(_ writer: Writer) { self.writer = writer }

    /// How many transactions were committed, and how many writes they held.
    var statistics: (commits: Int, writes: Int) { state.withLock { ($0.commits, $0.writes) } }

    /// How many writes wait for the commit after the one that runs.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` in a savepoint of the next transaction and returns once that is committed.
    ///
    /// - Throws: What `body` throws, and then nothing of it is kept; or why the transaction as a whole failed.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            let ticket = Ticket(
                run: { connection in
                    let outcome = try GroupCommit.outcome(of: body, on: connection)
                    return { continuation.resume(with: outcome) }
                },
                fail: { continuation.resume(throwing: $0) }
            )
            let begins = state.withLock { state in
                state.waiting.append(ticket)
                defer { state.isCommitting = true }
                return !state.isCommitting
            }
            // Unstructured, because it outlives the write that began it: it goes on for those that came meanwhile.
            if begins { Task { await self.commitAll() } }
        }
    }

    /// Runs one write; its failure is its own, unless it took the whole transaction with it.
    private static func outcome<Value>(
        of body: (Connection) throws -> Value,
        on connection: Connection
    ) throws -> Result<Value, any Error> {
        do {
            return .success(try connection.savepoint("fieldpost_push") { try body(connection) })
        } catch {
            guard connection.inTransaction else { throw error }
            return .failure(error)
        }
    }

    private func commitAll() async {
        do {
            try await writer.perform { connection in
                while let batch = self.nextBatch() { self.commit(batch, on: connection) }
            }
        } catch {
            // The commits themselves never throw here: only a writer that cannot take turns does.
            while let batch = nextBatch() { for ticket in batch { ticket.fail(error) } }
        }
    }

    /// What has gathered, or `nil` when nobody waits, and then the next to come begins again.
    private func nextBatch() -> [Ticket]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isCommitting = false
                return nil
            }
            let batch = Array(state.waiting.prefix(GroupCommit.writesPerCommit))
            state.waiting.removeFirst(batch.count)
            return batch
        }
    }

    private func commit(_ batch: [Ticket], on connection: Connection) {
        do {
            let answers = try connection.transaction(.immediate) { try batch.map { try $0.run(connection) } }
            state.withLock { state in
                state.commits += 1
                state.writes += batch.count
            }
            for answer in answers { answer() }
        } catch {
            for ticket in batch { ticket.fail(error) }
        }
    }
}
