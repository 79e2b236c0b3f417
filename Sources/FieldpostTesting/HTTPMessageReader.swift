/// Reads whole HTTP/1.1 messages from a socket, byte for byte as they came.
struct HTTPMessageReader {
    let socket: Socket
    private var buffer: [UInt8] = []

    init(_ socket: Socket) { self.socket = socket }

    /// One message with its head taken apart.
    struct Message {
        var bytes: [UInt8]
        var headLength: Int
        /// The first line.
        var start: String
        /// The body as it travelled.
        var body: ArraySlice<UInt8> { bytes[headLength...] }
    }

    /// Whether a message has begun to arrive.
    var hasInput: Bool { !buffer.isEmpty }

    /// The next message; `nil` when the stream ends before it is whole.
    ///
    /// - Parameter isAnswer: an answer without a length lasts until the stream ends, and some have no body.
    mutating func next(isAnswer: Bool = false) -> Message? {
        guard let headLength = readHead() else { return nil }
        let lines = String(decoding: buffer[..<headLength], as: UTF8.self).split(separator: "\r\n")
        guard let start = lines.first.map(String.init) else { return nil }
        let fields = lines.dropFirst().map { $0.lowercased().filter { $0 != " " } }
        var end: Int? = headLength
        if fields.contains("transfer-encoding:chunked") {
            end = readChunks(from: headLength)
        } else if let field = fields.first(where: { $0.hasPrefix("content-length:") }) {
            end = Int(field.dropFirst("content-length:".count)).flatMap { readCount(headLength + $0) }
        } else if isAnswer, !Self.hasNoBody(start) {
            while readMore() {}
            end = buffer.count
        }
        guard let end else { return nil }
        defer { buffer.removeFirst(end) }
        return Message(bytes: Array(buffer[..<end]), headLength: headLength, start: start)
    }

    private static func hasNoBody(_ start: String) -> Bool {
        let status = start.split(separator: " ").dropFirst().first ?? ""
        return status == "204" || status == "304" || status.hasPrefix("1")
    }

    private mutating func readMore() -> Bool {
        let bytes = socket.receive()
        buffer += bytes
        return !bytes.isEmpty
    }

    private mutating func readHead() -> Int? {
        let mark = Array("\r\n\r\n".utf8)
        var searched = 0
        while true {
            if buffer.count >= mark.count {
                for index in max(0, searched - 3)...(buffer.count - mark.count)
                where buffer[index..<index + 4].elementsEqual(mark) { return index + 4 }
            }
            searched = buffer.count
            if !readMore() { return nil }
        }
    }

    private mutating func readCount(_ count: Int) -> Int? {
        while buffer.count < count { if !readMore() { return nil } }
        return count
    }

    private mutating func readChunks(from start: Int) -> Int? {
        var place = start
        while true {
            guard let lineEnd = readLine(from: place) else { return nil }
            let line = String(decoding: buffer[place..<lineEnd - 2], as: UTF8.self)
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16),
                let end = readCount(lineEnd + size + 2)
            else { return nil }
            place = end
            if size == 0 { return place }
        }
    }

    /// Where the line that starts at `place` ends, its line break included.
    private mutating func readLine(from place: Int) -> Int? {
        while true {
            if let end = buffer[place...].firstIndex(of: UInt8(ascii: "\n")) { return end + 1 }
            if !readMore() { return nil }
        }
    }
}
