import Foundation
import Testing

@testable import FieldpostServerHTTP

@Suite struct OutputQueueTests {
    @Test func `a large file leaves in turns`() throws {
        let sink = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(sink) }
        var queue = OutputQueue()
        queue.append(try sparseFile(size: 9 << 20), offset: 0, length: 9 << 20)

        var outcomes: [String] = []
        while !queue.isEmpty { outcomes.append("\(queue.flush(to: sink))") }

        #expect(outcomes == ["interrupted", "interrupted", "emptied"])
    }

    @Test func `a file that is shorter than announced is a failure`() throws {
        let sink = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(sink) }
        var queue = OutputQueue()
        queue.append(try sparseFile(size: 10), offset: 0, length: 11)

        let outcome = queue.flush(to: sink)

        #expect("\(outcome)" == "failed")
    }

    private func sparseFile(size: Int) throws -> HTTPFile {
        let path = NSTemporaryDirectory() + "fieldpost-queue-\(UUID().uuidString)"
        defer { unlink(path) }
        let file = HTTPFile(takingOver: open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600))
        try #require(ftruncate(file.descriptor, off_t(size)) == 0)
        return file
    }
}
