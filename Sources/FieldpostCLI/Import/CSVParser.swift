/// A fault in a CSV file, with the line on which its record begins.
struct CSVError: Error, Equatable {
    let line: Int
    let message: String
}

/// One record, lent to whoever reads it.
struct CSVRecord {
    /// The line on which it begins, from 1.
    let line: Int
    fileprivate let bytes: UnsafeBufferPointer<UInt8>
    fileprivate let ends: [Int]

    /// How many fields it has.
    var count: Int { ends.count }

    /// The bytes of a field, without its quotes.
    subscript(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]])
    }
}

/// Reads CSV by RFC 4180 from pieces, record by record, in the memory of one record.
///
/// Lines may end in LF, CRLF or CR; empty lines and a byte order mark are passed over. A quote inside a field that does
/// not begin with one is a fault rather than a guess.
final class CSVParser {
    /// A longer record means a quote that was never closed.
    static let longestRecord = 8 << 20

    /// Each case says where the next byte falls.
    private enum State {
        /// Before the first byte of a field.
        case fieldStart
        case unquoted
        case quoted
        /// Behind a quote in a quoted field: its end, or the first half of a doubled one.
        case quote
    }

    private var state = State.fieldStart
    private var buffer: [UInt8] = []
    private var ends: [Int] = []
    private var line = 1
    private var recordLine = 1
    private var followsReturn = false
    /// The first bytes, until it is known whether they are a byte order mark.
    private var head: [UInt8]? = []
    private let take: (CSVRecord) throws -> Void

    /// A parser that lends each record to `take`.
    init(_ take: @escaping (CSVRecord) throws -> Void) { self.take = take }

    /// Reads the next piece.
    ///
    /// - Throws: ``CSVError``, or what `take` throws.
    func feed(_ piece: ArraySlice<UInt8>) throws {
        guard var head else { return try piece.withUnsafeBufferPointer { try parse($0) } }
        head += piece
        self.head = head
        if head.count >= 3 { try parseHead(head) }
    }

    /// Says that nothing more comes.
    func finish() throws {
        if let head { try parseHead(head) }
        if state == .quoted { throw CSVError(line: recordLine, message: "a quote is never closed; close it") }
        if state != .fieldStart || !ends.isEmpty { try endRecord() }
    }

    private func parseHead(_ bytes: [UInt8]) throws {
        head = nil
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw CSVError(line: 1, message: "the file is UTF-16; save it as UTF-8")
        }
        let mark = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        try bytes[mark...].withUnsafeBufferPointer { try parse($0) }
    }

    private func parse(_ bytes: UnsafeBufferPointer<UInt8>) throws {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if followsReturn {
                followsReturn = false
                if byte == 0x0A {
                    index += 1
                    continue
                }
            }
            switch state {
            case .fieldStart where byte == 0x22:
                state = .quoted
                index += 1
            case .fieldStart, .unquoted: index = try unquoted(bytes, index)
            case .quoted: index = quoted(bytes, index)
            case .quote:
                if byte == 0x22 {
                    buffer.append(byte)
                    state = .quoted
                } else if !(try end(byte)) {
                    throw CSVError(
                        line: recordLine,
                        message: "something follows a closing quote; double the quotes inside"
                    )
                }
                index += 1
            }
            if buffer.count > Self.longestRecord {
                throw CSVError(
                    line: recordLine,
                    message: "a record is longer than 8 MiB; a quote may be missing"
                )
            }
        }
    }

    /// Takes bytes up to what ends the field.
    private func unquoted(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) throws -> Int {
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            if byte == 0x2C || byte == 0x0A || byte == 0x0D || byte == 0x22 { break }
            index += 1
        }
        if index > start {
            buffer.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<index]))
            state = .unquoted
        }
        guard index < bytes.count else { return index }
        if !(try end(bytes[index])) {
            throw CSVError(line: recordLine, message: "a quote stands inside a field; quote the whole field")
        }
        return index + 1
    }

    /// Takes bytes up to the next quote.
    private func quoted(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < bytes.count, bytes[index] != 0x22 {
            if bytes[index] == 0x0A { line += 1 }
            index += 1
        }
        buffer.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<index]))
        guard index < bytes.count else { return index }
        state = .quote
        return index + 1
    }

    /// Ends the field or the record if `byte` does that.
    private func end(_ byte: UInt8) throws -> Bool {
        switch byte {
        case 0x2C:
            ends.append(buffer.count)
            state = .fieldStart
        case 0x0A, 0x0D:
            followsReturn = byte == 0x0D
            try endRecord()
            line += 1
            recordLine = line
        default: return false
        }
        return true
    }

    private func endRecord() throws {
        let isEmptyLine = ends.isEmpty && state == .fieldStart
        ends.append(buffer.count)
        state = .fieldStart
        if !isEmptyLine {
            try buffer.withUnsafeBufferPointer {
                try take(CSVRecord(line: recordLine, bytes: $0, ends: ends))
            }
        }
        buffer.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }
}
