/// Bytes as URL-safe base64 without padding (RFC 4648, section 5).
package enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8] = digits.enumerated().reduce(into: Array(repeating: 255, count: 256)) {
        $0[Int($1.element)] = UInt8($1.offset)
    }

    /// The text for `bytes`.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(digits[Int(bits >> count & 63)])
            }
        }
        if count > 0 { text.append(digits[Int(bits << (6 - count) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of `text`, or `nil` unless it is exactly what ``encode(_:)`` writes.
    ///
    /// Padding, other digits and stray bits at the end are refused, so one value has one text.
    package static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count * 3 / 4)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for digit in text.utf8 {
            let value = values[Int(digit)]
            guard value < 64 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        guard count < 6, bits & (1 << count - 1) == 0 else { return nil }
        return bytes
    }
}
