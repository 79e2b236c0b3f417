internal import FieldpostCore
internal import Foundation

/// How Foundation's values are stored.
enum StoredTypes {
    /// The millisecond that `date` falls into; `nil` outside of 64 bits.
    static func milliseconds(_ date: Date) -> Int64? {
        Int64(exactly: (date.timeIntervalSince1970 * 1_000).rounded())
    }

    static func date(_ milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }

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
        guard text.count == 36, text[8] == 0x2D, text[13] == 0x2D, text[18] == 0x2D, text[23] == 0x2D else {
            return nil
        }
        var words: (UInt64, UInt64) = (0, 0)
        var wrong: UInt8 = 0
        func take(_ word: inout UInt64, _ range: Range<Int>) {
            for index in range {
                let digit = digit(text[index])
                wrong |= digit
                word = word << 4 | UInt64(digit & 15)
            }
        }
        take(&words.0, 0..<8)
        take(&words.0, 9..<13)
        take(&words.0, 14..<18)
        take(&words.1, 19..<23)
        take(&words.1, 24..<36)
        if wrong > 15 { return nil }
        words = (words.0.bigEndian, words.1.bigEndian)
        return UUID(uuid: withUnsafeBytes(of: words) { $0.loadUnaligned(as: uuid_t.self) })
    }

    static func uuid(_ text: String) -> UUID? {
        var text = text
        return text.withUTF8 { uuid(UnsafeRawBufferPointer($0)) }
    }

    /// The value of a hexadecimal digit; 16 for anything else.
    @inline(__always) private static func digit(_ character: UInt8) -> UInt8 {
        let number = character &- 0x30
        if number < 10 { return number }
        let letter = (character | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : 16
    }

    /// A decimal in its shortest form, with a point whatever the locale.
    static func text(_ decimal: Decimal) -> String { decimal.description }

    static func decimal(_ text: String) -> Decimal? {
        Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    }
}

/// `value`, whose type the caller has compared with `Target`.
@inline(__always) func known<Source, Target>(_ value: Source, as: Target.Type) -> Target {
    // Safe because: every caller has tested that the two types are the same.
    unsafeBitCast(value, to: Target.self)
}
