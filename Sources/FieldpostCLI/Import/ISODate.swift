/// Reads ISO 8601 dates as milliseconds since 1970, without Foundation: a large file holds millions.
enum ISODate {
    /// `2018-09-01`, with or without `T13:48`, seconds, fractions (cut at milliseconds) and a zone; without one it is UTC.
    ///
    /// - Returns: `nil` for anything else, an impossible date included.
    static func milliseconds(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        var text = Scanner(bytes)
        guard let year = text.digits(4), text.skip("-"), let month = text.digits(2), text.skip("-"),
            let day = text.digits(2), (1...12).contains(month), (1...length(of: month, year)).contains(day)
        else { return nil }
        let date = days(year, month, day) * 86_400_000
        if text.isAtEnd { return date }
        guard text.skip("T") || text.skip(" ") || text.skip("t"), let time = time(&text),
            let zone = zone(&text),
            text.isAtEnd
        else { return nil }
        return date + time - zone
    }

    private static func time(_ text: inout Scanner) -> Int64? {
        guard let hour = text.digits(2), hour < 24, text.skip(":"), let minute = text.digits(2), minute < 60
        else {
            return nil
        }
        var sum = (hour * 60 + minute) * 60_000
        guard text.skip(":") else { return sum }
        guard let second = text.digits(2), second < 60 else { return nil }
        sum += second * 1_000
        if text.skip(".") || text.skip(",") {
            guard let fraction = text.fraction() else { return nil }
            sum += fraction
        }
        return sum
    }

    private static func zone(_ text: inout Scanner) -> Int64? {
        if text.isAtEnd || text.skip("Z") || text.skip("z") { return 0 }
        let sign: Int64
        if text.skip("+") { sign = 1 } else if text.skip("-") { sign = -1 } else { return nil }
        guard let hours = text.digits(2), hours < 24 else { return nil }
        let hasColon = text.skip(":")
        if text.isAtEnd { return hasColon ? nil : sign * hours * 3_600_000 }
        guard let minutes = text.digits(2), minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes) * 60_000
    }

    private static func length(of month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01 in the Gregorian calendar, by Howard Hinnant's algorithm for years from March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private struct Scanner {
        private let bytes: UnsafeBufferPointer<UInt8>
        private var position = 0

        init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

        var isAtEnd: Bool { position == bytes.count }

        mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        mutating func digits(_ count: Int) -> Int64? {
            guard position + count <= bytes.count else { return nil }
            var value: Int64 = 0
            for index in position..<position + count {
                guard (0x30...0x39).contains(bytes[index]) else { return nil }
                value = value * 10 + Int64(bytes[index] - 0x30)
            }
            position += count
            return value
        }

        /// The milliseconds of a fraction of any length.
        mutating func fraction() -> Int64? {
            var value: Int64 = 0
            var count = 0
            while position < bytes.count, (0x30...0x39).contains(bytes[position]) {
                if count < 3 { value = value * 10 + Int64(bytes[position] - 0x30) }
                count += 1
                position += 1
            }
            guard count > 0 else { return nil }
            for _ in count..<max(count, 3) { value *= 10 }
            return value
        }
    }
}
