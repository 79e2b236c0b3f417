/// A bounded pool of connections that read one database file beside its writer.
///
/// Each read sees one snapshot, which no later commit changes, and neither waits for the writer nor holds it
/// up. Reads beyond the limit wait, first come first served. Connections open when first needed. The file
/// must be in write-ahead-log mode (``Connection/configureWriter(synchronous:)``).
public final class ReaderPool: Sendable {
    private let state: Locked<ReaderPoolState>
    private let open: @Sendable () throws(StoreError) -> Connection

    /// Creates a pool; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - path: The database file.
    ///   - limit: The most connections at once, at least 1. Each costs a thread while it reads and its own
    ///     cache.
    ///   - vfs: The name of a registered SQLite VFS, or `nil` for the system's.
    ///   - busyTimeout: How long a read waits for a lock, which only happens while the log is recovered.
    public convenience init(
        path: String,
        limit: Int = 4,
        vfs: String? = nil,
        busyTimeout: Duration = .seconds(5)
    ) {
        self.init(path: path, limit: limit, vfs: vfs, busyTimeout: busyTimeout, observed: false)
    }

    /// As the public initializer; `observed` connections tell what their statements read.
    package init(path: String, limit: Int, vfs: String?, busyTimeout: Duration = .seconds(5), observed: Bool)
    {
        precondition(limit >= 1, "a reader pool needs at least one connection")
        state = Locked(ReaderPoolState(limit: limit))
        open = { () throws(StoreError) in
            let connection = try Connection(path: path, mode: .readOnly, vfs: vfs, busyTimeout: busyTimeout)
            try connection.configureReader()
            if observed { try connection.startObserving() }
            return connection
        }
    }

    /// Runs `body` on one snapshot, off the cooperative pool.
    ///
    /// - Throws: What `body` throws; ``StoreError``, `closed` after ``close()``; `CancellationError` when
    ///   cancelled while it waits for a connection.
    public func read<Result: Sendable>(
        _ body: @Sendable (Connection) throws -> Result
    ) async throws -> Result {
        let reader = try await acquire()
        do {
            let result = try await reader.read(body)
            await giveBack(reader)
            return result
        } catch {
            await giveBack(reader)
            throw error
        }
    }

    /// Refuses new reads, waits for those that run and closes every connection.
    public func close() async {
        let (waiting, idle) = state.withLock { $0.closed() }
        for continuation in waiting { continuation.resume(throwing: StoreError.poolClosed) }
        for reader in idle {
            await reader.close()
            didClose()
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            if state.withLock({ $0.awaitEnd(continuation) }) { continuation.resume() }
        }
    }

    /// How many connections exist, lent or idle.
    package var connectionCount: Int { state.withLock { $0.count } }

    private func acquire() async throws -> Reader {
        let ticket = state.withLock { $0.newTicket() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = state.withLock { $0.requested(ticket, continuation) { Reader(open: self.open) } }
                switch answer {
                case .lend(let reader): continuation.resume(returning: reader)
                case .refuse: continuation.resume(throwing: StoreError.poolClosed)
                // Cancelled before the request was known, so the handler below found nothing.
                case .wait: if Task.isCancelled { cancel(ticket) }
                }
            }
        } onCancel: {
            cancel(ticket)
        }
    }

    private func cancel(_ ticket: UInt64) {
        state.withLock { $0.cancelled(ticket) }?.resume(throwing: CancellationError())
    }

    private func giveBack(_ reader: Reader) async {
        switch state.withLock({ $0.returned(reader) }) {
        case .lend(let continuation): continuation.resume(returning: reader)
        case .keep: break
        case .close:
            await reader.close()
            didClose()
        }
    }

    private func didClose() {
        for continuation in state.withLock({ $0.readerClosed() }) { continuation.resume() }
    }
}

extension StoreError {
    fileprivate static var poolClosed: StoreError {
        StoreError(.closed, "The reader pool is closed; open the store again.")
    }
}
