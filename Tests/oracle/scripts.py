"""Random SQL for the capture oracle: the same seed gives the same statements."""

import random

TABLES = {
    "people": ["id", "name", "email", "likes", "tags", "score", "photo", "meta", "done", "boss"],
    "teams": ["id", "name", "lead", "size"],
    "members": ["id", "team", "person", "role", "rank"],
    "log": ["id", "team", "note"],
}
KEYS = {"people": "p", "teams": "t", "members": "m", "log": "l"}
TEXTS = ["", "a", "A", "b", "Ä", "naïve", "it''s", 'say "hi"', "back\\slash", "line\nbreak", "日本語", "😀", "x" * 300, "\t"]
JSONS = ["1", "[1, 2.50, 1e3]", '{"a": [true, null], "b": "x"}', '"\\u00e9\\ud83d\\ude00"', "12345678901234567890", "[]", '{"n": -0.0}']
REALS = ["0.1", "1e300", "-1e-300", "5e-324", "1.7976931348623157e308", "3", "0.0", "-2.5", "1.0/3", "123456789.123456789"]
INTEGERS = ["0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808"]
CONFLICTS = ["", "", "", " OR REPLACE", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ABORT"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def key(self, table):
        return "'%s%d'" % (KEYS[table], self.random.randrange(8))

    def set(self):
        elements = [self.pick(['"a"', '"b"', '"ü"', "1", "-5", "9007199254740993"]) for _ in range(self.random.randrange(4))]
        return "'[%s]'" % ",".join(dict.fromkeys(elements))

    def value(self, table, column):
        if column == "id":
            return self.key(table)
        if column in ("boss", "lead", "person"):
            return "NULL" if self.chance(0.4) else self.key("people")
        if column == "team":
            return "NULL" if table == "log" and self.chance(0.4) else self.key("teams")
        if column == "tags":
            return self.set()
        if column == "likes":
            return self.pick(["likes", "0", "1", "5", "1000000007"]) if self.in_update else self.pick(["0", "3"])
        if column == "score":
            return "NULL" if self.chance(0.2) else self.pick(REALS)
        if column == "photo":
            return self.pick(["NULL", "x''", "x'00ff'", "randomblob(20)", "zeroblob(3)"])
        if column == "meta":
            return self.pick(["NULL"] + ["'%s'" % text for text in JSONS])
        if column == "done":
            return self.pick(["0", "1", "1", "2"]) if self.chance(0.1) else self.pick(["0", "1"])
        if column in ("size", "rank"):
            return self.pick(INTEGERS)
        if column == "email":
            return self.pick(["NULL", "'a@x'", "'A@X'", "'b@x'", "'c@x'"])
        return "'%s'" % self.pick(TEXTS)

    def where(self, table):
        kind = self.random.randrange(6)
        if kind == 0:
            return ""
        if kind < 4:
            return " WHERE id = %s" % self.key(table)
        return " WHERE id > %s" % self.key(table) if kind == 4 else " WHERE rowid %% %d = 0" % self.random.randrange(1, 4)

    def columns(self, table, least=1):
        others = [column for column in TABLES[table] if column != "id"]
        return self.random.sample(others, self.random.randrange(least, len(others) + 1))

    def required(self, table):
        return {"people": ["name"], "teams": ["name"], "members": ["team"], "log": ["note"]}[table]

    def insert(self, table):
        columns = ["id"] + sorted(set(self.columns(table, 0)) | set(self.required(table)))
        rows = ", ".join(
            "(%s)" % ", ".join(self.value(table, column) for column in columns)
            for _ in range(self.pick([1, 1, 1, 2, 3])))
        if self.chance(0.25):
            action = self.pick(["DO NOTHING", "DO UPDATE SET " + self.assignments(table, upsert=True)])
            target = " (id)" if action != "DO NOTHING" else ""
            return "INSERT INTO %s (%s) VALUES %s ON CONFLICT%s %s" % (table, ", ".join(columns), rows, target, action)
        verb = "REPLACE" if self.chance(0.1) else "INSERT" + self.pick(CONFLICTS)
        if self.chance(0.1):
            names = ", ".join(TABLES[table])
            copy = ", ".join("id || '+'" if name == "id" else name for name in TABLES[table])
            return "%s INTO %s (%s) SELECT %s FROM %s%s LIMIT 3" % (verb, table, names, copy, table, self.where(table))
        return "%s INTO %s (%s) VALUES %s" % (verb, table, ", ".join(columns), rows)

    def assignments(self, table, upsert=False):
        self.in_update = True
        parts = []
        for column in self.columns(table)[:3]:
            roll = self.random.random()
            if roll < 0.15:
                parts.append("%s = %s.%s" % (column, table, column))
            elif upsert and roll < 0.5:
                parts.append("%s = excluded.%s" % (column, column))
            elif column == "likes":
                parts.append("likes = likes + %d" % self.random.randrange(-3, 9))
            else:
                parts.append("%s = %s" % (column, self.value(table, column)))
        self.in_update = False
        return ", ".join(parts)

    def replacement(self):
        """Updates that take the place of another row, which random values seldom hit upon."""
        if self.chance(0.4):
            return "UPDATE OR REPLACE members SET team = 't0', rank = %d WHERE id = %s" % (
                self.random.randrange(1, 3), self.key("members"))
        table = self.pick(["members", "teams"])
        return "UPDATE OR REPLACE %s SET id = %s WHERE id = %s" % (table, self.key(table), self.key(table))

    def update(self, table):
        if self.chance(0.12):
            return self.replacement()
        assignments = self.assignments(table)
        where = self.where(table)
        if self.chance(0.2):
            assignments = self.pick(["id = %s" % self.key(table), "id = id || '-'", assignments + ", id = " + self.key(table)])
        if self.chance(0.05):
            return "UPDATE members SET role = t.name FROM teams AS t WHERE t.id = members.team"
        conflict = self.pick(CONFLICTS)
        if table == "people" and "REPLACE" in conflict:
            # SQLite 3.40, without any trigger: a row whose own parent is replaced keeps the reference that ON DELETE
            # SET NULL has just cleared, and such a statement may fail as "malformed".
            conflict = " OR IGNORE"
        return "UPDATE%s %s SET %s%s" % (conflict, table, assignments, where)

    def statement(self):
        self.in_update = False
        table = self.pick(["people", "people", "teams", "members", "members", "log"])
        roll = self.random.random()
        if roll < 0.5:
            return self.insert(table)
        if roll < 0.82:
            return self.update(table)
        return "DELETE FROM %s%s" % (table, self.where(table))

    def transaction(self, savepoints=True):
        """Statements, with how they end: `commit` or `rollback`."""
        statements = []
        for _ in range(self.random.randrange(1, 6)):
            if savepoints and self.chance(0.1):
                undo = "ROLLBACK TO s; " if self.chance(0.6) else ""
                statements += ["SAVEPOINT s", self.statement(), self.statement(), undo + "RELEASE s"]
            else:
                statements.append(self.statement())
        return {"statements": statements, "end": "rollback" if self.chance(0.1) else "commit"}

    def session(self, count):
        """What one connection that does not know Fieldpost does."""
        return {
            "pragmas": ["PRAGMA foreign_keys = %s" % self.pick(["ON", "ON", "OFF"]),
                        "PRAGMA recursive_triggers = %s" % self.pick(["OFF", "OFF", "ON"])],
            "transactions": [self.transaction() for _ in range(count)],
        }
