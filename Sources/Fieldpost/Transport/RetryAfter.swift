internal import FieldpostCore

/// The `Retry-After` header: seconds, or an HTTP date.
enum RetryAfter {
    /// Seconds from `now`, never negative, at most a day; `nil` for what is neither.
    static func seconds(_ header: String?, now: Timestamp) -> Int? {
        guard let header else { return nil }
        if let seconds = whole(header) { return seconds }
        guard let date = date(header) else { return nil }
        return Int(max(0, min(Int64(day), (date - now.milliseconds + 999) / 1_000)))
    }

    /// A number of seconds in digits, at most a day; `nil` for anything else.
    static func whole(_ header: String) -> Int? {
        digits(header).map { Int(min($0, Int64(day))) }
    }

    /// A number in digits; the largest there is for a longer one, `nil` for anything else.
    static func digits(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text) ?? .max
    }

    private static let day = 86_400

    /// Milliseconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func date(_ text: String) -> Int64? {
        let parts = text.split(whereSeparator: { $0 == " " || $0 == ":" || $0 == "," })
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        // The ranges keep what a stranger sends from overflowing the arithmetic below.
        func number(_ index: Int, _ range: ClosedRange<Int64>) -> Int64? {
            Int64(parts[index]).flatMap { range.contains($0) ? $0 : nil }
        }
        guard parts.count == 8, parts[7] == "GMT", let month = months.firstIndex(of: String(parts[2])),
            let day = number(1, 1...31), let year = number(3, 1_970...9_999), let hour = number(4, 0...23),
            let minute = number(5, 0...59), let second = number(6, 0...60)
        else { return nil }
        return (days(year, Int64(month + 1), day) * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000
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
}
