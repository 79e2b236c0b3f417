import Glibc

/// Finds the end of a request head, looking at each byte once however the bytes come.
///
/// Lines end with CR LF only: a bare LF is refused at once, because a proxy in front that splits lines elsewhere would see
/// other requests than we do.
struct HeadScan {
    /// Where the request line begins: after the one empty line that RFC 9112, 2.2 lets a client send before it.
    private(set) var headStart = 0
    private var lineStart = 0
    private var scanned = 0

    /// The range of the head's lines within `bytes`, each with its CR LF, without the empty line after them;
    /// `nil` when the end has not come.
    mutating func advance(
        over bytes: UnsafeRawBufferPointer,
        limit: Int
    ) throws(RequestRefusal) -> Range<Int>? {
        while let feed = Self.lineFeed(in: bytes, from: scanned), feed < limit {
            guard feed > lineStart, bytes[feed - 1] == .carriageReturn else {
                throw .malformed("A line of the request head does not end with CR LF.")
            }
            let isEmpty = feed - 1 == lineStart
            if isEmpty, lineStart > headStart { return headStart..<lineStart }
            if isEmpty {
                guard headStart == 0 else { throw .malformed("The request line is empty.") }
                headStart = feed + 1
            }
            lineStart = feed + 1
            scanned = feed + 1
        }
        if bytes.count >= limit { throw .headTooLarge }
        scanned = bytes.count
        return nil
    }

    private static func lineFeed(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard let base = bytes.baseAddress, start < bytes.count,
            let found = memchr(base + start, Int32(UInt8.lineFeed), bytes.count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}

extension UInt8 {
    static let tab: UInt8 = 9
    static let lineFeed: UInt8 = 10
    static let carriageReturn: UInt8 = 13
    static let space: UInt8 = 32

    /// Whether RFC 9110 allows the byte in a method or a field name (`tchar`).
    var isHTTPToken: Bool {
        // One bit for each of the 128 ASCII codes.
        let bits: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && bits >> UInt64(self & 63) & 1 == 1
    }

    /// Whether the byte may stand in a field value: no control character but the tab.
    var isHTTPFieldValue: Bool { self >= 32 && self != 127 || self == .tab }
}
