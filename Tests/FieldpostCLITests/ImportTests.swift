import FieldpostCore
import FieldpostGzip
import Testing

@testable import FieldpostCLI

@Suite struct ImportTests {
    private let head = "id,branch_id,plate,total_idr,opened_at\n"

    private func row(_ number: Int, _ rest: String) -> String { "\(Samples.id(number)),\(rest)\n" }

    private func load(_ folder: TemporaryFolder, _ file: String, table: String = "orders") async -> CommandRun
    {
        await CommandRun.of(
            "import",
            "--schema",
            folder.schema,
            "--db",
            folder.file("a.db"),
            "--table",
            table,
            folder.file(file)
        )
    }

    private func orders(_ folder: TemporaryFolder) async throws -> [JSONObject] {
        let sql = "SELECT id, branch_id, plate, total_idr, status, opened_at FROM orders ORDER BY id"
        return try await CommandRun.device(folder, #"{"do":"query","sql":"\#(sql)"}"#)[0].objects("rows")
    }

    @Test func `quotes, line ends, a byte order mark, empty fields and dates are read as they are meant`()
        async throws
    {
        let folder = try TemporaryFolder()
        let text =
            "\u{FEFF}\"id\",branch_id,plate,total_idr,opened_at\r\n"
            + "\(Samples.id(1)),B1,\"A \"\"1\"\", b\",5,2018-09-01T13:48:00\r\n\r\n"
            + "0190000A-0000-7000-8000-000000000002,,\"x\r\ny\",-0,2018-09-01T13:48:00.464612+02:00\n"
            + "\(Samples.id(3)),é,,9223372036854775807,1535809680000"
        try folder.write(text, to: "o.csv")

        let run = await load(folder, "o.csv")

        #expect(run.output == "3 rows imported into orders\n")
        #expect(run.exit == .done)
        #expect(
            try await orders(folder) == [
                [
                    "id": .string(Samples.id(1)), "branch_id": "B1", "plate": "A \"1\", b", "total_idr": 5,
                    "status": "open", "opened_at": 1_535_809_680_000,
                ],
                [
                    "id": .string(Samples.id(3)), "branch_id": "é", "plate": nil, "total_idr": .integer(.max),
                    "status": "open", "opened_at": 1_535_809_680_000,
                ],
                [
                    "id": "0190000a-0000-7000-8000-000000000002", "branch_id": "", "plate": "x\r\ny",
                    "total_idr": 0,
                    "status": "open", "opened_at": 1_535_802_480_464,
                ],
            ]
        )
    }

    @Test func `several gzip members are one file`() async throws {
        let folder = try TemporaryFolder()
        let parts = [head + row(1, "B1,,1,"), row(2, "B1,,2,")]
        try folder.write(parts.flatMap { Gzip.compress(Array($0.utf8)) }, to: "o.csv.gz")

        let run = await load(folder, "o.csv.gz")

        #expect(run.output == "2 rows imported into orders\n")
    }

    @Test func `running again passes over equal rows, and names those that differ`() async throws {
        let folder = try TemporaryFolder()
        try folder.write(head + row(1, "B1,,1,") + row(2, "B1,,2,"), to: "o.csv")
        _ = await load(folder, "o.csv")
        try folder.write(head + row(1, "B1,,1,") + row(2, "B1,,3,") + row(3, "B1,,3,"), to: "p.csv")

        let again = await load(folder, "o.csv")
        let differing = await load(folder, "p.csv")

        #expect(again.exit == .done)
        #expect(again.output == "0 rows imported into orders, 2 were there already\n")
        #expect(differing.exit == .badData)
        #expect(differing.errors.contains("p.csv, line 3: the row exists with other values"))
        #expect(
            differing.output
                == "1 rows imported into orders, 1 were there already, 1 exist with other values\n"
        )
        #expect(try await orders(folder).map { $0["total_idr"] } == [1, 2, 3])
    }

    @Test func `a bad row undoes its five hundred, names its line and keeps the batches before it`()
        async throws
    {
        let folder = try TemporaryFolder()
        let rows = (1...700).map { row($0, $0 == 601 ? "B1,,-1," : "B1,,1,") }
        try folder.write(head + rows.joined(), to: "o.csv")

        let run = await load(folder, "o.csv")
        let replies = try await CommandRun.device(
            folder,
            #"{"do":"query","sql":"SELECT count(*) AS n FROM orders"}"#,
            #"{"do":"query","sql":"SELECT count(DISTINCT grp) AS n FROM fieldpost_outbox"}"#
        )

        #expect(run.exit == .badData)
        #expect(run.errors.contains("o.csv, line 602: The check total_not_negative failed."))
        #expect(run.errors.contains("500 rows before it are kept"))
        #expect(replies[0].objects("rows") == [["n": 500]])
        #expect(replies[1].objects("rows") == [["n": 1]])
    }

    @Test(arguments: [
        ("id,branch_id,plte,total_idr\n", "line 1: orders has no column “plte”; did you mean plate?"),
        ("id,branch_id\n", "line 1: columns are missing that every row needs: total_idr"),
        ("branch_id,total_idr\n", "line 1: the column id is missing"),
        ("id,id,branch_id,total_idr\n", "line 1: the column id is named twice"),
        ("", "line 1: the file is empty"),
        ("id,branch_id,total_idr\n1,B1,2\n", "line 2: id: expected a UUID"),
        ("id,branch_id,total_idr\n\(Samples.id(1)),B1\n", "line 2: there are 2 fields instead of 3"),
        ("id,branch_id,total_idr\n\n\(Samples.id(1)),B1,\n", "line 3: total_idr: expected a value"),
        (
            "id,branch_id,total_idr\n\(Samples.id(1)),B1,9223372036854775808\n",
            "line 2: total_idr: expected a 64-bit"
        ),
        ("id,branch_id,total_idr\n\(Samples.id(1)),\"B\n1,2\n", "line 2: a quote is never closed"),
        ("id,branch_id,total_idr\n\(Samples.id(1)),B\"1\",2\n", "line 2: a quote stands inside a field"),
        ("id,branch_id,total_idr\n\(Samples.id(1)),\"B\"1,2\n", "line 2: something follows a closing quote"),
        (
            "id,branch_id,total_idr,opened_at\n\(Samples.id(1)),B,2,2023-02-29\n",
            "line 2: opened_at: expected a date"
        ),
    ])
    func `a faulty file ends with 65 and the line`(text: String, words: String) async throws {
        let folder = try TemporaryFolder()
        try folder.write(text, to: "o.csv")

        let run = await load(folder, "o.csv")

        #expect(run.exit == .badData)
        #expect(run.errors.contains(words))
        #expect(try await orders(folder).isEmpty)
    }

    @Test func `bytes that are no UTF-8, a torn gzip and a missing file are told apart`() async throws {
        let folder = try TemporaryFolder()
        try folder.write(
            Array("id,branch_id,total_idr\n\(Samples.id(1)),".utf8) + [0xFF] + Array(",1\n".utf8),
            to: "latin.csv"
        )
        try folder.write(
            Array(Gzip.compress(Array((head + row(1, "B1,,1,")).utf8)).dropLast(4)),
            to: "torn.csv.gz"
        )
        try folder.write([0xFF, 0xFE, 0x69, 0x00], to: "wide.csv")

        #expect(await load(folder, "latin.csv").errors.contains("line 2: branch_id: expected UTF-8"))
        #expect(await load(folder, "torn.csv.gz").exit == .badData)
        #expect(await load(folder, "wide.csv").errors.contains("UTF-16"))
        #expect(await load(folder, "none.csv").exit == .missingFile)
        #expect(await load(folder, "latin.csv", table: "order").errors.contains("did you mean orders?"))
    }

    @Test func `a reference that leads nowhere names its line`() async throws {
        let folder = try TemporaryFolder()
        try folder.write(
            "id,branch_id,order_id,amount_idr\n" + row(1, "B1,\(Samples.id(7)),1")
                + row(2, "B1,\(Samples.id(8)),1"),
            to: "p.csv"
        )
        _ = try await CommandRun.device(folder, Samples.order(7))

        let run = await load(folder, "p.csv", table: "payments")

        #expect(run.exit == .badData)
        #expect(run.errors.contains("p.csv, line 3: order_id refers to a row of orders that is missing"))
    }

    @Test(
        arguments: [
            ("1970-01-01", 0), ("2018-09-01T13:48", 1_535_809_680_000),
            ("2018-09-01 13:48:00Z", 1_535_809_680_000),
            ("2018-09-01T13:48:00,5", 1_535_809_680_500), ("2018-09-01T13:48:00.1-0130", 1_535_815_080_100),
            ("2018-09-01T13:48:00+07", 1_535_784_480_000), ("2024-02-29", 1_709_164_800_000),
            ("1969-12-31T23:59:59.999Z", -1), ("0001-01-01", -62_135_596_800_000),
        ] as [(String, Int64)]
    )
    func `dates are milliseconds since 1970`(text: String, milliseconds: Int64) {
        #expect(Array(text.utf8).withUnsafeBufferPointer { ISODate.milliseconds($0) } == milliseconds)
    }

    @Test(arguments: [
        "2023-02-29", "2023-13-01", "2023-1-1", "2023-01-01T24:00", "2023-01-01T10:60", "2023-01-01T10",
        "2023-01-01T10:00:00.",
        "2023-01-01T10:00:00+", "2023-01-01T10:00:00+07:", "2023-01-01x", "20230101", "yesterday",
        "2023-01-01T10:00:00Z ",
    ])
    func `what is no date is not taken for one`(text: String) {
        #expect(Array(text.utf8).withUnsafeBufferPointer { ISODate.milliseconds($0) } == nil)
    }

    @Test func `a file cut anywhere is read the same`() throws {
        let bytes = Array("\u{FEFF}a,\"b \"\"c\"\"\"\r\n\r\n1,\"x\r\ny\"\n\"\",2\r3,4".utf8)
        let whole = try records(of: bytes, cutEvery: bytes.count)

        for size in 1..<bytes.count { #expect(try records(of: bytes, cutEvery: size) == whole) }
        #expect(whole == ["1: a|b \"c\"", "3: 1|x\r\ny", "5: |2", "6: 3|4"])
    }

    private func records(of bytes: [UInt8], cutEvery size: Int) throws -> [String] {
        var found: [String] = []
        let parser = CSVParser { record in
            let fields = (0..<record.count).map { String(decoding: record[$0], as: UTF8.self) }
            found.append("\(record.line): \(fields.joined(separator: "|"))")
        }
        for start in stride(from: 0, to: bytes.count, by: size) {
            try parser.feed(bytes[start..<min(start + size, bytes.count)])
        }
        try parser.finish()
        return found
    }
}
