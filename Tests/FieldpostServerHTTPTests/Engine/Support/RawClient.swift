import Foundation
import Glibc

@testable import FieldpostServerHTTP

/// A client that sends exactly the bytes it is told to.
///
/// Waits on threads of its own, because a blocked thread of the task pool would hold up the server's handlers. Every wait
/// ends after 60 s, so that a hanging server fails a test instead of stopping the run.
final class RawClient: @unchecked Sendable {
    // Safe because: a test uses its client from one task at a time.
    private let descriptor: Int32
    private var received: [UInt8] = []

    struct Answer: Equatable {
        var status = 0
        var headers: [String: String] = [:]
        var body = ""
    }

    struct Broken: Error { let why: String }

    init(_ address: HTTPServerAddress, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = address.port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &target.sin_addr)
        let result = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result != 0 { throw Broken(why: "connect: \(errno)") }
    }

    deinit { if !isClosed { close(descriptor) } }

    private var isClosed = false

    /// Leaves without a word.
    func leave() {
        isClosed = true
        close(descriptor)
    }

    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends a text; how many of its bytes the connection took.
    @discardableResult
    func send(_ text: String) -> Int { send(Array(text.utf8)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Int {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return sent }
            sent += count
        }
        return sent
    }

    /// Sends much from a thread, because nobody may be reading.
    func sendAll(_ bytes: [UInt8]) async -> Int { await onThread { self.send(bytes) } }

    /// The next answer.
    func answer(toHead: Bool = false) async throws -> Answer {
        try await onThread { Result { try self.readAnswer(toHead: toHead) } }.get()
    }

    /// All that comes until the server closes; throws when it does not, or resets.
    func textUntilClosed() async throws -> String {
        try await onThread {
            Result {
                while try self.readMore() {}
                defer { self.received = [] }
                return String(decoding: self.received, as: UTF8.self)
            }
        }.get()
    }

    /// Everything up to and including `mark`.
    func text(through mark: String) async throws -> String {
        try await onThread { Result { String(decoding: try self.take(through: mark), as: UTF8.self) } }.get()
    }

    private func readAnswer(toHead: Bool) throws -> Answer {
        let head = String(decoding: try take(through: "\r\n\r\n"), as: UTF8.self)
        var lines = head.components(separatedBy: "\r\n").filter { !$0.isEmpty }
        var answer = Answer()
        answer.status = Int(lines.removeFirst().split(separator: " ")[1]) ?? 0
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            answer.headers[parts[0].lowercased()] = parts[1]
        }
        if toHead || answer.status < 200 || answer.status == 204 { return answer }
        if answer.headers["transfer-encoding"] == "chunked" {
            answer.body = try readChunks()
        } else if let length = answer.headers["content-length"].flatMap(Int.init) {
            answer.body = String(decoding: try take(count: length), as: UTF8.self)
        } else {
            while try readMore() {}
            answer.body = String(decoding: received, as: UTF8.self)
        }
        return answer
    }

    private func readChunks() throws -> String {
        var body: [UInt8] = []
        while true {
            let line = String(decoding: try take(through: "\r\n").dropLast(2), as: UTF8.self)
            guard let size = Int(line, radix: 16) else { throw Broken(why: "chunk size “\(line)”") }
            body += try take(count: size)
            guard try take(count: 2) == [13, 10] else { throw Broken(why: "chunk end") }
            if size == 0 { return String(decoding: body, as: UTF8.self) }
        }
    }

    private func take(through mark: String) throws -> [UInt8] {
        let mark = Data(mark.utf8)
        while true {
            if let range = Data(received).range(of: mark) { return try take(count: range.upperBound) }
            if try !readMore() {
                throw Broken(why: "closed after “\(String(decoding: received, as: UTF8.self))”")
            }
        }
    }

    private func take(count: Int) throws -> [UInt8] {
        while received.count < count {
            if try !readMore() { throw Broken(why: "closed after \(received.count) of \(count) bytes") }
        }
        defer { received.removeFirst(count) }
        return Array(received.prefix(count))
    }

    /// Whether more came before the server closed.
    private func readMore() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0 { throw Broken(why: String(cString: strerror(errno))) }
        received += buffer.prefix(count)
        return count > 0
    }
}

/// Runs something that blocks on a thread of its own.
func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}
