internal import Dispatch
internal import Foundation

/// Reads lines of a descriptor without blocking a thread of the task pool.
final class LineReader: @unchecked Sendable {
    // Safe because: everything mutable is only touched on the queue.
    private let queue = DispatchQueue(label: "fieldpost.input")
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var scanned = 0
    private var isAtEnd = false

    /// A command is far shorter; what is longer is cut there and then refused as JSON.
    static let longestLine = 64 << 20
    private static let chunk = 64 << 10

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// The next line without its end; `nil` at the end of input.
    func next() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.readLine()) }
        }
    }

    private func readLine() -> [UInt8]? {
        while true {
            if let end = buffer[scanned...].firstIndex(of: 0x0A) { return take(upTo: end, dropping: 1) }
            scanned = buffer.count
            if isAtEnd || buffer.count >= Self.longestLine {
                return buffer.isEmpty ? nil : take(upTo: buffer.count, dropping: 0)
            }
            fill()
        }
    }

    private func take(upTo end: Int, dropping count: Int) -> [UInt8] {
        var line = Array(buffer[..<end])
        buffer.removeFirst(end + count)
        scanned = 0
        if line.last == 0x0D { line.removeLast() }
        return line
    }

    private func fill() {
        let chunk = [UInt8](unsafeUninitializedCapacity: Self.chunk) { space, count in
            var got = -1
            repeat { got = read(descriptor, space.baseAddress, Self.chunk) } while got < 0 && errno == EINTR
            count = max(0, got)
        }
        if chunk.isEmpty { isAtEnd = true }
        buffer += chunk
    }
}
