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
    /// Begins to watch for a request to stop; what it returns waits for one.
    package var watchForStop: @Sendable () async -> @Sendable () async -> Void

    /// A console of the given parts.
    package init(
        write: @escaping @Sendable (String) -> Void,
        writeError: @escaping @Sendable (String) -> Void,
        nextLine: @escaping @Sendable () async -> [UInt8]? = { nil },
        isWatched: Bool = false,
        watchForStop: @escaping @Sendable () async -> @Sendable () async -> Void = { {} }
    ) {
        self.write = write
        self.writeError = writeError
        self.nextLine = nextLine
        self.isWatched = isWatched
        self.watchForStop = watchForStop
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
            watchForStop: { await StopSignals.caught() }
        )
    }
}

/// The signals by which an operator or a supervisor stops a program.
private final class StopSignals: @unchecked Sendable {
    // Safe because: the sources are made in `init` and dispatch sources may be used from any thread.
    private let sources: [any DispatchSourceSignal]
    private let stream: AsyncStream<Void>

    private static let numbers = [SIGTERM, SIGINT]

    private init() {
        let (stream, stop) = AsyncStream<Void>.makeStream()
        self.stream = stream
        sources = Self.numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { stop.yield() }
            return source
        }
    }

    /// Returns once the signals are caught, with what waits for the first: one that comes between is not lost.
    static func caught() async -> @Sendable () async -> Void {
        let signals = StopSignals()
        for source in signals.sources {
            await withCheckedContinuation { continuation in
                source.setRegistrationHandler { continuation.resume() }
                source.resume()
            }
        }
        return { await signals.first() }
    }

    private func first() async {
        for await _ in stream { break }
        // A second signal ends a program that takes too long.
        for source in sources { source.cancel() }
        for number in Self.numbers { signal(number, SIG_DFL) }
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
