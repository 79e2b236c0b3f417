import Fieldpost
import Foundation

/// The entity of `limit.c`, as an app writes it.
struct Item: SyncedRecord {
    var id: UUID
    var title: String
    var body: String
    var done: Bool
    var priority: Int
    var updatedAt: Date
}

/// One measurement of the store: `StoreBench CASE FOLDER [FULL|NORMAL]`, one JSON object as the answer.
@main struct StoreBench {
    static let schema = Schema(version: 1) {
        Table("items") {
            Column("id", .uuid).primaryKey()
            Column("title", .text)
            Column("body", .text)
            Column("done", .boolean)
            Column("priority", .integer)
            Column("updated_at", .date)
        }
    }
    static let body =
        "The quick brown fox jumps over the lazy dog while the farmer counts the sheep in the meadow at dawn."

    let path: String
    let synchronous: Synchronous

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { fatalError("StoreBench CASE FOLDER [FULL|NORMAL]") }
        let bench = StoreBench(
            path: arguments[2] + "/bench.db",
            synchronous: arguments.count > 3 ? Synchronous(rawValue: arguments[3]) ?? .full : .full
        )
        switch arguments[1] {
        case "write": try await bench.write(batch: 1, count: 4_000)
        case "write100": try await bench.write(batch: 100, count: 40_000)
        case "fill": try await bench.fill(count: arguments.count > 4 ? Int(arguments[4]) ?? 10_000 : 10_000)
        case "read": try await bench.read()
        case "watch1": try await bench.watch(watchers: 1)
        case "watch100": try await bench.watch(watchers: 100)
        case "open": try await bench.openTime()
        default: fatalError("unknown case")
        }
    }

    private func open() async throws -> Store {
        var configuration = Store.Configuration()
        configuration.synchronous = synchronous
        return try await Store.open(at: path, schema: Self.schema, configuration: configuration)
    }

    private static func item(_ number: Int, _ id: UUID) -> Item {
        Item(
            id: id,
            title: "Item number \(number)",
            body: body,
            done: number & 1 == 1,
            priority: number % 5,
            updatedAt: Date(timeIntervalSince1970: 1_764_460_800)
        )
    }

    private func fill(_ store: Store, _ count: Int, batch: Int) async throws {
        for first in stride(from: 0, to: count, by: batch) {
            try await store.write { transaction in
                for number in first..<min(first + batch, count) {
                    try transaction.insert(Self.item(number, transaction.newID()))
                }
            }
        }
    }

    private func write(batch: Int, count: Int) async throws {
        let store = try await open()
        let clock = ContinuousClock()
        let took = try await clock.measure { try await fill(store, count, batch: batch) }
        report(["ops_s": Double(count) / took.seconds])
        await store.close()
    }

    private func fill(count: Int) async throws {
        let store = try await open()
        try await fill(store, count, batch: 500)
        await store.close()
    }

    private func read() async throws {
        let store = try await open()
        var best = Double.infinity
        var count = 0
        for _ in 0..<20 {
            let took = try await ContinuousClock().measure {
                count = try await store.fetchAll(Item.all.limit(10_000)).count
            }
            best = min(best, took.seconds)
        }
        report(["ops_s": Double(count) / best])
        await store.close()
    }

    private func watch(watchers: Int) async throws {
        let store = try await open()
        let id = UUID()
        try await store.insert(Self.item(0, id))
        let arrivals = AsyncStream<Void>.makeStream()
        let tasks = (0..<watchers).map { _ in
            Task {
                for try await _ in store.watch(Item.where(\.id == id)) { arrivals.continuation.yield() }
            }
        }
        var iterator = arrivals.stream.makeAsyncIterator()
        for _ in 0..<watchers { await iterator.next() }
        var latencies: [Double] = []
        for number in 1...500 {
            try await store.update(Item.self, id) { $0.priority = number }
            let committed = ContinuousClock.now
            for _ in 0..<watchers { await iterator.next() }
            latencies.append((ContinuousClock.now - committed).seconds * 1e6)
        }
        tasks.forEach { $0.cancel() }
        latencies.sort()
        report(["p50_us": latencies[250], "p99_us": latencies[495]])
        await store.close()
    }

    private func openTime() async throws {
        let clock = ContinuousClock()
        var times: [Double] = []
        for _ in 0..<20 {
            let begin = clock.now
            let store = try await open()
            times.append((clock.now - begin).seconds * 1e3)
            await store.close()
        }
        times.sort()
        report(["ms": times[10]])
    }

    private func report(_ values: [String: Double]) {
        let members = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
        print("{\"impl\":\"swift\",\(members.joined(separator: ","))}")
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
