internal import FieldpostCore
internal import Foundation

/// How Foundation's values are stored.
enum StoredTypes {
    /// The millisecond that `date` falls into; `nil` outside of 64 bits.
    static func milliseconds(_ date: Date) -> Int64? {
        Int64(exactly: (date.timeIntervalSince1970 * 1_000).rounded())
    }

    static func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Lower-case text; `uuidString` is upper case.
    static func text(_ uuid: UUID) -> String {
        withUnsafeBytes(of: uuid.uuid) { bytes in
            String(unsafeUninitializedCapacity: 36) { out in
                let digits: StaticString = "0123456789abcdef"
                var index = 0
                for (position, byte) in bytes.enumerated() {
                    if position == 4 || position == 6 || position == 8 || position == 10 {
                        out[index] = 0x2D
                        index += 1
                    }
                    out[index] = digits.utf8Start[Int(byte >> 4)]
                    out[index + 1] = digits.utf8Start[Int(byte & 15)]
                    index += 2
                }
                return index
            }
        }
    }

    /// The UUID written as `text`, in either case.
    static func uuid(_ text: UnsafeRawBufferPointer) -> UUID? {
        guard text.count == 36 else { return nil }
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let isValid = withUnsafeMutableBytes(of: &bytes) { out in
            var index = 0
            for position in 0..<16 {
                if position == 4 || position == 6 || position == 8 || position == 10 {
                    guard text[index] == 0x2D else { return false }
                    index += 1
                }
                guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return false }
                out[position] = high << 4 | low
                index += 2
            }
            return true
        }
        return isValid ? UUID(uuid: bytes) : nil
    }

    static func uuid(_ text: String) -> UUID? {
        var text = text
        return text.withUTF8 { uuid(UnsafeRawBufferPointer($0)) }
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x61...0x66: character - 0x57
        case 0x41...0x46: character - 0x37
        default: nil
        }
    }

    /// A decimal in its shortest form, with a point whatever the locale.
    static func text(_ decimal: Decimal) -> String { decimal.description }

    static func decimal(_ text: String) -> Decimal? { Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")) }
}

/// `value`, whose type the caller has compared with `Target`.
@inline(__always) func known<Source, Target>(_ value: Source, as: Target.Type) -> Target {
    // Safe because: every caller has tested that the two types are the same.
    unsafeBitCast(value, to: Target.self)
}
