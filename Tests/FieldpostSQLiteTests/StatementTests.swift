import FieldpostCore
import FieldpostSQLite
import Testing

@Suite struct StatementTests {
    let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute("CREATE TABLE t (a, b)")
    }

    @Test(arguments: [
        Value.null, .integer(.min), .integer(.max), .real(0.1), .real(-.infinity), .text(""),
        .text("é\u{1F980}"),
        .blob([]), .blob([0, 255]),
    ])
    func `a value comes back as it was stored`(_ value: Value) throws {
        try connection.run("INSERT INTO t (a) VALUES (?)", value)

        #expect(try connection.query("SELECT a FROM t") == [[value]])
    }

    @Test func `NaN is refused, because SQLite would store it as null`() {
        #expect(
            storeError { try connection.run("INSERT INTO t (a) VALUES (?)", .real(.nan)) }?.code == .misuse
        )
    }

    @Test func `a row is read by column, with names`() throws {
        try connection.run("INSERT INTO t VALUES (?, ?)", 7, "seven")
        var seen = 0

        try connection.forEach("SELECT a, b, NULL AS c FROM t") { row in
            seen += 1
            #expect(row.integer(0) == 7)
            #expect(row.text(1) == "seven")
            #expect(row.withBytes(1) { $0.count } == 5)
            #expect(row.isNull(2) && !row.isNull(0))
            #expect(row.columnName(2) == "c" && row.columnCount == 3)
            #expect(row.values() == [7, "seven", nil])
        }

        #expect(seen == 1)
        #expect(try connection.columns(of: "SELECT a AS x, b FROM t") == ["x", "b"])
    }

    @Test func `a statement runs again after its end`() throws {
        let insert = try connection.prepare("INSERT INTO t (a) VALUES (?)")
        for number in 1...3 {
            try insert.bind(1, Int64(number))
            try insert.run()
        }

        #expect(try connection.query("SELECT a FROM t ORDER BY a") == [[1], [2], [3]])
        #expect(connection.changes == 1)
        #expect(connection.totalChanges == 3)
        #expect(connection.lastInsertRowID == 3)
    }

    @Test func `bytes that are not UTF-8 are repaired and an inner NUL is kept`() throws {
        #expect(try connection.scalar("SELECT CAST(x'61FF62' AS TEXT)") == "a\u{FFFD}b")
        #expect(try connection.scalar("SELECT ?", "a\0b") == "a\0b")
    }

    @Test(arguments: [[], [1, 2, 3]] as [[Value]])
    func `a wrong number of values is refused`(_ values: [Value]) {
        let error = storeError { try connection.run("INSERT INTO t VALUES (?, ?)", values) }

        #expect(error?.code == .misuse)
    }

    @Test func `a parameter that does not exist is refused`() throws {
        let statement = try connection.prepare("SELECT ?")

        #expect(storeError { try statement.bind(2, 1 as Int64) }?.code == .misuse)
    }

    @Test(arguments: [
        "SELECT 1; SELECT 2", "SELECT 1; nonsense", "SELECT 1;;\n SELECT 2", "", " -- nothing", ";",
    ])
    func `anything but one statement is refused`(_ sql: String) {
        #expect(storeError { _ = try connection.prepare(sql) }?.code == .misuse)
    }

    @Test(arguments: ["SELECT 1", "SELECT 1;", "SELECT 1; -- done\n ; /* really */"])
    func `one statement with only comments after it is accepted`(_ sql: String) throws {
        #expect(try connection.scalar(sql) == 1)
    }

    @Test func `what follows a NUL in the SQL is never dropped silently`() {
        #expect(storeError { try connection.execute("SELECT 1;\0DELETE FROM t") }?.code == .misuse)
        #expect(storeError { _ = try connection.prepare("SELECT 1\0; DELETE FROM t") }?.code == .misuse)
    }

    @Test func `a script runs statement by statement and stops at the first failure`() throws {
        let script =
            "INSERT INTO t VALUES (1, ';'); INSERT INTO nowhere VALUES (1); INSERT INTO t VALUES (2, 2)"

        #expect(storeError { try connection.execute(script) }?.detail == "no such table: nowhere")
        #expect(try connection.query("SELECT b FROM t") == [[";"]])
    }

    @Test(arguments: [
        ("SELECT a FROM t", true), ("INSERT INTO t (a) VALUES (1)", false),
        ("DELETE FROM t RETURNING a", false), ("BEGIN", false), ("ATTACH ':memory:' AS x", false),
        ("CREATE TABLE x (a)", false), ("PRAGMA journal_mode = DELETE", false), ("EXPLAIN SELECT 1", true),
    ])
    func `only a statement that reads counts as reading`(_ sql: String, _ expected: Bool) throws {
        #expect(try connection.isReadOnly(sql) == expected)
    }

    @Test func `a write with RETURNING runs to its end when only its first value is wanted`() throws {
        let first = try connection.scalar("INSERT INTO t (a) VALUES (1), (2) RETURNING a")

        #expect(first == 1)
        #expect(try connection.scalar("SELECT count(*) FROM t") == 2)
        #expect(try connection.scalar("SELECT a FROM t WHERE a = 9") == nil)
    }

    @Test func `a text in double quotes is an error`() {
        #expect(storeError { _ = try connection.query("SELECT \"typo\" FROM t") }?.code == .sqlError)
    }

    @Test func `an error in the closure ends the query`() throws {
        struct Stop: Error {}
        try connection.run("INSERT INTO t (a) VALUES (1), (2)")

        #expect(throws: Stop.self) { try connection.forEach("SELECT a FROM t") { _ in throw Stop() } }

        try connection.execute("DROP TABLE t")
    }
}

@Suite struct StatementCacheTests {
    let connection: Connection

    init() throws { connection = try Connection(path: ":memory:") }

    @Test func `equal SQL shares one statement, without the earlier values`() throws {
        var first: Statement? = try connection.statement("SELECT ?")
        try first?.bind(1, 5 as Int64)
        try first?.step()
        let identity = first.map { ObjectIdentifier($0) }
        first = nil

        let second = try connection.statement("SELECT ?")

        #expect(ObjectIdentifier(second) == identity)
        #expect(try second.step())
        #expect(second.isNull(0))
    }

    @Test func `a statement in use is not handed out twice`() throws {
        var pairs: [[Value]] = []
        let sql = "SELECT value FROM json_each('[1,2]')"

        try connection.forEach(sql) { outer in
            let left = outer.value(0)
            try connection.forEach(sql) { pairs.append([left, $0.value(0)]) }
        }

        #expect(pairs == [[1, 1], [1, 2], [2, 1], [2, 2]])
        #expect(connection.cachedStatementCount == 1)
    }

    @Test func `the cache is bounded and keeps what is used`() throws {
        let kept = ObjectIdentifier(try connection.statement("SELECT 'kept'"))
        for number in 0..<500 {
            _ = try connection.statement("SELECT \(number)")
            _ = try connection.statement("SELECT 'kept'")
        }

        #expect(connection.cachedStatementCount == 200)
        #expect(ObjectIdentifier(try connection.statement("SELECT 'kept'")) == kept)
    }

    @Test func `a cached statement survives a change of the schema`() throws {
        try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        #expect(try connection.query("SELECT * FROM t") == [[1]])

        try connection.execute("ALTER TABLE t ADD COLUMN b DEFAULT 2")

        #expect(try connection.query("SELECT * FROM t") == [[1, 2]])
    }
}
