/// The body of one request as it arrives, for one reader.
///
/// Ends when the client has sent all of it. Throws `CancellationError` when the rest will never come: the client left, was too
/// slow or sent something malformed. While more than the high-water mark waits here, the server reads no further.
package final class BodyStream: AsyncSequence, Sendable {
    package typealias Element = [UInt8]

    private struct State {
        /// One array however many pieces came: a body sent byte by byte must not cost an array for each.
        var buffer: [UInt8] = []
        var end: End?
        var isPaused = false
        var reader: CheckedContinuation<[UInt8]?, any Error>?
    }

    private enum End { case complete, abandoned }

    private let highWater: Int
    /// Asks the loop to read on; called on the reader's thread.
    private let onDrained: @Sendable () -> Void
    private let state = Guarded(State())

    init(highWater: Int, onDrained: @escaping @Sendable () -> Void) {
        self.highWater = highWater
        self.onDrained = onDrained
    }

    /// Takes the next piece; `false` asks the loop to pause until `onDrained`.
    func append(_ piece: [UInt8]) -> Bool {
        let (reader, goOn) = state.withLock { state in
            if let reader = state.reader {
                state.reader = nil
                return (Optional(reader), true)
            }
            state.buffer.append(contentsOf: piece)
            state.isPaused = state.buffer.count > highWater
            return (nil, !state.isPaused)
        }
        reader?.resume(returning: piece)
        return goOn
    }

    func finish() { close(.complete)?.resume(returning: nil) }

    func abandon() { close(.abandoned)?.resume(throwing: CancellationError()) }

    private func close(_ end: End) -> CheckedContinuation<[UInt8]?, any Error>? {
        state.withLock { state in
            guard state.end == nil else { return nil }
            state.end = end
            defer { state.reader = nil }
            return state.reader
        }
    }

    /// All that has come since the last call, waiting for at least one byte; `nil` after the end.
    package func next() async throws -> [UInt8]? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = state.withLock { takeNext(&$0, or: continuation) }
                if ready.drained { onDrained() }
                if let result = ready.result { continuation.resume(with: result) }
            }
        } onCancel: {
            abandon()
        }
    }

    private func takeNext(
        _ state: inout State,
        or reader: CheckedContinuation<[UInt8]?, any Error>
    ) -> (result: Result<[UInt8]?, any Error>?, drained: Bool) {
        if state.end == .abandoned { return (.failure(CancellationError()), false) }
        if !state.buffer.isEmpty {
            let drained = state.isPaused
            state.isPaused = false
            defer { state.buffer = [] }
            return (.success(state.buffer), drained)
        }
        if state.end == .complete { return (.success(nil), false) }
        precondition(state.reader == nil, "A body stream has one reader.")
        state.reader = reader
        return (nil, false)
    }

    package func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// Reads the stream it came from; two iterators would share its pieces.
    package struct Iterator: AsyncIteratorProtocol {
        let stream: BodyStream

        package mutating func next() async throws -> [UInt8]? { try await stream.next() }
    }
}
