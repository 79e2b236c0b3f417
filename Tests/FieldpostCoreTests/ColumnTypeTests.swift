import FieldpostCore
import Testing

@Suite struct ColumnTypeTests {
    static let accepted: [(ColumnType, JSON, Value)] = [
        (
            .uuid, JSON.string("0191D3A0-0000-7000-8000-00000000000A"),
            Value.text("0191d3a0-0000-7000-8000-00000000000a")
        ),
        (.text, "", ""), (.text, "a\u{301}", "a\u{301}"), (.integer, .integer(.max), .integer(.max)),
        (.integer, .real(5), 5),
        (.integer, .integer(.min), .integer(.min)), (.real, .real(0.1), .real(0.1)), (.real, 7, .real(7)),
        (.real, .real(-0.0), .real(0)),
        (.boolean, true, 1), (.boolean, false, 0), (.date, 1_764_460_800_000, 1_764_460_800_000),
        (.blob, "AP8=", .blob([0, 255])),
        (.blob, "", .blob([])),
        (.json, ["b": [1, nil] as JSON, "a": 2] as JSON, "{\"b\":[1,null],\"a\":2}"),
        (.set, ["b", 2, "a", 10, "b"], "[2,10,\"a\",\"b\"]"),
        (.file, .string(String(repeating: "AB", count: 32)), .text(String(repeating: "ab", count: 32))),
        (.integer, .null, .null),
    ]

    @Test(arguments: accepted)
    func `a wire value is stored in the one form of its type`(type: ColumnType, wire: JSON, stored: Value)
        throws
    {
        #expect(try type.value(from: wire) == stored)
        #expect(try type.value(from: type.json(from: stored)) == stored)
    }

    static let refused: [(ColumnType, JSON)] = [
        (.uuid, "0191d3a0"), (.uuid, 1), (.text, 1), (.text, "a\u{0}b"), (.integer, .real(1.5)),
        (.integer, "1"),
        (.integer, .number("9223372036854775808")), (.integer, true), (.real, "1"),
        (.real, .integer(9_007_199_254_740_993)),
        (.boolean, 1), (.boolean, "true"), (.date, "2026-01-01"), (.blob, "AP8"), (.blob, "AP9="),
        (.blob, "A*8="), (.set, "a"),
        (.set, [1.5]), (.set, [[1]]), (.set, [true]), (.file, "ab"),
    ]

    @Test(arguments: refused)
    func `a wire value of another kind is refused, not bent`(type: ColumnType, wire: JSON) {
        #expect(throws: ColumnTypeError.self) { try type.value(from: wire) }
    }

    @Test func `a required column refuses null, but a required json column can hold the JSON null`() throws {
        #expect(throws: ColumnTypeError.self) { try Column("a", .text).value(from: .null) }
        #expect(try Column("a", .text).optional().value(from: .null) == .null)
        #expect(try Column("a", .json).value(from: .null) == "null")
    }
}
