internal import FieldpostCore
internal import FieldpostSQLite

/// The most that the outbox may hold, checked in the writer's own transaction.
///
/// Far from a limit a check costs nothing that grows with the outbox: the places and the file's size are upper bounds,
/// and what is counted once is only added to until it reaches the limit.
struct OutboxLimits {
    let operations: Int
    let bytes: Int64
    /// Bytes of changes up to a place, as last counted, with what was written since and nothing that was settled.
    private var counted = (place: Int64(0), bytes: Int64(0))

    /// What a page of the file holds; it never changes in a file with a write-ahead log.
    private var pageBytes: Int64 = 0

    init(operations: Int, bytes: Int64) {
        self.operations = operations
        self.bytes = bytes
    }

    /// Takes in a transaction that has written the places from `first` up to `last`.
    ///
    /// - Throws: ``FieldpostError/Code/outboxFull``, and then nothing of the transaction is taken in.
    mutating func admit(_ connection: Connection, from first: Int64, upTo last: Int64) throws {
        try checkOperations(connection, from: first, upTo: last)
        try checkBytes(connection, upTo: last)
    }

    private func checkOperations(_ connection: Connection, from first: Int64, upTo last: Int64) throws {
        let oldest = try connection.scalar("SELECT min(seq) FROM fieldpost_outbox")?.integer ?? first
        guard last + 1 - oldest > Int64(operations),
            try connection.scalar("SELECT count(*) FROM fieldpost_outbox")?.integer ?? 0 > Int64(operations)
        else { return }
        throw FieldpostError(
            .outboxFull,
            "The outbox holds \(operations) operations; sync before writing more."
        )
    }

    private mutating func checkBytes(_ connection: Connection, upTo last: Int64) throws {
        // A file as a whole that is smaller than the limit holds no more.
        let pages = try connection.scalar("PRAGMA page_count")?.integer ?? 0
        if pageBytes == 0 { pageBytes = try connection.scalar("PRAGMA page_size")?.integer ?? 0 }
        if pages * pageBytes <= bytes { return }
        // A transaction that was rolled back gave its places back.
        var start = counted.place <= last ? counted : (place: 0, bytes: 0)
        // Other programs' writes are among those since.
        start.bytes += try size(connection, after: start.place)
        if start.bytes > bytes { start.bytes = try size(connection, after: 0) }
        if start.bytes > bytes {
            throw FieldpostError(
                .outboxFull,
                "The outbox holds \(bytes) bytes of changes; sync before writing more."
            )
        }
        counted = (last, start.bytes)
    }

    private func size(_ connection: Connection, after place: Int64) throws -> Int64 {
        let sum = try connection.scalar(
            "SELECT sum(length(CAST(change AS BLOB))) FROM fieldpost_outbox WHERE seq > ?",
            .integer(place)
        )
        return sum?.integer ?? 0
    }
}
