import Fieldpost
import Testing

@Suite struct InMemoryTests {
    @Test func `a store in memory captures, watches and reads beside writes`() async throws {
        let store = try await Store.inMemory(Garage.schema)
        var counts = store.watchCount(Job.all).makeAsyncIterator()
        #expect(try await counts.next() == 0)

        let job = Job()
        try await store.insert(job)

        #expect(try await counts.next() == 1)
        #expect(try await store.outbox().map(\.action) == ["create"])
        #expect(try await store.status(of: job) == .local)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask { try await store.fetchCount(Job.where(\.id == job.id)) }
                group.addTask {
                    try await store.update(job) { $0.totalIDR += 1 }
                    return 1
                }
            }
            for try await count in group { #expect(count == 1) }
        }
        #expect(try await store.fetchOne(Job.self, job.id)?.totalIDR == 20)
    }

    @Test func `two stores in memory have nothing in common`() async throws {
        let one = try await Store.inMemory(Garage.schema)
        let two = try await Store.inMemory(Garage.schema)

        try await one.insert(Job())

        #expect(try await two.fetchCount(Job.all) == 0)
    }
}
