import FieldpostCore
import Testing

@Suite struct SchemaTests {
    static let file = """
        {
          "version": 3,
          "tables": {
            "orders": {
              "columns": { "id": "uuid", "branch_id": "text", "plate": "text?", "total_idr": "integer", "status": "text" },
              "scope": "branch_id", "conflict": "compareAndSet", "checks": { "total_not_negative": "total_idr >= 0" },
              "unique": [["branch_id", "plate"]], "indexes": [["status"]], "defaults": { "status": "open" }
            },
            "payments": {
              "columns": { "id": "uuid", "order_id": "uuid", "amount_idr": "integer" }, "scope": { "from": "order_id" },
              "references": { "order_id": { "table": "orders", "onDelete": "cascade" } }, "conflict": "appendOnly"
            },
            "notes": {
              "columns": { "slug": "text", "body": "text", "tags": "set", "likes": "integer" }, "key": "slug",
              "rules": { "body": "keepLosingVersion", "tags": "set", "likes": "counter" },
              "outbox": "state", "onRemoteDelete": "updateWins", "coalesce": true, "writable": ["device"]
            }
          },
          "migrations": [
            { "from": 2, "to": 3, "sql": ["ALTER TABLE orders RENAME COLUMN total TO total_idr"],
              "operations": { "orders": { "rename": { "total": "total_idr" }, "default": { "status": "open" } } } }
          ]
        }
        """

    static let swift = Schema(
        version: 3,
        migrations: [
            Migration(
                from: 2,
                to: 3,
                sql: ["ALTER TABLE orders RENAME COLUMN total TO total_idr"],
                operations: ["orders": Upcast(rename: ["total": "total_idr"], defaults: ["status": "open"])]
            )
        ]
    ) {
        Table("orders", scope: "branch_id") {
            Column("id", .uuid).primaryKey()
            Column("branch_id", .text)
            Column("plate", .text).optional()
            Column("total_idr", .integer)
            Column("status", .text).defaults(to: "open")
        }
        .conflict(.compareAndSet).check("total_not_negative", "total_idr >= 0").unique("branch_id", "plate")
        .index("status")
        Table("payments", scopeFrom: "order_id") {
            Column("id", .uuid).primaryKey()
            Column("order_id", .uuid).references("orders", onDelete: .cascade)
            Column("amount_idr", .integer)
        }
        .conflict(.appendOnly)
        Table("notes") {
            Column("slug", .text).primaryKey()
            Column("body", .text)
            Column("tags", .set)
            Column("likes", .integer)
        }
        .rule("body", .keepLosingVersion).rule("tags", .set).rule("likes", .counter).outbox(.state)
        .onRemoteDelete(.updateWins).coalesced().writable(by: ["device"])
    }

    @Test func `the Swift form and the file mean the same`() throws {
        #expect(try Schema(json: Array(Self.file.utf8)) == Self.swift)
    }

    @Test func `a schema survives being written as a file`() throws {
        #expect(try Schema(json: Self.swift.json.bytes()) == Self.swift)
    }

    /// Each line: what is wrong, and the words the error must have.
    static let faults: [(String, [String])] = [
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uid"}}}}"#,
            ["t.id", "“uid” is unknown", "did you mean uuid?"]
        ),
        (#"{"version":1,"tables":{"t":{"columns":{"a":"text"}}}}"#, ["t: there is no primary key", "id"]),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"integer"}}}}"#,
            ["t.id", "the primary key is integer", "make it uuid or text"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid","o":"uuid"},"references":{"o":"orders"}}}}"#,
            ["t.o", "orders, which is no table"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid","o":"text"},"references":{"o":"t"}}}}"#,
            ["t.o", "same type"]
        ),
        (#"{"version":1,"tables":{"fieldpost_t":{"columns":{"id":"uuid"}}}}"#, ["fieldpost_t", "reserved"]),
        (#"{"version":1,"tables":{"select":{"columns":{"id":"uuid"}}}}"#, ["select", "keyword", "select_"]),
        (#"{"version":1,"tables":{"t":{"columns":{"id":"uuid","Bad":"text"}}}}"#, ["t.Bad", "lower-case"]),
        (#"{"version":1,"tables":{"t":{"columns":{"id":"uuid","id":"text"}}}}"#, ["twice", "byte"]),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid"},"scop":"x"}}}"#,
            ["t", "“scop”", "did you mean scope?"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid"},"scope":"branch"}}}"#,
            ["t.branch", "is no column"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid","n":"text"},"rules":{"n":"counter"}}}}"#,
            ["t.n", "counter", "integer"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid","n":"integer"},"defaults":{"n":"x"}}}}"#,
            ["t.n", "default does not fit"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid"},"conflict":"lww"}}}"#,
            ["t", "“lww” is unknown"]
        ),
        (#"{"tables":{"t":{"columns":{"id":"uuid"}}}}"#, ["no version"]), (#"{"version":1}"#, ["no tables"]),
        (#"{"#, ["not JSON"]),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid"},"unique":[["x"]]}}}"#,
            ["t.x", "is no column"]
        ),
        (
            #"{"version":2,"tables":{"t":{"columns":{"id":"uuid"}}},"migrations":[{"from":1,"to":3}]}"#,
            ["from 1 to 3", "single step"]
        ),
        (
            #"{"version":1,"tables":{"t":{"columns":{"id":"uuid"},"writable":["boss"]}}}"#,
            ["boss", "no role"]
        ),
    ]

    @Test(arguments: faults)
    func `a fault names its place and the remedy`(file: String, words: [String]) throws {
        let error = #expect(throws: SchemaError.self) { try Schema(json: Array(file.utf8)) }

        let text = error?.description ?? ""
        for word in words { #expect(text.contains(word), "\(text)") }
    }

    @Test func `duplicates in the Swift form are named`() {
        let schema = Schema(version: 1) {
            Table("t") {
                Column("id", .uuid).primaryKey()
                Column("a", .text)
                Column("a", .text)
            }
            Table("t") { Column("id", .uuid).primaryKey() }
        }

        let error = #expect(throws: SchemaError.self) { try schema.validate() }

        #expect(error?.description.contains("t.a: the column appears twice") == true)
        #expect(error?.description.contains("t: the table appears twice") == true)
    }

    @Test func `every fault is reported at once`() {
        let file = #"{"version":1,"tables":{"t":{"columns":{"id":"uid","a":"txt"},"conflct":"x"}}}"#
        let error = #expect(throws: SchemaError.self) { try Schema(json: Array(file.utf8)) }
        #expect(error?.problems.count == 3)
    }
}
