/// Base64 with the standard alphabet and padding, strict when reading.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    package static func encode(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        out.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let b0 = bytes[index]
            let b1 = left > 1 ? bytes[index + 1] : 0
            let b2 = left > 2 ? bytes[index + 2] : 0
            out.append(alphabet[Int(b0 >> 2)])
            out.append(alphabet[Int((b0 & 3) << 4 | b1 >> 4)])
            out.append(left > 1 ? alphabet[Int((b1 & 15) << 2 | b2 >> 6)] : 0x3D)
            out.append(left > 2 ? alphabet[Int(b2 & 63)] : 0x3D)
            index += 3
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// The bytes, or `nil` unless `text` is exactly what ``encode(_:)`` would have written.
    package static func decode(_ text: String) -> [UInt8]? {
        let input = Array(text.utf8)
        guard input.count % 4 == 0 else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(input.count / 4 * 3)
        var bits: UInt32 = 0
        var pads = 0
        for (index, byte) in input.enumerated() {
            if byte == 0x3D, index >= input.count - 2 {
                pads += 1
                bits <<= 6
            } else {
                guard pads == 0, let value = sextet(byte) else { return nil }
                bits = bits << 6 | value
            }
            if index % 4 == 3 {
                out.append(UInt8(truncatingIfNeeded: bits >> 16))
                if pads < 2 { out.append(UInt8(truncatingIfNeeded: bits >> 8)) }
                if pads < 1 { out.append(UInt8(truncatingIfNeeded: bits)) }
                let unused: UInt32 = pads == 2 ? 0xFFFF : pads == 1 ? 0xFF : 0
                if bits & unused != 0 { return nil }
                bits = 0
            }
        }
        return out
    }

    private static func sextet(_ byte: UInt8) -> UInt32? {
        switch byte {
        case 0x41...0x5A: UInt32(byte - 0x41)
        case 0x61...0x7A: UInt32(byte - 0x61 + 26)
        case 0x30...0x39: UInt32(byte - 0x30 + 52)
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
