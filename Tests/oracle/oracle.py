"""Drives the capture oracle over random scripts, on files made from one template.

    oracle.py prepare TEMPLATE FOLDER FIRST COUNT   rows as if pulled, then a connection that does not know Fieldpost
    (the test suite runs FOLDER/N.json through Fieldpost)
    oracle.py finish FOLDER FIRST COUNT             another such connection or the sqlite3 shell, then all checks

Prints one line for each fault; exit status 1 if there is any.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys

import replay
from scripts import Generator

PULLED = [
    "INSERT INTO people (id, name, email, likes, tags, score) VALUES ('p0', 'Zoë', 'a@x', 3, '[1,\"a\"]', 0.1)",
    "INSERT INTO people (id, name, boss) VALUES ('p1', 'Ada', 'p0'), ('p2', 'Bo', 'p1')",
    "INSERT INTO teams (id, name, lead) VALUES ('t0', 'red', 'p0'), ('t1', 'blue', NULL)",
    "INSERT INTO members (id, team, person, rank) VALUES ('m0', 't0', 'p0', 1), ('m1', 't0', 'p1', 2), ('m2', 't1', NULL, 0)",
    "INSERT INTO log (id, team, note) VALUES ('l0', 't0', 'begun')",
]


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    return db


def pull(db, schema):
    """Puts rows in as the engine does: silently, with the version the server gave them."""
    db.execute("BEGIN")
    db.execute("UPDATE fieldpost_session SET applying = 1")
    for statement in PULLED:
        db.execute(statement)
    rows = replay.dump(schema, db)
    db.executemany("INSERT INTO fieldpost_rows (tbl, row, version) VALUES (?, ?, 7)", list(rows))
    db.execute("UPDATE fieldpost_session SET applying = 0")
    db.execute("COMMIT")
    return rows


class Writer:
    """A connection that knows nothing of Fieldpost; it looks at the file after each statement."""

    def __init__(self, db, schema):
        self.db, self.schema, self.faults = db, schema, []
        self.rows = None  # as the last statement left them, where that is known

    def last(self):
        return self.db.execute("SELECT ifnull(max(seq), 0) FROM fieldpost_outbox").fetchone()[0]

    def run(self, session):
        for pragma in session["pragmas"]:
            self.db.execute(pragma)
        for transaction in session["transactions"]:
            self.db.execute("BEGIN")
            for statement in transaction["statements"]:
                self.statement(statement)
            self.rows = None
            try:
                self.db.execute("COMMIT" if transaction["end"] == "commit" else "ROLLBACK")
            except sqlite3.Error:
                self.db.execute("ROLLBACK")

    def statement(self, statement):
        before, first = self.rows or replay.dump(self.schema, self.db), self.last()
        self.rows = None
        failed = False
        for part in statement.split("; "):
            try:
                self.db.execute(part)
            except sqlite3.IntegrityError:
                failed = True
        if "SAVEPOINT" in statement or "RELEASE" in statement:
            return
        after = self.rows = replay.dump(self.schema, self.db)
        made = list(self.db.execute(
            "SELECT tbl, row, action, change, grp FROM fieldpost_outbox WHERE seq > ? ORDER BY seq", (first,)))
        if failed and "OR FAIL" not in statement and before == after and made:
            self.faults.append("a failed statement left operations: " + statement)
        for table, row, action, change, group in made:
            if group is not None:
                self.faults.append("an operation of an unknown writer is in a group: " + statement)
            alone = sum(1 for other in made if other[:2] == (table, row)) == 1
            if alone and action == "update":
                self.columns((table, row), change, before, after, statement)

    def columns(self, place, change, before, after, statement):
        """A change holds the columns that differ, and no others."""
        named = {column for part in json.loads(change).values() for column in part}
        old, new = before.get(place), after.get(place)
        if old is None or new is None:
            self.faults.append("an update of a row that was not there: " + statement)
            return
        differing = {
            column for column, kind in self.schema.columns(place[0]).items()
            if old[column] != new[column] or type(old[column]) is not type(new[column])}
        if named != differing:
            self.faults.append("%s names %s, but %s changed: %s" % (place, sorted(named), sorted(differing), statement))


def run_shell(path, session):
    lines = session["pragmas"]
    for transaction in session["transactions"]:
        lines = lines + ["BEGIN;"] + [s + ";" for s in transaction["statements"]] + [transaction["end"].upper() + ";", "ROLLBACK;"]
    script = "\n".join(line if line.endswith(";") else line + ";" for line in lines)
    subprocess.run(["sqlite3", path], input=script.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def bookkeeping(db, schema, initial, known_after):
    """Faults in what operations say beside their change."""
    faults, newest = [], {}
    entries = list(db.execute("SELECT seq, id, grp, tbl, row, base, after, action FROM fieldpost_outbox ORDER BY seq"))
    ids = {entry[1]: entry[0] for entry in entries}
    if len(ids) != len(entries):
        faults.append("two operations have one id")
    for seq, identity, group, table, row, base, after, action in entries:
        waits = json.loads(after or "[]")
        expected = newest.get((table, row), 7 if (table, row) in initial else None)
        if base != expected:
            faults.append("operation %d: base is %r, not %r" % (seq, base, expected))
        if (table, row) in newest and newest[(table, row)] not in waits:
            faults.append("operation %d does not wait for the one before on its row" % seq)
        # The delete of a row may wait for one that went behind another delete in turn.
        if identity in waits or action != "delete" and any(ids.get(other, seq) >= seq for other in waits):
            faults.append("operation %d waits for one that does not come before it" % seq)
        if group is not None and not known_after[0] < seq <= known_after[1]:
            faults.append("operation %d is in a group, but Fieldpost did not write it" % seq)
        if group is None and known_after[0] < seq <= known_after[1]:
            faults.append("operation %d is in no group, though Fieldpost wrote it" % seq)
        newest[(table, row)] = identity
    for table, row, base in db.execute("SELECT tbl, row, base FROM fieldpost_rows"):
        if ((table, row) in newest) != (base is not None):
            faults.append("%s %s has %s base" % (table, row, "no" if base is None else "an unneeded"))
        elif base is not None:
            kept = {}
            replay.apply(schema, kept, (table, row, "create", '{"set":%s}' % base))
            faults += ["base of " + line for line in replay.differences(schema, kept, {(table, row): initial[(table, row)]})]
    if tuple(db.execute("SELECT applying, grp, at, trusted FROM fieldpost_session").fetchone()) != (0, None, None, 0):
        faults.append("the session row is not cleared")
    return faults


def report(seed, faults):
    for fault in faults[:5]:
        print("script %d: %s" % (seed, fault))


def prepare(template, folder, first, count):
    for seed in range(first, first + count):
        path = os.path.join(folder, "%d.db" % seed)
        shutil.copyfile(template, path)
        generator, db = Generator(seed), connect(path)
        schema = replay.Schema(db)
        initial = pull(db, schema) if seed % 2 else {}
        writer = Writer(db, schema)
        writer.run(generator.session(3))
        faults = writer.faults + replay.check(db, initial)
        if faults:
            report(seed, faults)
            return True
        script = {"transactions": [generator.transaction() for _ in range(3)], "before": writer.last()}
        script["initial"] = [[table, row, values] for (table, row), values in initial.items()]
        db.close()
        with open(os.path.join(folder, "%d.json" % seed), "w") as file:
            json.dump(script, file)
    return False


def finish(folder, first, count):
    found = False
    for seed in range(first, first + count):
        path = os.path.join(folder, "%d.db" % seed)
        with open(os.path.join(folder, "%d.json" % seed)) as file:
            script = json.load(file)
        initial = {(table, row): values for table, row, values in script["initial"]}
        db = connect(path)
        schema = replay.Schema(db)
        writer = Writer(db, schema)
        known = (script["before"], writer.last())
        session = Generator(seed + 1_000_000).session(3)
        if seed % 10 == 0:
            db.close()
            run_shell(path, session)
            db = connect(path)
        else:
            writer.run(session)
        faults = writer.faults + replay.check(db, initial) + bookkeeping(db, schema, initial, known)
        report(seed, faults)
        found = found or bool(faults)
        db.close()
    return found


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        sys.exit(1 if prepare(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])) else 0)
    sys.exit(1 if finish(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])) else 0)
