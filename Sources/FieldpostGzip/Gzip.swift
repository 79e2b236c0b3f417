internal import CFieldpostZlib

/// Gzip of whole bodies in memory (RFC 1952).
package enum Gzip {
    /// Compresses to one gzip member without a name or a time, so equal input gives equal output.
    ///
    /// - Parameters:
    ///   - bytes: At most 2 GiB; a body that large is a programmer error.
    ///   - level: 1 (fast) to 9 (small); 0 stores.
    package static func compress(_ bytes: [UInt8], level: Int32 = 6) -> [UInt8] {
        precondition(bytes.count <= Int32.max, "compress large content in pieces")
        var stream = z_stream()
        return withUnsafeMutablePointer(to: &stream) { stream in
            let code = fieldpost_deflate_init(stream, level, 15 + 16)
            precondition(code == Z_OK, "zlib refuses the level, or memory ran out")
            defer { deflateEnd(stream) }
            let bound = Int(deflateBound(stream, UInt(bytes.count)))
            return [UInt8](unsafeUninitializedCapacity: bound) { output, count in
                bytes.withUnsafeBufferPointer { input in
                    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                    stream.pointee.avail_in = UInt32(input.count)
                    stream.pointee.next_out = output.baseAddress
                    stream.pointee.avail_out = UInt32(bound)
                    let code = deflate(stream, Z_FINISH)
                    precondition(code == Z_STREAM_END, "deflateBound is a bound")
                }
                count = bound - Int(stream.pointee.avail_out)
            }
        }
    }

    /// Decompresses exactly one gzip member.
    ///
    /// A bomb stops at the limit: it never holds more than `limit` bytes and one chunk.
    ///
    /// - Parameters:
    ///   - bytes: The whole gzip.
    ///   - limit: The most bytes of content to accept.
    /// - Throws: ``GzipError``: `malformed`, `truncated`, `trailingGarbage`, `tooLarge`.
    package static func decompress(_ bytes: [UInt8], limit: Int) throws(GzipError) -> [UInt8] {
        let inflater = Inflater()
        var output = BoundedOutput(limit: limit, hint: contentSize(bytes))
        var offset = 0
        var chunk = [UInt8](repeating: 0, count: min(chunkSize, max(limit, 0) + 1))
        while true {
            let progress = try step(inflater, bytes, offset, &chunk)
            offset += progress.consumed
            try output.append(chunk, count: progress.produced)
            if progress.isMemberComplete { break }
            if progress.consumed == 0 && progress.produced == 0 { throw .truncated }
        }
        if offset < bytes.count { throw .trailingGarbage }
        return output.bytes
    }

    /// How much is decoded at a time.
    static let chunkSize = 64 * 1_024

    /// Decodes from `offset` until the input ends or `chunk` is full.
    static func step(
        _ inflater: Inflater,
        _ bytes: [UInt8],
        _ offset: Int,
        _ chunk: inout [UInt8]
    ) throws(GzipError) -> Inflater.Progress {
        // The standard library's closures rethrow untyped errors, so the result carries the typed one out.
        let result = bytes.withUnsafeBufferPointer { input in
            chunk.withUnsafeMutableBufferPointer { output in
                Result { () throws(GzipError) in
                    try inflater.inflate(UnsafeBufferPointer(rebasing: input[offset...]), into: output)
                }
            }
        }
        return try result.get()
    }

    /// What the gzip says of its size: a hint, as the sender may lie, and never above deflate's best ratio.
    private static func contentSize(_ bytes: [UInt8]) -> Int {
        guard bytes.count >= 18 else { return 0 }
        let size = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        return min(size, bytes.count * 1_032)
    }
}

/// Collects output and refuses to grow beyond its limit.
private struct BoundedOutput {
    private(set) var bytes: [UInt8] = []
    private let limit: Int

    init(limit: Int, hint: Int) {
        self.limit = limit
        bytes.reserveCapacity(max(0, min(limit, hint)))
    }

    mutating func append(_ chunk: [UInt8], count: Int) throws(GzipError) {
        let needed = bytes.count + count
        if needed > limit { throw .tooLarge(limit) }
        // The array alone would double its room, beyond the limit.
        if needed > bytes.capacity { bytes.reserveCapacity(min(limit, max(needed, bytes.capacity * 2))) }
        bytes.append(contentsOf: chunk[..<count])
    }
}
