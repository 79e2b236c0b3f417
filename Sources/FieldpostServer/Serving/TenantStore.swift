internal import FieldpostCore
internal import FieldpostSQLite

/// One tenant's open file: its writer, its readers and what is served from it.
final class TenantStore: Sendable {
    /// Readers of one file: a page is read in milliseconds, and each reader costs a thread and a cache.
    private static let readers = 4
    /// Devices remembered between two commits; further ones are noted when they come again.
    private static let maxSightings = 10_000

    let core: ServerCore
    let commits: GroupCommit
    let readers: ReaderPool
    let news = News()
    private let writer: Writer
    private let seen = Guarded<[String: Sighting]>([:])

    /// When a device that only pulls was here last, and how far it has read.
    private struct Sighting {
        var device: Device
        var credential: Credential
        var cursor: Int64?
        var at: Timestamp
    }

    init(
        path: String,
        tenant: TenantName,
        schema: Schema,
        intents: [String: IntentHandler],
        environment: ServerEnvironment
    ) throws {
        let file = tenant.path(in: path)
        let connection = try Connection(path: file)
        core = try ServerCore.open(
            connection,
            schema: schema,
            tenant: tenant,
            intents: intents,
            now: environment.now,
            random: environment.random
        )
        writer = Writer(connection)
        commits = GroupCommit(writer)
        readers = ReaderPool(path: file, limit: TenantStore.readers)
    }

    /// Remembers a pull; it is written with the next push, so that reading costs no commit of its own.
    func saw(_ device: Device?, credential: Credential, cursor: Int64?, at now: Timestamp) {
        guard let device else { return }
        let sighting = Sighting(device: device, credential: credential, cursor: cursor, at: now)
        seen.withLock { seen in
            if seen.count < TenantStore.maxSightings || seen[device.id] != nil { seen[device.id] = sighting }
        }
    }

    /// Writes what ``saw(_:credential:cursor:at:)`` remembered, inside the caller's transaction.
    func writeSightings(on connection: Connection) throws {
        let sightings = seen.withLock { seen in
            defer { seen = [:] }
            return seen
        }
        for sighting in sightings.values {
            let log = OperationLog(
                connection: connection,
                credential: sighting.credential,
                device: sighting.device,
                now: sighting.at
            )
            try log.noteDevice(highestSeq: 0, cursor: sighting.cursor)
        }
    }

    func close() async {
        _ = try? await commits.write { connection in try self.writeSightings(on: connection) }
        await readers.close()
        await writer.close()
    }
}
