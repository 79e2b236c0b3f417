import Fieldpost
import Foundation

/// One measurement of the outbox: `OutboxBench CASE FOLDER [FULL|NORMAL] [ARGUMENT]…`, one JSON object as the answer.
///
/// The driver fills the file by SQL, as any program may.
@main struct OutboxBench {
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

    let store: Store

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { fatalError("OutboxBench CASE FOLDER [FULL|NORMAL] [ARGUMENT]…") }
        if arguments[1] == "schema" { return print(schema.json.text()) }
        var configuration = Store.Configuration()
        configuration.synchronous = arguments.count > 3 ? Synchronous(rawValue: arguments[3]) ?? .full : .full
        let begin = ContinuousClock.now
        let store = try await Store.open(
            at: arguments[2] + "/bench.db",
            schema: schema,
            configuration: configuration
        )
        let opened = ContinuousClock.now - begin
        let bench = OutboxBench(store: store)
        let rest = Array(arguments.dropFirst(4))
        switch arguments[1] {
        case "open": report(["ms": opened.seconds * 1e3])
        case "drain": try await bench.drain(batch: Int(rest[0])!)
        case "claim": try await bench.claim(requests: Int(rest[0])!)
        case "push": try await bench.push(to: rest[0], token: rest[1], batch: Int(rest[2])!)
        case "status": try await bench.status()
        default: fatalError("unknown case")
        }
        await store.close()
    }

    /// Sends everything there is to a server that acknowledges at once.
    private func drain(batch: Int) async throws {
        let transport = NoOpTransport()
        let engine = SyncEngine(store: store, transport: transport) { _ in nil }
        await engine.setLargestRequest(operations: batch)
        let took = await ContinuousClock().measure { _ = await engine.sync() }
        Self.report([
            "ops": Double(transport.operations), "ops_s": Double(transport.operations) / took.seconds,
            "rss_kib": Self.peakMemory(),
        ])
    }

    /// Takes in and claims a hundred operations so many times, whatever else waits.
    ///
    /// By the engine's own timer: a sync that someone asks for would make what backs off ready.
    private func claim(requests: Int) async throws {
        let transport = NoOpTransport(last: requests + 5)
        let engine = SyncEngine(store: store, transport: transport) { _ in nil }
        await engine.setLargestRequest(operations: 100)
        let run = Task { try await engine.run() }
        while transport.gaps.count < requests + 5 { try await Task.sleep(for: .milliseconds(5)) }
        run.cancel()
        _ = await run.result
        // The first requests are smaller.
        let gaps = transport.gaps.dropFirst(5).sorted()
        Self.report([
            "p50_us": gaps[gaps.count / 2] * 1e6, "max_us": gaps[gaps.count - 1] * 1e6, "rss_kib": Self.peakMemory(),
        ])
    }

    /// Sends everything to a real server.
    private func push(to server: String, token: String, batch: Int) async throws {
        let transport = HTTPTransport(server: URL(string: server)!)
        let engine = SyncEngine(store: store, transport: transport) { _ in token }
        await engine.setLargestRequest(operations: batch)
        let before = try await store.status()
        var report = SyncReport?.none
        let took = await ContinuousClock().measure { report = await engine.sync() }
        guard let report, report.pushed == before.local + before.pending, report.reason.isEmpty else {
            fatalError("not everything was applied: \(String(describing: report))")
        }
        Self.report(["ops_s": Double(report.pushed) / took.seconds])
    }

    private func status() async throws {
        let before = try await store.status()
        let row = try await store.outbox(limit: 1)[0].row
        let all = try await median { _ = try await store.status() }
        let one = try await median { _ = try await store.status(of: row, in: "items") }
        let middle = try await store.outbox(after: Int64(before.local / 2), limit: 1)[0].operation
        let item = try await median { _ = try await store.outboxItem(middle) }
        Self.report(["status_us": all, "row_us": one, "item_us": item])
    }

    private func median(_ body: () async throws -> Void) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<21 {
            let begin = ContinuousClock.now
            try await body()
            times.append((ContinuousClock.now - begin).seconds * 1e6)
        }
        return times.sorted()[10]
    }

    /// The most memory that this process has held, in KiB; only on Linux.
    private static func peakMemory() -> Double {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Double($0.split(whereSeparator: \.isWhitespace)[1]) } ?? 0
    }

    private static func report(_ values: [String: Double]) {
        let members = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
        print("{\"impl\":\"swift\",\(members.joined(separator: ","))}")
    }
}
