internal import Dispatch
internal import Foundation

/// The program's surroundings: what it reads, what it writes, and who stops it.
///
/// Injected, so that a test runs a whole command in its own process.
package struct Console: Sendable {
    /// Writes text to standard output.
    package var write: @Sendable (String) -> Void
    /// Writes text to standard error.
    package var writeError: @Sendable (String) -> Void
    /// The next line of standard input without its end; `nil` at the end of input.
    package var nextLine: @Sendable () async -> [UInt8]?
    /// Whether a person watches standard error.
    package var isWatched: Bool
    /// Returns once the program shall stop.
    package var stopped: @Sendable () async -> Void

    /// A console of the given parts.
    package init(
        write: @escaping @Sendable (String) -> Void,
        writeError: @escaping @Sendable (String) -> Void,
        nextLine: @escaping @Sendable () async -> [UInt8]? = { nil },
        isWatched: Bool = false,
        stopped: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(1_000_000)) }
    ) {
        self.write = write
        self.writeError = writeError
        self.nextLine = nextLine
        self.isWatched = isWatched
        self.stopped = stopped
    }

    func line(_ text: String) { write(text + "\n") }
    func errorLine(_ text: String) { writeError(text + "\n") }

    /// The process's own standard streams and signals.
    package static func process() -> Console {
        // A reader that has gone away must not kill a server; ``StandardStream`` ends the others.
        signal(SIGPIPE, SIG_IGN)
        let input = LineReader(descriptor: STDIN_FILENO)
        let output = StandardStream(descriptor: STDOUT_FILENO)
        let errors = StandardStream(descriptor: STDERR_FILENO)
        return Console(
            write: { output.write($0, endsWithoutReader: true) },
            writeError: { errors.write($0, endsWithoutReader: false) },
            nextLine: { await input.next() },
            isWatched: isatty(STDERR_FILENO) == 1,
            stopped: { await StopSignals.first() }
        )
    }
}

/// Waits for the signals by which an operator or a supervisor stops a program.
private enum StopSignals {
    static func first() async {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let sources = [SIGTERM, SIGINT].map { number in
            // The source sees the signal only when its default, to end the process, is off.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        for await _ in stream { break }
        for source in sources { source.cancel() }
    }
}

/// Writes whole texts to a descriptor, one at a time.
private final class StandardStream: Sendable {
    private let descriptor: Int32
    private let lock = NSLock()

    init(descriptor: Int32) { self.descriptor = descriptor }

    func write(_ text: String, endsWithoutReader: Bool) {
        var text = text
        lock.lock()
        defer { lock.unlock() }
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = Foundation.write(descriptor, start, rest.count)
                if count > 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EPIPE, endsWithoutReader {
                    // As `head` expects of everything in front of it.
                    signal(SIGPIPE, SIG_DFL)
                    raise(SIGPIPE)
                } else if errno != EINTR {
                    return
                }
            }
        }
    }
}
