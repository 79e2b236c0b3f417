import FieldpostCore
import FieldpostSQLite
import Testing

@Suite struct ErrorTests {
    let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.configureWriter(synchronous: .off)
        try connection.execute(
            """
            CREATE TABLE orders (
                id INTEGER PRIMARY KEY, code TEXT UNIQUE, total INTEGER NOT NULL DEFAULT 0,
                parent INTEGER REFERENCES orders, CONSTRAINT total_not_negative CHECK (total >= 0)
            ) STRICT;
            CREATE TRIGGER no_seven BEFORE INSERT ON orders WHEN NEW.id = 7 BEGIN
                SELECT RAISE(ABORT, 'seven is taken');
            END;
            INSERT INTO orders (id, code) VALUES (1, 'a');
            """
        )
    }

    @Test(
        arguments: [
            ("INSERT INTO orders (code) VALUES ('a')", .unique, "UNIQUE constraint failed: orders.code"),
            ("INSERT INTO orders (id) VALUES (1)", .primaryKey, "UNIQUE constraint failed: orders.id"),
            (
                "INSERT INTO orders (total) VALUES (NULL)", .notNull,
                "NOT NULL constraint failed: orders.total"
            ),
            ("INSERT INTO orders (total) VALUES (-1)", .check, "CHECK constraint failed: total_not_negative"),
            ("INSERT INTO orders (parent) VALUES (99)", .foreignKey, "FOREIGN KEY constraint failed"),
            (
                "INSERT INTO orders (total) VALUES ('x')", .datatype,
                "cannot store TEXT value in INTEGER column orders.total"
            ),
            ("INSERT INTO orders (id) VALUES ('x')", .datatype, "datatype mismatch"),
        ] as [(String, StoreError.Constraint, String)]
    )
    func `a broken constraint is named`(_ sql: String, _ kind: StoreError.Constraint, _ detail: String) {
        let error = storeError { try connection.run(sql) }

        #expect(error?.code == .constraint)
        #expect(error?.constraint == kind)
        #expect(error?.detail == detail)
    }

    @Test func `a trigger's refusal carries its text`() {
        let error = storeError { try connection.run("INSERT INTO orders (id) VALUES (7)") }

        #expect(error?.code == .aborted)
        #expect(error?.detail == "seven is taken")
        #expect(error?.constraint == nil)
    }

    @Test func `wrong SQL is told from wrong data`() {
        #expect(storeError { try connection.run("SELEC 1") }?.code == .sqlError)
        #expect(storeError { try connection.run("SELECT * FROM nothing") }?.code == .sqlError)
    }

    @Test func `a full database is full`() throws {
        try connection.execute("CREATE TABLE blobs (b); PRAGMA max_page_count = 20")

        #expect(
            storeError { try connection.run("INSERT INTO blobs VALUES (zeroblob(1000000))") }?.code == .full
        )
    }

    @Test func `a blob beyond the limit is too big`() {
        #expect(storeError { _ = try connection.scalar("SELECT zeroblob(2000000000)") }?.code == .tooBig)
    }

    @Test func `a statement can be interrupted, and the next one runs`() throws {
        let interrupter = connection.interrupter
        try connection.overrideFunction(name: "stop", argumentCount: 0) { _ in
            interrupter.interrupt()
            return nil
        }
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*), stop() FROM n"

        #expect(storeError { try connection.run(endless + " WHERE stop() IS NULL") }?.code == .interrupted)
        #expect(try connection.scalar("SELECT 1") == 1)
        connection.close()
        interrupter.interrupt()
    }

    @Test func `a built-in function can be replaced, in triggers too`() throws {
        try connection.overrideFunction(name: "random", argumentCount: 0) { _ in 4 }
        try connection.overrideFunction(name: "echo", argumentCount: 1) { $0[0] }
        try connection.execute(
            """
            CREATE TABLE log (n);
            CREATE TRIGGER t AFTER INSERT ON orders BEGIN INSERT INTO log VALUES (random()); END;
            INSERT INTO orders (id) VALUES (2);
            """
        )

        #expect(try connection.query("SELECT n, random() FROM log") == [[4, 4]])
        for value in [nil, 1, 0.5, "", "text", .blob([]), .blob([1])] as [Value] {
            #expect(try connection.scalar("SELECT echo(?)", value) == value)
        }
    }
}
