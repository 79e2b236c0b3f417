import FieldpostCore
import Testing

@Suite struct JSONTests {
    @Test(arguments: [
        "", " ", "nul", "tru", "[", "[1", "[1,", "[1,]", "[,1]", "{", "{\"a\"", "{\"a\":", "{\"a\":1",
        "{\"a\":1,}", "{a:1}", "{1:1}",
        "01", "-01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "1 2", "[1]x", "NaN", "Infinity", "-Infinity",
        "1e400", "'a'",
        "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\udc00\"",
        "\"\\ud800\\u0041\"", "\"\t\"",
        "\"\u{0}\"", "[1]\u{0}", "\u{feff}1", "{\"a\":1,\"a\":2}", "[\"a\",\n4\n,1,1",
    ])
    func `text that is not JSON is refused with a place`(text: String) {
        #expect(throws: JSONError.self) { try JSON(text: text) }
    }

    static let readable: [(String, String)] = [
        ("[0e1]", "[0.0]"), ("[-0]", "[0]"), ("[1E+2]", "[100.0]"), (" [ ] ", "[]"),
        ("\"\\u0041\\n\\/\"", "\"A\\n/\""),
        ("\"\\ud83d\\ude00\"", "\"😀\""), ("{\"\":0}", "{\"\":0}"),
        ("[9223372036854775807]", "[9223372036854775807]"),
        ("[-9223372036854775808]", "[-9223372036854775808]"),
        ("[9223372036854775808]", "[9223372036854775808]"),
        ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
        ("[0.1,5e-324]", "[0.1,5e-324]"),
        ("\"\\u0000\\u001f\"", "\"\\u0000\\u001f\""), ("\"e\u{301}\u{e9}\"", "\"e\u{301}\u{e9}\""),
        ("\u{2028}", ""),
    ]

    @Test(arguments: readable)
    func `JSON is read and written again without a changed value`(text: String, expected: String) throws {
        guard !expected.isEmpty else {
            #expect(throws: JSONError.self) { try JSON(text: text) }
            return
        }
        #expect(try JSON(text: text).text() == expected)
    }

    @Test func `invalid UTF-8 is refused`() {
        for bytes: [UInt8] in [
            [0x22, 0xC3, 0x28, 0x22], [0x22, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xFF],
        ] {
            #expect(throws: JSONError.self) { try JSON(bytes: bytes) }
        }
    }

    @Test func `nesting beyond the limit is refused and never overflows`() throws {
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: JSONError.self) { try JSON(text: deep) }
        #expect(throws: JSONError.self) { try JSON(text: "[[[1]]]", maxDepth: 2) }
        #expect(try JSON(text: "[[1]]", maxDepth: 2) == [[1]])
    }

    @Test func `a number of a million digits is refused rather than converted`() {
        #expect(throws: JSONError.self) { try JSON(text: String(repeating: "1", count: 1_000_000)) }
    }

    @Test func `a million members with one name twice are read in one pass`() {
        var text = "{"
        for index in 0..<200_000 { text += "\"k\(index)\":0," }
        #expect(throws: JSONError.self) { try JSON(text: text + "\"k7\":1}") }
    }

    @Test func `doubles come back bit for bit`() throws {
        var bits: UInt64 = 0x9E37_79B9_7F4A_7C15
        for _ in 0..<20_000 {
            bits = bits &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let value = Double(bitPattern: bits)
            guard value.isFinite else { continue }
            #expect(try JSON(text: JSON.real(value).text()) == .real(value))
        }
    }

    @Test func `canonical bytes do not depend on the order of names or the form of numbers`() throws {
        let one = try JSON(text: "{\"b\":1.0,\"a\":[1e0,\"é\"]}").text(canonical: true)
        let other = try JSON(text: "{ \"a\": [1, \"\\u00e9\"], \"b\": 1 }").text(canonical: true)

        #expect(one == other)
        #expect(one == "{\"a\":[1,\"é\"],\"b\":1}")
    }

    @Test func `two spellings of one letter are two strings`() {
        #expect(JSON.string("\u{e9}") != JSON.string("e\u{301}"))
        #expect(Value.text("\u{e9}") != Value.text("e\u{301}"))
    }
}
