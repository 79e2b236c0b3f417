/// Decodes a gzip that arrives in pieces, in bounded memory.
///
/// Members that follow one another, as `cat a.gz b.gz` makes them, decode as one content. Feed every piece,
/// then call ``finish()``: without it, an end that is missing goes unnoticed. After an error the reader is of
/// no use.
///
///     let reader = GzipReader()
///     while let piece = try file.next() { try reader.feed(piece) { parser.parse($0) } }
///     try reader.finish()
package final class GzipReader {
    private let inflater = Inflater()
    private let limit: Int
    private var chunk = [UInt8](repeating: 0, count: Gzip.chunkSize)
    private var produced = 0
    private var completeMembers = 0
    /// Bytes of the current member seen so far; 0 between members.
    private var memberBytes = 0

    /// Creates a reader that accepts at most `limit` bytes of content.
    package init(limit: Int = .max) { self.limit = limit }

    /// Decodes `bytes` and lends the content to `sink` in slices of at most 64 KiB.
    ///
    /// - Throws: ``GzipError``: `malformed`, `trailingGarbage`, `tooLarge`; or what `sink` throws.
    package func feed(_ bytes: [UInt8], _ sink: (ArraySlice<UInt8>) throws -> Void) throws {
        var offset = 0
        while true {
            if offset == bytes.count && memberBytes == 0 { return }
            let progress = try step(bytes, offset)
            offset += progress.consumed
            if progress.produced > 0 { try sink(chunk[..<progress.produced]) }
            if progress.consumed == 0 && progress.produced == 0 && !progress.isMemberComplete { return }
        }
    }

    /// Decodes `bytes` and returns the content, which may be a thousand times as large.
    ///
    /// - Throws: ``GzipError``: `malformed`, `trailingGarbage`, `tooLarge`.
    package func feed(_ bytes: [UInt8]) throws -> [UInt8] {
        var content: [UInt8] = []
        try feed(bytes) { content += $0 }
        return content
    }

    /// Says that no more bytes come.
    ///
    /// - Throws: ``GzipError``: `truncated` in the middle of a member or when nothing came at all.
    package func finish() throws(GzipError) {
        if memberBytes > 0 || completeMembers == 0 { throw .truncated }
    }

    private func step(_ bytes: [UInt8], _ offset: Int) throws(GzipError) -> Inflater.Progress {
        let progress: Inflater.Progress
        do throws(GzipError) {
            progress = try Gzip.step(inflater, bytes, offset, &chunk)
        } catch {
            // A member that is wrong from its first bytes is not a member.
            throw completeMembers > 0 && memberBytes < 2 ? .trailingGarbage : error
        }
        memberBytes += progress.consumed
        produced += progress.produced
        if produced > limit { throw .tooLarge(limit) }
        if progress.isMemberComplete {
            completeMembers += 1
            memberBytes = 0
            inflater.restart()
        }
        return progress
    }
}
