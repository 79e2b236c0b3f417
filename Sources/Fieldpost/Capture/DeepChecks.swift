internal import FieldpostCore

/// SQL conditions that find what a value hides.
enum DeepChecks {
    /// Nesting that a JSON column may have: a request wraps it in a few levels more, and those count too.
    static let jsonDepth = 20

    /// Whether `value`, not `NULL`, of a column of `type` cannot travel.
    static func fault(_ type: ColumnType, _ value: String) -> String {
        switch type {
        case .json: "(\(UTF8Check.isInvalid(value)) OR \(json(value)) OR \(loneSurrogate(value)))"
        case .set: "(\(UTF8Check.isInvalid(value)) OR \(set(value)) OR \(loneSurrogate(value)))"
        default: "(\(UTF8Check.isInvalid(value)))"
        }
    }

    /// The same without the text's own validity, of which ``texts(_:)`` are to be asked.
    static func structureFault(_ type: ColumnType, _ value: String) -> String {
        type == .json ? "(\(json(value)))" : "(\(set(value)))"
    }

    /// A `SELECT` of the texts in a JSON value that may be no UTF-8: itself, and what its escapes decode to.
    static func texts(_ value: String) -> String {
        "SELECT \(value) WHERE \(UTF8Check.hasNonASCII(value)) UNION ALL SELECT ifnull(t.atom, '') || ifnull(t.key, '') "
            + "FROM json_tree(\(value)) AS t WHERE \(hasSurrogates(value))"
    }

    private static func hasSurrogates(_ value: String) -> String {
        #"\#(value) GLOB '*\[uU][dD][89a-fA-F]*'"#
    }

    /// Too deep, a number beyond a double, or a name twice in one object: our reader refuses each.
    private static func json(_ value: String) -> String {
        let opening = "length(\(value)) - length(replace(replace(\(value), '[', ''), '{', ''))"
        let steps = "length(t.fullkey) - length(replace(replace(t.fullkey, '.', ''), '[', ''))"
        return
            "\(opening) > \(jsonDepth) AND EXISTS (SELECT 1 FROM json_tree(\(value)) AS t WHERE \(steps) > \(jsonDepth)) "
            + "OR instr(lower(\(value)), 'e') AND EXISTS "
            + "(SELECT 1 FROM json_tree(\(value)) AS t WHERE t.type = 'real' AND abs(t.atom) = 9e999) "
            + "OR instr(\(value), '{') AND EXISTS (SELECT 1 FROM json_tree(\(value)) AS t WHERE t.key IS NOT NULL "
            + "GROUP BY t.parent, t.key HAVING count(*) > 1)"
    }

    /// Other than strings and integers, or the escape at which SQLite ends a string: the difference of two
    /// sets would lose what follows it.
    private static func set(_ value: String) -> String {
        "EXISTS (SELECT 1 FROM json_each(\(value)) AS e WHERE e.type NOT IN ('integer', 'text') "
            + "OR e.type = 'integer' AND typeof(e.value) <> 'integer') "
            + #"OR instr(replace(\#(value), '\\', ''), '\u0000')"#
    }

    /// Half a surrogate pair as an escape; SQLite decodes it to three bytes that are not UTF-8.
    private static func loneSurrogate(_ value: String) -> String {
        "\(hasSurrogates(value)) AND EXISTS (SELECT 1 FROM json_tree(\(value)) AS t WHERE "
            + "t.type = 'text' AND \(UTF8Check.isInvalid("t.atom")) OR \(UTF8Check.isInvalid("t.key")))"
    }
}

/// Tells in SQL whether a text written by a program we do not know is UTF-8, which SQLite does not check.
enum UTF8Check {
    /// The characters looked at together.
    private static let part = 16
    /// The characters cut out of a long text first, so that cutting costs far less than its square.
    private static let block = 1_024

    /// A condition that is true for a text which is not UTF-8; `value` is evaluated many times.
    ///
    /// A character that decodes and encodes to other bytes is none. SQL in a trigger has no recursion, so the
    /// places are counted by arrays of zeros. Pure ASCII costs one look.
    static func isInvalid(_ value: String) -> String {
        let blocks =
            "SELECT substr(\(value), k.key * \(block) + 1, \(block)) AS b FROM \(numbers("length(\(value)) / \(block)")) AS k "
            + "WHERE \(hasNonASCII("b")) LIMIT -1"
        let parts =
            "SELECT substr(x.b, j.key * \(part) + 1, \(part)) || '\(String(repeating: " ", count: part))' AS p "
            + "FROM (\(blocks)) AS x, \(numbers("\(block / part - 1)")) AS j WHERE \(hasNonASCII("p")) LIMIT -1"
        let codes = (1...part).map { "unicode(substr(y.p, \($0), 1))" }.joined(separator: ", ")
        let text = "substr(y.p, 1, \(part))"
        // SQLite decodes the two last code points of the first plane to U+FFFD, valid as they are.
        let same = "replace(replace(\(text), char(65534), char(65533)), char(65535), char(65533))"
        return
            "\(hasNonASCII(value)) AND EXISTS (SELECT 1 FROM (\(parts)) AS y WHERE char(\(codes)) IS NOT \(same))"
    }

    static func hasNonASCII(_ value: String) -> String {
        "\(value) GLOB '*[^' || char(1) || '-' || char(127) || ']*'"
    }

    private static func numbers(_ last: String) -> String {
        "json_each('[0' || replace(hex(zeroblob(\(last))), '00', ',0') || ']')"
    }
}
