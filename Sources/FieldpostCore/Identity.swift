/// The identity of one operation: a version 7 UUID as lower-case text, and its idempotency key.
///
/// Made on the device when the operation is recorded and the same at every retry.
public struct OperationID: Hashable, Sendable, CustomStringConvertible {
    /// 36 lower-case characters.
    public let text: String

    /// The identity written as `text` in either case, or `nil` unless it is a UUID.
    public init?(_ text: String) {
        guard let lowered = UUIDText.lowered(text) else { return nil }
        self.text = lowered
    }

    /// The identity read from our own tables.
    package init(stored text: String) { self.text = text }

    /// The reason in words.
    public var description: String { text }
}

/// A moment, in milliseconds since 1970.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public var milliseconds: Int64

    /// The moment `milliseconds` after 1970.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Earlier comes first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// The moment `milliseconds` later.
    public func adding(milliseconds: Int64) -> Timestamp {
        Timestamp(milliseconds: self.milliseconds &+ milliseconds)
    }
}

/// UUIDs as text.
package enum UUIDText {
    /// The lower-case form of `text`, or `nil` unless it is a UUID.
    package static func lowered(_ text: String) -> String? {
        var text = text
        let (valid, lower) = text.withUTF8 { bytes -> (Bool, Bool) in
            guard bytes.count == 36 else { return (false, false) }
            var lower = true
            for (index, byte) in bytes.enumerated() {
                switch byte {
                case 0x2D: if ![8, 13, 18, 23].contains(index) { return (false, false) }
                case 0x30...0x39, 0x61...0x66: if [8, 13, 18, 23].contains(index) { return (false, false) }
                case 0x41...0x46:
                    if [8, 13, 18, 23].contains(index) { return (false, false) }
                    lower = false
                default: return (false, false)
                }
            }
            return (true, lower)
        }
        return valid ? (lower ? text : text.lowercased()) : nil
    }

    /// A version 7 UUID: 48 bits of milliseconds, then `random`, so that ids made later sort later.
    package static func version7(at time: Timestamp, using random: inout some RandomNumberGenerator) -> String
    {
        let milliseconds = UInt64(bitPattern: max(0, time.milliseconds)) & 0xFFFF_FFFF_FFFF
        let high = milliseconds << 16 | 0x7000 | (random.next() & 0x0FFF)
        let low = (random.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
        return format(high, low)
    }

    private static func format(_ high: UInt64, _ low: UInt64) -> String {
        String(unsafeUninitializedCapacity: 36) { out in
            let digits: StaticString = "0123456789abcdef"
            var index = 0
            for word in [high, low] {
                for shift in stride(from: 60, through: 0, by: -4) {
                    if [8, 13, 18, 23].contains(index) {
                        out[index] = 0x2D
                        index += 1
                    }
                    out[index] = digits.utf8Start[Int(word >> UInt64(shift) & 15)]
                    index += 1
                }
            }
            return index
        }
    }
}
