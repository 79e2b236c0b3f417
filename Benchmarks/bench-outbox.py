#!/usr/bin/env python3
"""The outbox against raw C, in one run: ratios, medians of interleaved rounds. See docs/benchmarks.md."""
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "build", "bench")
BIN = os.path.join(HERE, ".build", "release")
BENCH, SERVER, LIMIT = os.path.join(BIN, "OutboxBench"), os.path.join(BIN, "ServerBench"), os.path.join(BUILD, "limit")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
BODY = "The quick brown fox jumps over the lazy dog while the farmer counts the sheep in the meadow at dawn."
# Version 7 keys in order of time, as the library makes them.
FILL = """WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
INSERT INTO items (id, title, body, done, priority, updated_at)
SELECT printf('019a0000-%04x-7%03x-8%03x-%012x', i >> 12, i & 4095, random() & 4095, random() & 281474976710655),
  'Item number ' || i, ?3, i & 1, i % 5, 1764460800000 FROM n"""
DAY = 86_400_000


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return json.loads(done.stdout.strip() or "{}")


class Template:
    """A filled file, copied for each measure that changes it."""

    def __init__(self, count, prepare=None):
        self.folder = tempfile.mkdtemp(dir=BUILD)
        run(BENCH, "open", self.folder)
        db = sqlite3.connect(os.path.join(self.folder, "bench.db"))
        db.execute("PRAGMA synchronous = OFF")
        for first in range(1, count + 1, 1000):
            # Nobody's transaction: each operation is a group of its own.
            db.execute(FILL, (first, min(first + 999, count), BODY))
            db.commit()
        if prepare:
            prepare(db)
            db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()

    def use(self, case, sync, *arguments):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            shutil.copy(os.path.join(self.folder, "bench.db"), folder)
            return run(BENCH, case, folder, sync, *arguments)

    def look(self, case):
        """For what changes nothing."""
        return run(BENCH, case, self.folder, "NORMAL")

    def remove(self):
        shutil.rmtree(self.folder)


def backing_off(first):
    """The first so many wait for a time that is far away."""
    def prepare(db):
        now = int(time.time() * 1000)
        db.execute("UPDATE fieldpost_outbox SET state = 1, attempts = 1, last_attempt_at = ?, next_attempt_at = ?"
                   " WHERE seq <= ?", (now, now + DAY, first))
    return prepare


def set_aside(first):
    """Half of the first so many are dead letters, and the other half is held by them."""
    def prepare(db):
        error = '{"code":"rejected","message":"no","fields":[]}'
        db.execute("UPDATE fieldpost_outbox SET state = 3, attempts = 1, error = ? WHERE seq <= ?", (error, first // 2))
        db.execute("UPDATE fieldpost_outbox SET state = 2, held_by = (SELECT id FROM fieldpost_outbox AS d"
                   " WHERE d.seq = fieldpost_outbox.seq - ?1) WHERE seq > ?1 AND seq <= ?1 * 2", (first // 2,))
    return prepare


def c_limit(case, *arguments):
    """Text keys and the outbox's own indexes: what a program with the same tables does at best."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        return run(LIMIT, case, f"db={folder}/c.db", "ent=et", *arguments)


def medians(*measures, rounds=ROUNDS):
    """Rounds of all measures in turn, so that a noisy moment meets each."""
    results = [[measure() for measure in measures] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*results)]


def drains(rows):
    full = Template(10_000)
    for sync in ["FULL", "NORMAL"]:
        for batch in [100, 1_000]:
            ours, limit = medians(
                lambda: full.use("drain", sync, batch)["ops_s"],
                lambda: c_limit("drain", f"sync={sync}", "out=o12", f"batch={batch}", "n=10000", "backlog=10000")["ops_s"])
            rows.append((f"drain 10,000, batches of {batch:,}, {sync}", f"{ours:,.0f}/s", f"{limit:,.0f}/s",
                         f"{ours / limit:.2f}", "0.75"))
    full.remove()


def claims(rows, large):
    """The time of one claim with the acknowledgement before it, by what else waits."""
    cases = [("5,000", 5_000, None), ("109,000", 109_000, None),
             ("10,000, behind 100,000 backing off", 110_000, backing_off(100_000)),
             ("10,000, behind 10,000 set aside", 20_000, set_aside(10_000))]
    if large:
        cases.append(("1,000,000", 1_000_000, None))
    templates = [Template(count, prepare) for _, count, prepare in cases]
    found = [[template.use("claim", "NORMAL", 30) for template in templates] for _ in range(ROUNDS)]
    times = [statistics.median(r["p50_us"] for r in column) for column in zip(*found)]
    for (name, _, _), took in zip(cases, times):
        rows.append((f"claim + ack of 100, of {name}", f"{took:,.0f} µs", "", f"{took / times[0]:.2f}", "≤ 1.2"))
    memory = [statistics.median(r["rss_kib"] for r in column) / 1024 for column in zip(*found)]
    rows.append((f"peak memory of that, 5,000 / {cases[-1][0] if large else '109,000'} waiting",
                 f"{memory[0]:.1f} / {memory[-1 if large else 1]:.1f} MiB", "",
                 f"{memory[-1 if large else 1] / memory[0]:.2f}", "flat"))
    return templates, cases


def looks(rows, few, many, name):
    """What reads only: opening, and the statuses."""
    a, b = medians(lambda: few.look("open")["ms"], lambda: many.look("open")["ms"])
    rows.append((f"open, 5,000 / {name} waiting", f"{a:.1f} / {b:.1f} ms", "", f"{b / a:.2f}", "≤ 50 ms"))
    for key, title in [("status_us", "status()"), ("row_us", "status of a row"), ("item_us", "one operation by its id")]:
        a, b = medians(lambda: few.look("status")[key], lambda: many.look("status")[key], rounds=3)
        rows.append((f"{title}, 5,000 / {name} waiting", f"{a:,.0f} / {b:,.0f} µs", "", f"{b / a:.2f}", "flat"))


def to_server(rows):
    full = Template(10_000)
    schema = os.path.join(full.folder, "schema.json")
    with open(schema, "w") as file:
        json.dump(run(BENCH, "schema", full.folder), file)

    def ours():
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            server = subprocess.Popen([SERVER, f"{folder}/server.db", schema], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            try:
                where = json.loads(server.stdout.readline())
                return full.use("push", "FULL", where["url"], where["token"], 1_000)["ops_s"]
            finally:
                server.stdin.close()
                server.wait(timeout=30)

    # The row and the record of its operation by its key, a hundred of each in a transaction.
    speed, limit = medians(
        ours, lambda: c_limit("write", "sync=FULL", "out=o7", "batch=100", "n=10000")["ops_s"])
    rows.append(("device → server over HTTP, 10,000, FULL on both", f"{speed:,.0f}/s", f"{limit:,.0f}/s",
                 f"{speed / limit:.2f}", "0.25"))
    full.remove()


def main():
    os.makedirs(BUILD, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-o", LIMIT, os.path.join(HERE, "limit.c"), "-lsqlite3"], check=True)
    subprocess.run(["swift", "build", "-c", "release", "-j", "2", "--package-path", HERE, "--quiet"], check=True)
    large = "--million" in sys.argv
    rows = []
    drains(rows)
    to_server(rows)
    templates, cases = claims(rows, large)
    looks(rows, templates[0], templates[-1] if large else templates[1], "1,000,000" if large else "109,000")
    for template in templates:
        template.remove()
    print("| what | Fieldpost | raw C | ratio | target |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


sys.exit(main())
