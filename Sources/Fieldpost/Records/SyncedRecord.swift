/// A Swift type whose values are rows of one synced table.
///
/// Each stored property that takes part in `Codable` is a column. The column is called as the coding key, or as the
/// key in snake case: `openedAt` is `opened_at`. Properties and columns are compared once for each type and store, at
/// the first use; a property without a column, or of a type that its column does not hold, is reported by name.
///
///     struct Order: SyncedRecord {
///         enum Status: String, Codable { case open, paid }
///         var id = UUID()
///         var branchID: String
///         var totalIDR: Int64
///         var status = Status.open
///         var openedAt: Date
///         var plate: String?
///     }
///
/// | Swift | column |
/// | --- | --- |
/// | integers, exact to 64 bits | `integer` |
/// | `Double`, `Float` | `real` |
/// | `String`, `Decimal`, `URL`, `UUID` | `text` |
/// | `UUID`, `String` | `uuid` |
/// | `Bool` | `boolean` |
/// | `Date`, in whole milliseconds | `date` |
/// | `Data`, `[UInt8]` | `blob` |
/// | arrays, `Set` | `set`, `json` |
/// | any other `Codable`; a `String` is JSON text | `json` |
/// | an enum or another `RawRepresentable` | as its raw value |
/// | an optional | the same, and `NULL` |
public protocol SyncedRecord: Codable, Identifiable, Sendable where ID: Codable & Sendable {
    /// The table's name. By default the type's name in snake case and in the plural: `OrderLine` is `order_lines`.
    static var tableName: String { get }
}

extension SyncedRecord {
    /// The type's name in snake case and in the plural.
    public static var tableName: String { Naming.plural(Naming.snakeCase("\(Self.self)")) }
}

/// How Swift's names become SQL's.
enum Naming {
    /// `totalIDR` is `total_idr`, `HTTPLog` is `http_log`; what is snake case already stays.
    static func snakeCase(_ name: String) -> String {
        let letters = Array(name)
        var result = ""
        for (index, letter) in letters.enumerated() {
            if letter.isUppercase, index > 0 {
                let before = letters[index - 1]
                let startsWord = index + 1 < letters.count && letters[index + 1].isLowercase
                if before != "_", !before.isUppercase || startsWord { result += "_" }
            }
            result += letter.lowercased()
        }
        return result
    }

    /// The plural that English gives most nouns.
    static func plural(_ noun: String) -> String {
        if noun.hasSuffix("y"), let before = noun.dropLast().last, !"aeiou".contains(before) {
            return noun.dropLast() + "ies"
        }
        for ending in ["s", "x", "z", "ch", "sh"] where noun.hasSuffix(ending) { return noun + "es" }
        return noun + "s"
    }

    /// The candidate nearest to `name`, when one is near enough to be meant.
    static func nearest(_ name: String, _ candidates: [String]) -> String? {
        let ranked = candidates.map { (distance(name, $0), $0) }.min { $0.0 < $1.0 }
        guard let ranked, ranked.0 <= max(2, name.count / 3) else { return nil }
        return ranked.1
    }

    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let substituted = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(substituted, row[j] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
