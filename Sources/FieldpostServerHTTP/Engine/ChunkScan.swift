/// Takes a chunked body apart (RFC 9112, 7.1), byte by byte where it is framing and in pieces where it is data.
///
/// Extensions and trailers are checked for form, bounded together and thrown away: nobody here knows one, and a trailer
/// must never become a header. Sizes are plain hexadecimal digits, at most eight.
struct ChunkScan {
    enum Step {
        case needsMore
        case data(UnsafeRawBufferPointer)
        case end
    }

    /// The byte that is expected next.
    private enum State {
        case size(Int, digits: Int)
        case chunkExtension(Int)
        case sizeLineFeed(Int)
        case data(left: Int)
        case dataReturn, dataLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed
        case endLineFeed
    }

    private var state = State.size(0, digits: 0)
    /// Bytes of extensions and trailers so far; without a bound, one-byte chunks could carry 4 KiB of nothing each.
    private var overhead = 0

    /// Takes framing from `input` until data or the end comes.
    mutating func advance(
        over input: UnsafeRawBufferPointer,
        at offset: inout Int,
        overheadLimit: Int
    ) throws(RequestRefusal) -> Step {
        while offset < input.count {
            if case .data(let left) = state {
                let piece = UnsafeRawBufferPointer(rebasing: input[offset..<min(input.count, offset + left)])
                offset += piece.count
                state = piece.count == left ? .dataReturn : .data(left: left - piece.count)
                return .data(piece)
            }
            let byte = input[offset]
            offset += 1
            if case .endLineFeed = state {
                guard byte == .lineFeed else { throw Self.malformed }
                return .end
            }
            state = try next(after: byte)
            guard overhead <= overheadLimit else {
                throw .malformed("The chunked body has too many extensions or trailers.")
            }
        }
        return .needsMore
    }

    private mutating func next(after byte: UInt8) throws(RequestRefusal) -> State {
        switch (state, byte) {
        case (.size(let size, let digits), _) where byte.hexadecimalValue != nil && digits < 8:
            return .size(size << 4 | Int(byte.hexadecimalValue ?? 0), digits: digits + 1)
        case (.size(let size, let digits), UInt8(ascii: ";")) where digits > 0: return .chunkExtension(size)
        case (.size(let size, let digits), .carriageReturn) where digits > 0: return .sizeLineFeed(size)
        case (.chunkExtension(let size), .carriageReturn): return .sizeLineFeed(size)
        case (.chunkExtension, _) where byte.isHTTPFieldValue:
            overhead += 1
            return state
        case (.sizeLineFeed(let size), .lineFeed): return size == 0 ? .trailerStart : .data(left: size)
        case (.dataReturn, .carriageReturn): return .dataLineFeed
        case (.dataLineFeed, .lineFeed): return .size(0, digits: 0)
        default: return try nextInTrailers(after: byte)
        }
    }

    private mutating func nextInTrailers(after byte: UInt8) throws(RequestRefusal) -> State {
        overhead += 1
        switch (state, byte) {
        case (.trailerStart, .carriageReturn): return .endLineFeed
        case (.trailerStart, _) where byte.isHTTPToken: return .trailerName
        case (.trailerName, UInt8(ascii: ":")): return .trailerValue
        case (.trailerName, _) where byte.isHTTPToken: return .trailerName
        case (.trailerValue, .carriageReturn): return .trailerLineFeed
        case (.trailerValue, _) where byte.isHTTPFieldValue: return .trailerValue
        case (.trailerLineFeed, .lineFeed): return .trailerStart
        default: throw Self.malformed
        }
    }

    private static let malformed = RequestRefusal.malformed("The chunked body is malformed.")
}

extension UInt8 {
    var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
