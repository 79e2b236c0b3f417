internal import CFieldpostZlib

/// One zlib decoder for one gzip member after another.
///
/// zlib's state points back at its stream, so the stream lives at an address that never moves.
final class Inflater {
    /// What a call to ``inflate(_:into:)`` did.
    struct Progress {
        var consumed: Int
        var produced: Int
        var isMemberComplete: Bool
    }

    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    init() {
        stream.initialize(to: z_stream())
        // 15 bits of window, and 16 for "gzip only": a zlib or raw stream is refused.
        let code = fieldpost_inflate_init(stream, 15 + 16)
        precondition(code == Z_OK, "zlib does not start: out of memory or another version than at build")
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Prepares for the next member.
    func restart() { inflateReset(stream) }

    /// Decodes as much as fits in `output`.
    func inflate(
        _ input: UnsafeBufferPointer<UInt8>,
        into output: UnsafeMutableBufferPointer<UInt8>
    ) throws(GzipError) -> Progress {
        let offered = UInt32(clamping: input.count)
        let room = UInt32(clamping: output.count)
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.pointee.avail_in = offered
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = room
        let code = CFieldpostZlib.inflate(stream, Z_NO_FLUSH)
        // Z_BUF_ERROR only says that there was nothing to do.
        guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else { throw .malformed }
        return Progress(
            consumed: Int(offered - stream.pointee.avail_in),
            produced: Int(room - stream.pointee.avail_out),
            isMemberComplete: code == Z_STREAM_END
        )
    }
}
