import Glibc

/// What a socket has not taken yet, in order.
struct OutputQueue {
    private enum Piece {
        case bytes([UInt8], from: Int)
        case file(HTTPFile, offset: Int, length: Int)
    }

    enum Outcome {
        /// Nothing waits any more.
        case emptied
        /// The socket is full; `progressed` says whether it took anything this time.
        case blocked(progressed: Bool)
        /// The socket would take more, but others want a turn.
        case interrupted
        /// The connection is broken, or a file was shorter than announced.
        case failed
    }

    /// Small pieces are joined, so that a stalled stream of one-byte writes does not cost an array each.
    private static let joinedSize = 16 * 1024
    /// The most that one call sends, so that a fast reader of a large file does not hold the loop.
    private static let turnSize = 4 << 20

    private var pieces: [Piece] = []
    private var first = 0

    var isEmpty: Bool { first == pieces.count }

    mutating func append(_ bytes: [UInt8]) {
        if !isEmpty, case .bytes(var last, let from) = pieces[pieces.count - 1],
            last.count + bytes.count <= Self.joinedSize
        {
            pieces.removeLast()
            last.append(contentsOf: bytes)
            pieces.append(.bytes(last, from: from))
        } else if !bytes.isEmpty {
            pieces.append(.bytes(bytes, from: 0))
        }
    }

    mutating func append(_ file: HTTPFile, offset: Int, length: Int) {
        if length > 0 { pieces.append(.file(file, offset: offset, length: length)) }
    }

    /// Sends `bytes` without copying them when nothing waits before them.
    mutating func send(_ bytes: [UInt8], to descriptor: Int32) -> Outcome {
        guard isEmpty else {
            append(bytes)
            return .blocked(progressed: false)
        }
        let sent = bytes.withUnsafeBytes { Self.send($0, to: descriptor) }
        guard let sent else { return .failed }
        if sent == bytes.count { return .emptied }
        pieces = [.bytes(Array(bytes[sent...]), from: 0)]
        first = 0
        return .blocked(progressed: sent > 0)
    }

    /// Sends until the queue is empty, the socket full or the turn over.
    ///
    /// Only a full socket reports itself writable again: after `interrupted` the caller must come back by itself.
    mutating func flush(to descriptor: Int32) -> Outcome {
        var total = 0
        while !isEmpty {
            if total >= Self.turnSize { return .interrupted }
            guard let sent = sendFirst(to: descriptor) else { return .failed }
            if sent == 0 { return .blocked(progressed: total > 0) }
            total += sent
        }
        pieces = []
        first = 0
        return .emptied
    }

    /// Sends some of the first piece: how much, 0 when the socket is full, `nil` on failure.
    private mutating func sendFirst(to descriptor: Int32) -> Int? {
        switch pieces[first] {
        case .bytes(let bytes, let from):
            let sent = bytes.withUnsafeBytes {
                Self.send(UnsafeRawBufferPointer(rebasing: $0[from...]), to: descriptor)
            }
            guard let sent else { return nil }
            if from + sent == bytes.count {
                dropFirst()
            } else {
                pieces[first] = .bytes(bytes, from: from + sent)
            }
            return sent
        case .file(let file, let offset, let length):
            var position = off_t(offset)
            let sent = sendfile(descriptor, file.descriptor, &position, min(length, Self.turnSize))
            if sent < 0 { return errno == EAGAIN || errno == EINTR ? 0 : nil }
            // Zero bytes of a file that should have more: it was cut since its length was announced.
            guard sent > 0 else { return nil }
            if sent == length {
                dropFirst()
            } else {
                pieces[first] = .file(file, offset: offset + sent, length: length - sent)
            }
            return sent
        }
    }

    private mutating func dropFirst() {
        pieces[first] = .bytes([], from: 0)
        first += 1
    }

    /// Bytes taken, 0 when the socket is full, `nil` when the connection is broken.
    private static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int? {
        while true {
            let sent = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if sent >= 0 { return sent }
            if errno == EAGAIN { return 0 }
            if errno != EINTR { return nil }
        }
    }
}
