import FieldpostCore
import FieldpostSQLite
import Testing

@testable import Fieldpost

/// Values travel exactly, or the write is refused with the table's and the column's name.
@Suite struct CaptureValueTests {
    let file: CapturedFile

    static let schema = Schema(version: 1) {
        Table("things") {
            Column("id", .text).primaryKey()
            Column("owner", .uuid).optional()
            Column("body", .text).optional()
            Column("title", .text).optional()
            Column("score", .real).optional()
            Column("done", .boolean).optional()
            Column("day", .date).optional()
            Column("photo", .blob).optional()
            Column("meta", .json).optional()
            Column("tags", .set).defaults(to: [])
            Column("paper", .file).optional()
            Column("likes", .integer).defaults(to: 0)
        }
        .rule("tags", .set).rule("likes", .counter)
    }

    init() throws { file = try CapturedFile(Self.schema) }

    /// The change of the newest operation, as the engine reads it.
    private func newest() throws -> Change {
        let entry = try #require(
            try file.database.entries(where: "seq = (SELECT max(seq) FROM fieldpost_outbox)").first
        )
        return try entry.operation(Self.schema.tables[0]).change
    }

    @Test func `each type comes back as it was stored`() throws {
        try file.stranger.execute(
            #"""
            INSERT INTO things (id, owner, body, done, day, photo, meta, tags, paper, likes) VALUES ('é', '0191d3a0-0000-7000-8000-000000000000',
              'a "b" \ ' || char(10, 9, 1, 127, 233, 128512, 65534, 65535), 1, -62135596800000, x'00ff10',
              '{"big": 123456789012345678901234567890, "x": [1.50, 1e3, -0.0, "\u00e9\ud83d\ude00"]}', '[1,"a"]', printf('%064d', 7),
              -9223372036854775807 - 1);
            """#
        )

        let set = try newest().set
        #expect(set["owner"] == "0191d3a0-0000-7000-8000-000000000000")
        #expect(set["body"] == "a \"b\" \\ \n\t\u{1}\u{7F}é😀\u{FFFE}\u{FFFF}")
        #expect(set["done"] == .bool(true))
        #expect(set["day"] == -62_135_596_800_000)
        #expect(set["photo"] == "AP8Q")
        #expect(
            set["meta"]
                == ["big": .number("123456789012345678901234567890"), "x": [1.5, 1e3, .real(-0.0), "é😀"]]
        )
        #expect(set["tags"] == [1, "a"])
        #expect(set["likes"] == .integer(.min))
        #expect(set["score"] == .null)
    }

    @Test func `reals come back bit for bit`() throws {
        var random = Seeded(state: 42)
        var values: [Double] = [
            .leastNonzeroMagnitude, .leastNormalMagnitude, .leastNormalMagnitude.nextDown,
            .greatestFiniteMagnitude, 0.1, 1.0 / 3,
        ]
        while values.count < 100_000 {
            let bits = random.next()
            // Every tenth is subnormal, every other tenth of a usual size.
            let value =
                switch values.count % 10 {
                case 0: Double(bitPattern: bits & 0x800F_FFFF_FFFF_FFFF)
                case 1: Double(Int64(truncatingIfNeeded: bits) % 1_000_000_000) / 997
                default: Double(bitPattern: bits)
                }
            if value.isFinite { values.append(value) }
        }
        let connection = file.stranger
        let text = try connection.prepare(
            "SELECT \(ColumnJSON(row: "n").text(Self.schema.tables[0].columns[4])) FROM (SELECT ?1 AS score) AS n"
        )
        var wrong = 0

        for value in values {
            text.reset()
            try text.bind(1, value)
            _ = try text.step()
            if try JSON(text: text.text(0)) != .real(value == 0 ? 0 : value) { wrong += 1 }
        }

        #expect(wrong == 0)
    }

    @Test func `minus zero is zero`() throws {
        try file.stranger.execute("INSERT INTO things (id, score) VALUES ('a', -0.0)")

        #expect(try newest().set["score"] == .real(0.0))
    }

    @Test(arguments: [
        ("body", "CAST(x'c328' AS TEXT)"), ("body", "'é' || CAST(x'e282' AS TEXT)"),
        ("body", "CAST(x'80' AS TEXT)"),
        ("body", "CAST(x'edA080' AS TEXT)"), ("body", "CAST(x'c0af' AS TEXT)"),
        ("body", "CAST(x'f4908080' AS TEXT)"),
        ("body", "replace(hex(zeroblob(3000)), '0', 'é') || CAST(x'ff' AS TEXT)"),
        ("body", "'a' || char(0) || 'b'"),
        ("score", "9e999"), ("score", "-9e999"), ("score", "'x'"), ("done", "2"), ("done", "'yes'"),
        ("likes", "0.5"),
        ("owner", "'0191D3A0-0000-7000-8000-000000000000'"),
        ("owner", "'0191d3a0-0000-7000-8000-000000000000' || char(0)"),
        ("day", "'today'"), ("photo", "'text'"), ("paper", "'abc'"),
        ("paper", "printf('%064d', 7) || char(0) || 'x'"),
        ("meta", "'{'"), ("meta", "'null'"), ("meta", "'1' || char(0)"),
        ("meta", #"'{"a":1,"b":{"c":1,"\u0063":2}}'"#),
        ("meta", "'1e999'"), ("meta", "'[-1E999]'"), ("meta", #"'"\ud800"'"#), ("meta", #"'{"\udC00":1}'"#),
        ("meta", "'\"' || CAST(x'c3' AS TEXT) || '\"'"),
        ("meta", "replace(hex(zeroblob(20)), '0', '[') || replace(hex(zeroblob(20)), '0', ']')"),
        ("tags", "'{}'"), ("tags", "'[1.5]'"), ("tags", "'[true]'"), ("tags", "'[null]'"),
        ("tags", "'[[1]]'"), ("tags", "NULL"),
        ("tags", "'[9223372036854775808]'"), ("tags", #"'["a\u0000b"]'"#), ("tags", #"'["\ud83d"]'"#),
        ("likes", "NULL"),
        ("id", "CAST(x'c328' AS TEXT)"), ("id", "'a' || char(0)"), ("id", "NULL"),
    ])
    func `what cannot travel is refused by name`(_ column: String, _ value: String) throws {
        let columns = column == "id" ? "id" : "id, \(column)"
        let values = column == "id" ? value : "'a', \(value)"

        // OR REPLACE puts the default in the place of NULL.
        for clause in ["INSERT", "INSERT OR FAIL"] + (value == "NULL" ? [] : ["INSERT OR REPLACE"]) {
            let error = file.refusal {
                try file.stranger.execute("\(clause) INTO things (\(columns)) VALUES (\(values))")
            }
            #expect(error?.code == .type)
            #expect(error?.message.contains("things.\(column)") == true, "\(error?.message ?? "none")")
        }
        try file.stranger.execute("INSERT INTO things (id, title) VALUES ('é', 'è')")
        let error = file.refusal {
            try file.stranger.execute("UPDATE things SET title = 'ê', \(column) = \(value)")
        }

        #expect(error?.code == .type)
        #expect(error?.message.contains("things.\(column)") == true)
        #expect(try file.outbox.count == 1)
        #expect(try file.scalar("SELECT group_concat(title) FROM things") == "è")
    }

    @Test func `one sound text does not hide a broken one`() throws {
        for (title, body) in [("'é'", "CAST(x'c3' AS TEXT)"), ("CAST(x'c3' AS TEXT)", "'é'")] {
            let error = file.refusal {
                try file.stranger.execute(
                    "INSERT INTO things (id, title, body, meta) VALUES ('ü', \(title), \(body), '\"é\"')"
                )
            }
            #expect(error?.message.contains("is not valid UTF-8") == true)
        }
        #expect(try file.outbox == [])
    }

    @Test func `a counter's step beyond 64 bits is refused`() throws {
        try file.stranger.execute("INSERT INTO things (id, likes) VALUES ('a', 9223372036854775807)")

        for sql in ["UPDATE things SET likes = -2", "REPLACE INTO things (id, likes) VALUES ('a', -2)"] {
            let error = file.refusal { try file.stranger.execute(sql) }
            #expect(error?.message.contains("things.likes changes by more than 64 bits") == true)
        }
        try file.stranger.execute("UPDATE things SET likes = 0; UPDATE things SET likes = -2")
        #expect(try newest().inc["likes"] == -2)
    }

    @Test func `a table that the app made without types is held to them`() throws {
        let file = try CapturedFile(
            Self.schema,
            before: """
                CREATE TABLE things (id TEXT PRIMARY KEY, owner, body, title, score, done, day, photo, meta, tags DEFAULT '[]',
                  paper, likes DEFAULT 0)
                """
        )
        for (column, value) in [
            ("id", "NULL"), ("owner", "'x'"), ("body", "1"), ("score", "'x'"), ("done", "2"), ("day", "1.5"),
            ("photo", "'x'"),
            ("meta", "'{'"), ("tags", "NULL"), ("tags", "'{}'"), ("likes", "'x'"), ("paper", "x'00'"),
        ] {
            let (columns, values) = column == "id" ? ("id", value) : ("id, \(column)", "'a', \(value)")
            let error = file.refusal {
                try file.stranger.execute("INSERT INTO things (\(columns)) VALUES (\(values))")
            }
            #expect(error?.code == .type, "\(column) \(value)")
            #expect(error?.message.contains("things.\(column)") == true)
        }
        try file.stranger.execute("INSERT INTO things (id, score) VALUES ('a', 1)")
        #expect(try file.outbox.count == 1)
    }
}

/// SplitMix64.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
