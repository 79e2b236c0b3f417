internal import FieldpostCore
internal import FieldpostSQLite

/// The record of every settled operation: what makes a resend harmless, and the audit log.
struct OperationLog {
    let connection: Connection
    let credential: Credential
    let device: Device?
    let now: Timestamp

    /// A settled operation.
    struct Entry {
        let fingerprint: [UInt8]
        let result: OperationResult
    }

    func entry(_ id: OperationID) throws -> Entry? {
        let statement = try connection.statement(
            "SELECT fingerprint, result, scopes FROM fieldpost_operations WHERE id = ?"
        )
        try statement.bind(1, id.text)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        var result = try OperationResult(json: JSON(text: statement.text(1), maxDepth: 128))
        // Who knows the id need not be one who may see the row.
        if !credential.scopes.covers(stored: statement.text(2)) { result.row = nil }
        return Entry(fingerprint: statement.blob(0), result: result)
    }

    /// Keeps a result for ever.
    ///
    /// - Parameter version: where the operation stands among everything that happened.
    func store(_ operation: NormalisedOperation, _ result: OperationResult, version: Int64) throws {
        try connection.run(
            """
            INSERT INTO fieldpost_operations \
            (id, fingerprint, status, result, version, device, seq, at, token, scopes, operation) \
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .text(operation.operation.id.text),
            .blob(operation.fingerprint),
            .text(result.status.rawValue),
            .text(JSON.object(result.json).text()),
            .integer(version),
            device.map { .text($0.id) } ?? .null,
            .integer(operation.operation.seq),
            .integer(now.milliseconds),
            .text(credential.tokenID),
            .text(credential.scopes.stored),
            .text(operation.operation.wire.text)
        )
    }

    /// The number of something that happened beside the feed.
    func nextVersion() throws -> Int64 {
        try connection.run("UPDATE fieldpost_sequence SET version = version + 1")
        return try connection.scalar("SELECT version FROM fieldpost_sequence")?.integer ?? 0
    }

    /// Another operation under this device's `seq`: two devices share one identity, or one was restored.
    func isForked(_ operation: Operation) throws -> Bool {
        guard let device, operation.seq > 0 else { return false }
        return try connection.scalar(
            "SELECT 1 FROM fieldpost_operations WHERE device = ? AND seq = ? AND id <> ?",
            .text(device.id),
            .integer(operation.seq),
            .text(operation.id.text)
        ) != nil
    }

    /// Notes that the device was here.
    func noteDevice(highestSeq: Int64, cursor: Int64? = nil) throws {
        guard let device else { return }
        try connection.run(
            """
            INSERT INTO fieldpost_devices (id, last_seen, schema, seq, token, cursor) VALUES (?, ?, ?, ?, ?, ?) \
            ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, schema = excluded.schema, \
            seq = max(seq, excluded.seq), token = excluded.token, cursor = coalesce(excluded.cursor, cursor)
            """,
            .text(device.id),
            .integer(now.milliseconds),
            device.schema.map { .integer(Int64($0)) } ?? .null,
            .integer(highestSeq),
            .text(credential.tokenID),
            cursor.map(Value.integer) ?? .null
        )
    }
}

/// Who sends, beside the token: one installation of an app.
public struct Device: Hashable, Sendable {
    /// A UUID as lower-case text.
    public var id: String
    /// The schema version the app has.
    public var schema: Int?

    /// A device, or `nil` unless `id` is a UUID.
    public init?(id: String, schema: Int? = nil) {
        guard let lowered = OperationID(id)?.text else { return nil }
        self.id = lowered
        self.schema = schema
    }
}

extension OperationLog {
    /// Settles an operation that has not arrived: whatever comes under this id later is told `result`.
    ///
    /// It has no fingerprint, as nobody knows what would have come.
    func void(_ id: OperationID, _ result: OperationResult) throws {
        try connection.run(
            """
            INSERT INTO fieldpost_operations \
            (id, fingerprint, status, result, version, device, seq, at, token, scopes, operation) \
            VALUES (?, x'', ?, ?, ?, ?, 0, ?, ?, ?, 'null')
            """,
            .text(id.text),
            .text(result.status.rawValue),
            .text(JSON.object(result.json).text()),
            .integer(try nextVersion()),
            device.map { .text($0.id) } ?? .null,
            .integer(now.milliseconds),
            .text(credential.tokenID),
            .text(credential.scopes.stored)
        )
    }
}

extension OperationLog.Entry {
    /// Whether this is the answer to `operation`.
    func answers(_ operation: NormalisedOperation) -> Bool {
        fingerprint.isEmpty || fingerprint == operation.fingerprint
    }
}
