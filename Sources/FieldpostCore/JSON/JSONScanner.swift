/// Why a text is not the JSON that was expected.
public struct JSONError: Error, Equatable, Sendable {
    /// What is wrong, in words without any of the text itself.
    public let message: String
    /// Where, in bytes from the start of the text.
    public let offset: Int
}

/// Reads JSON text strictly by RFC 8259, as values or member by member.
///
/// It refuses what a lenient reader would change without saying so: a name given twice, invalid UTF-8, a lone
/// surrogate, anything after the value, and nesting beyond its limit.
package struct JSONScanner {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0
    private var depth = 0
    private let maxDepth: Int

    package init(_ bytes: UnsafeBufferPointer<UInt8>, maxDepth: Int) {
        self.bytes = bytes
        self.maxDepth = maxDepth
    }

    /// Fails unless only white space is left.
    package mutating func finish() throws(JSONError) {
        skipSpace()
        if position < bytes.count { throw error("there is more text after the value") }
    }

    package func error(_ message: String) -> JSONError { JSONError(message: message, offset: position) }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func peek() throws(JSONError) -> UInt8 {
        skipSpace()
        guard position < bytes.count else { throw error("the text ends too early") }
        return bytes[position]
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try peek() == byte else {
            throw error("expected “\(String(UnicodeScalar(byte)))”")
        }
        position += 1
    }

    private mutating func take(_ byte: UInt8) throws(JSONError) -> Bool {
        guard try peek() == byte else { return false }
        position += 1
        return true
    }

    private mutating func enter() throws(JSONError) {
        depth += 1
        if depth > maxDepth { throw error("nested deeper than \(maxDepth)") }
    }

    /// Reads an object, calling `member` with each name; `member` must read the value.
    package mutating func readObject(
        _ member: (String, inout JSONScanner) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(UInt8(ascii: "{"))
        try enter()
        defer { depth -= 1 }
        if try take(UInt8(ascii: "}")) { return }
        var names = NameSet()
        repeat {
            guard try peek() == UInt8(ascii: "\"") else { throw error("expected a member's name in quotes") }
            let name = try readString()
            if !names.insert(name) { throw error("a member's name appears twice") }
            try expect(UInt8(ascii: ":"))
            try member(name, &self)
        } while try take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
    }

    /// Reads an array, calling `element` before each element; `element` must read it.
    package mutating func readArray(
        _ element: (inout JSONScanner) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(UInt8(ascii: "["))
        try enter()
        defer { depth -= 1 }
        if try take(UInt8(ascii: "]")) { return }
        repeat { try element(&self) } while try take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
    }

    /// Reads any value.
    package mutating func readValue() throws(JSONError) -> JSON {
        switch try peek() {
        case UInt8(ascii: "{"): return .object(try readMembers())
        case UInt8(ascii: "["):
            var elements: [JSON] = []
            try readArray { scanner throws(JSONError) in elements.append(try scanner.readValue()) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try readString())
        case UInt8(ascii: "t"):
            try readWord("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try readWord("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try readWord("null")
            return .null
        default: return try readNumber()
        }
    }

    /// Reads an object as its members.
    package mutating func readMembers() throws(JSONError) -> JSONObject {
        var object = JSONObject()
        try readObject { name, scanner throws(JSONError) in object.append(name, try scanner.readValue()) }
        return object
    }

    private mutating func readWord(_ word: StaticString) throws(JSONError) {
        let count = word.utf8CodeUnitCount
        let matches =
            bytes.count - position >= count
            && (0..<count).allSatisfy { bytes[position + $0] == word.utf8Start[$0] }
        guard matches else { throw error("not a JSON value") }
        position += count
    }
}

extension JSONScanner {
    private mutating func digits() -> Int {
        let start = position
        while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
        return position - start
    }

    private func next(is byte: UInt8) -> Bool { position < bytes.count && bytes[position] == byte }

    private mutating func readNumber() throws(JSONError) -> JSON {
        let start = position
        if next(is: UInt8(ascii: "-")) { position += 1 }
        let leadsWithZero = next(is: UInt8(ascii: "0"))
        let whole = digits()
        guard whole > 0 else { throw error("not a JSON value") }
        if leadsWithZero, whole > 1 { throw error("a number has a leading zero") }
        var isInteger = true
        if next(is: UInt8(ascii: ".")) {
            isInteger = false
            position += 1
            guard digits() > 0 else { throw error("a number has no digit after its point") }
        }
        if next(is: UInt8(ascii: "e")) || next(is: UInt8(ascii: "E")) {
            isInteger = false
            position += 1
            if next(is: UInt8(ascii: "+")) || next(is: UInt8(ascii: "-")) { position += 1 }
            guard digits() > 0 else { throw error("a number has no digit in its exponent") }
        }
        if isInteger, let value = integer(start) { return .integer(value) }
        // Longer than any double's shortest form could need; a megabyte of digits is not worth converting.
        guard position - start <= 1100 else { throw error("a number has more than 1,100 digits") }
        let literal = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger { return .number(literal) }
        guard let value = Double(literal), value.isFinite else { throw error("a number is beyond a double") }
        return .real(value)
    }

    private func integer(_ start: Int) -> Int64? {
        let negative = bytes[start] == UInt8(ascii: "-")
        var value: Int64 = 0
        for index in (negative ? start + 1 : start)..<position {
            let digit = Int64(bytes[index] - 0x30)
            let (product, high) = value.multipliedReportingOverflow(by: 10)
            let (sum, over) =
                negative
                ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
            if high || over { return nil }
            value = sum
        }
        return value
    }

    /// Reads a string.
    package mutating func readString() throws(JSONError) -> String {
        try expect(UInt8(ascii: "\""))
        let start = position
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                defer { position += 1 }
                return try text(bytes[start..<position])
            }
            if byte == UInt8(ascii: "\\") { return try readEscaped(from: start) }
            if byte < 0x20 { throw error("a control character stands in a string unescaped") }
            position += 1
        }
        throw error("a string does not end")
    }

    private func text(_ slice: some Collection<UInt8>) throws(JSONError) -> String {
        guard let text = String(validating: slice, as: UTF8.self) else {
            throw error("a string is not valid UTF-8")
        }
        return text
    }

    private mutating func readEscaped(from start: Int) throws(JSONError) -> String {
        var out = Array(bytes[start..<position])
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return try text(out)
            case UInt8(ascii: "\\"): try readEscape(into: &out)
            case 0..<0x20: throw error("a control character stands in a string unescaped")
            default: out.append(byte)
            }
        }
        throw error("a string does not end")
    }

    private mutating func readEscape(into out: inout [UInt8]) throws(JSONError) {
        guard position < bytes.count else { throw error("a string does not end") }
        defer { position += 1 }
        switch bytes[position] {
        case UInt8(ascii: "\""): out.append(0x22)
        case UInt8(ascii: "\\"): out.append(0x5C)
        case UInt8(ascii: "/"): out.append(0x2F)
        case UInt8(ascii: "b"): out.append(0x08)
        case UInt8(ascii: "f"): out.append(0x0C)
        case UInt8(ascii: "n"): out.append(0x0A)
        case UInt8(ascii: "r"): out.append(0x0D)
        case UInt8(ascii: "t"): out.append(0x09)
        case UInt8(ascii: "u"):
            let scalar = try readUnicodeEscape()
            out.append(contentsOf: String(scalar).utf8)
        default: throw error("unknown escape in a string")
        }
    }

    /// Reads `uXXXX`, and the low surrogate that must follow a high one; ends on the last digit.
    private mutating func readUnicodeEscape() throws(JSONError) -> UnicodeScalar {
        let first = try hexDigits()
        if let scalar = UnicodeScalar(first) { return scalar }
        guard first < 0xDC00, position + 2 < bytes.count, bytes[position + 1] == UInt8(ascii: "\\"),
            bytes[position + 2] == UInt8(ascii: "u")
        else { throw error("a surrogate stands alone in a string") }
        position += 2
        let second = try hexDigits()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = UnicodeScalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw error("a surrogate stands alone in a string") }
        return scalar
    }

    private mutating func hexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            position += 1
            guard position < bytes.count, let digit = UnicodeScalar(bytes[position]).hexDigit else {
                throw error("a \\u escape needs four hexadecimal digits")
            }
            value = value << 4 | digit
        }
        return value
    }
}

extension UnicodeScalar {
    fileprivate var hexDigit: UInt32? {
        switch self {
        case "0"..."9": value - 0x30
        case "a"..."f": value - 0x61 + 10
        case "A"..."F": value - 0x41 + 10
        default: nil
        }
    }
}

/// Tells whether a name was seen before: a list while short, a set once long.
private struct NameSet {
    private var few: [String] = []
    private var many: Set<String> = []

    mutating func insert(_ name: String) -> Bool {
        if !many.isEmpty { return many.insert(name).inserted }
        if few.contains(name) { return false }
        few.append(name)
        if few.count > 24 { many = Set(few) }
        return true
    }
}

extension JSON {
    /// Nesting allowed where nothing else is said.
    public static let defaultMaxDepth = 64

    /// Reads one JSON text of UTF-8 bytes.
    ///
    /// - Throws: ``JSONError`` that names the reason and the byte offset.
    public init(bytes: [UInt8], maxDepth: Int = defaultMaxDepth) throws(JSONError) {
        self = try JSON.scan(bytes, maxDepth: maxDepth) { scanner throws(JSONError) in try scanner.readValue()
        }
    }

    /// Reads one JSON text.
    public init(text: String, maxDepth: Int = defaultMaxDepth) throws(JSONError) {
        try self.init(bytes: Array(text.utf8), maxDepth: maxDepth)
    }

    /// Lends a scanner over `bytes` and checks that it reached the end.
    package static func scan<T>(
        _ bytes: [UInt8],
        maxDepth: Int = defaultMaxDepth,
        _ body: (inout JSONScanner) throws(JSONError) -> T
    ) throws(JSONError) -> T {
        let result: Result<T, JSONError> = bytes.withUnsafeBufferPointer { buffer in
            var scanner = JSONScanner(buffer, maxDepth: maxDepth)
            do throws(JSONError) {
                let value = try body(&scanner)
                try scanner.finish()
                return .success(value)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
