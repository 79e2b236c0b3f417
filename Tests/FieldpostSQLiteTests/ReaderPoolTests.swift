import FieldpostCore
import FieldpostSQLite
import Foundation
import Testing

@Suite struct ReaderPoolTests {
    let folder: TemporaryFolder
    let writer: Writer
    let pool: ReaderPool

    init() throws {
        folder = try TemporaryFolder()
        writer = Writer(try folder.notes())
        pool = ReaderPool(path: folder.file("store.db"), limit: 2)
    }

    private static let count = "SELECT count(*) FROM notes"

    private func insert(_ id: String) async throws {
        try await writer.write { try $0.run("INSERT INTO notes (id) VALUES (?)", .text(id)) }
    }

    @Test func `a read sees one snapshot, from before its body begins`() async throws {
        let begun = Gate()
        let written = Gate()
        let counts = Task { [pool] in
            try await pool.read { connection in
                begun.open()
                written.wait()
                let first = try connection.scalar(Self.count)
                return [first, try connection.scalar(Self.count)]
            }
        }
        await begun.opened()

        try await insert("a")
        written.open()

        #expect(try await counts.value == [0, 0])
        #expect(try await pool.read { try $0.scalar(Self.count) } == 1)
    }

    @Test func `a read can not write`() async throws {
        await #expect {
            try await pool.read { try $0.run("DELETE FROM notes") }
        } throws: {
            ($0 as? StoreError)?.code == .readOnly
        }

        #expect(try await pool.read { try $0.scalar(Self.count) } == 0)
    }

    @Test func `reads beyond the limit wait, and all are served`() async throws {
        let sum = try await withThrowingTaskGroup(of: Int64.self) { group in
            for number in 0..<40 {
                group.addTask { [pool] in
                    try await pool.read { try $0.scalar("SELECT ?", .integer(Int64(number)))?.integer ?? 0 }
                }
            }
            return try await group.reduce(0, +)
        }

        #expect(sum == 780)
        #expect((1...2).contains(pool.connectionCount))
    }

    @Test func `waiting reads are served in their order, and a cancelled one leaves the line`() async throws {
        let single = ReaderPool(path: folder.file("store.db"), limit: 1)
        let held = Gate()
        let started = Gate()
        let order = Order()
        let holder = Task {
            try await single.read { _ in
                started.open()
                held.wait()
            }
        }
        await started.opened()
        var waiting: [Task<Void, any Error>] = []
        for number in 0..<3 {
            // Immediate tasks run to their first suspension, so each stands in line before the next is made.
            waiting.append(Task.immediate { try await single.read { _ in order.append(number) } })
        }

        waiting[1].cancel()
        held.open()

        try await holder.value
        try await waiting[0].value
        await #expect(throws: CancellationError.self) { try await waiting[1].value }
        try await waiting[2].value
        #expect(order.values == [0, 2])
    }

    @Test func `closing waits for running reads and refuses the others`() async throws {
        let held = Gate()
        let started = Gate()
        let running = Task { [pool] in
            try await pool.read { connection in
                started.open()
                held.wait()
                return try connection.scalar("SELECT 1")
            }
        }
        await started.opened()
        let closing = Task.immediate { [pool] in await pool.close() }

        await #expect {
            try await pool.read { _ in }
        } throws: {
            ($0 as? StoreError)?.code == .closed
        }
        held.open()

        #expect(try await running.value == 1)
        await closing.value
        #expect(pool.connectionCount == 0)
        await pool.close()
    }

    @Test func `a file that can not be opened fails the read, and a later read tries again`() async throws {
        let early = ReaderPool(path: folder.file("later.db"))
        await #expect {
            try await early.read { _ in }
        } throws: {
            ($0 as? StoreError)?.code == .missing
        }

        try Connection(path: folder.file("later.db")).execute("CREATE TABLE t (a)")

        #expect(try await early.read { try $0.scalar("SELECT count(*) FROM t") } == 0)
    }
}

/// Opens once; waited for by a blocked reader thread or by a task.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func open() {
        semaphore.signal()
        continuation.finish()
    }

    func wait() { semaphore.wait() }

    func opened() async { for await _ in stream {} }
}

private final class Order: @unchecked Sendable {
    // Safe because: the values are only reached under the lock.
    private let lock = NSLock()
    private var numbers: [Int] = []

    var values: [Int] { lock.withLock { numbers } }
    func append(_ number: Int) { lock.withLock { numbers.append(number) } }
}
