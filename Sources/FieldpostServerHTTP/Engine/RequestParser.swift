/// Turns the bytes of one connection into requests.
///
/// Pure: it knows no socket and no clock. The caller pulls events until there are none, and may stop pulling between two
/// requests, keeping the bytes that are left. However the bytes are split, the events are the same, except that body
/// bytes may come in more pieces. After a refusal nothing follows: where the next request would begin is unknown.
struct RequestParser {
    enum Event {
        case head(ParsedHead)
        /// The next bytes of the body, valid until the input is.
        case body(UnsafeRawBufferPointer)
        /// The request is complete; the next one may follow.
        case end
        case refused(RequestRefusal)
    }

    /// Where in the stream the next byte belongs; each case names what leaves it.
    private enum State {
        /// Before or inside a head. Leaves with the empty line that ends it.
        case head
        /// Inside a body of known length. Leaves with its last byte.
        case body(left: Int)
        /// Inside a chunked body. Leaves with the end of its trailers.
        case chunks
        /// After the last byte of a request. Leaves with the next pull.
        case complete
        /// After an error; never left.
        case refused
    }

    private let limits: HTTPLimits
    private var state = State.head
    private var scan = HeadScan()
    private var chunks = ChunkScan()
    /// The beginning of a head whose end has not come; no memory is held between requests.
    private var partialHead: [UInt8] = []

    init(limits: HTTPLimits) { self.limits = limits }

    /// Whether some of a head, but not all, has come.
    var isInsideHead: Bool {
        if case .head = state { partialHead.count > scan.headStart } else { false }
    }

    /// The next event in `input`, moving `offset` past what it took; `nil` once all is taken.
    mutating func next(in input: UnsafeRawBufferPointer, at offset: inout Int) -> Event? {
        switch state {
        case .complete:
            state = .head
            return .end
        case .refused:
            offset = input.count
            return nil
        case .head:
            return offset < input.count ? nextInHead(input, &offset) : nil
        case .body(let left):
            return offset < input.count ? nextInBody(input, &offset, left: left) : nil
        case .chunks:
            return nextInChunks(input, &offset)
        }
    }

    private mutating func nextInHead(_ input: UnsafeRawBufferPointer, _ offset: inout Int) -> Event? {
        let known = partialHead.count
        if known > 0 {
            // One byte above the limit is enough to see that it is exceeded.
            let taken = min(input.count - offset, limits.headBytes + 1 - known)
            partialHead.append(contentsOf: input[offset..<offset + taken])
            let head = partialHead
            return head.withUnsafeBytes { bytes in
                advanceHead(bytes, known: known, inputCount: input.count, &offset)
            }
        }
        let bytes = UnsafeRawBufferPointer(rebasing: input[offset...])
        return advanceHead(bytes, known: 0, inputCount: input.count, &offset)
    }

    /// Looks for the end of the head in `bytes`, of which `known` came with earlier input.
    private mutating func advanceHead(
        _ bytes: UnsafeRawBufferPointer,
        known: Int,
        inputCount: Int,
        _ offset: inout Int
    ) -> Event? {
        do throws(RequestRefusal) {
            guard let lines = try scan.advance(over: bytes, limit: limits.headBytes) else {
                if known == 0 { partialHead = Array(bytes) }
                offset = inputCount
                return nil
            }
            let head = try ParsedHead(lines: UnsafeRawBufferPointer(rebasing: bytes[lines]), limits: limits)
            offset += lines.upperBound + 2 - known
            partialHead = []
            scan = HeadScan()
            state =
                switch head.framing {
                case .none, .length(0): .complete
                case .length(let count): .body(left: count)
                case .chunked: .chunks
                }
            return .head(head)
        } catch {
            return refuse(error, inputCount, &offset)
        }
    }

    private mutating func nextInBody(_ input: UnsafeRawBufferPointer, _ offset: inout Int, left: Int) -> Event
    {
        let piece = UnsafeRawBufferPointer(rebasing: input[offset..<min(input.count, offset + left)])
        offset += piece.count
        state = piece.count == left ? .complete : .body(left: left - piece.count)
        return .body(piece)
    }

    private mutating func nextInChunks(_ input: UnsafeRawBufferPointer, _ offset: inout Int) -> Event? {
        do throws(RequestRefusal) {
            switch try chunks.advance(over: input, at: &offset, overheadLimit: limits.headBytes) {
            case .needsMore:
                return nil
            case .data(let piece):
                return .body(piece)
            case .end:
                chunks = ChunkScan()
                state = .head
                return .end
            }
        } catch {
            return refuse(error, input.count, &offset)
        }
    }

    private mutating func refuse(_ refusal: RequestRefusal, _ inputCount: Int, _ offset: inout Int) -> Event {
        state = .refused
        partialHead = []
        offset = inputCount
        return .refused(refusal)
    }
}

/// Why a request is refused before anyone sees it.
struct RequestRefusal: Error, Equatable {
    let status: Int
    /// One plain sentence for the client.
    let reason: String

    static func malformed(_ reason: String) -> RequestRefusal { RequestRefusal(status: 400, reason: reason) }
    static let headTooLarge = RequestRefusal(status: 431, reason: "The request head is too large.")
}
