#!/usr/bin/env python3
"""The store against raw C, in one run: ratios, the median of five. See docs/benchmarks.md for what they mean."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "build", "bench")
BENCH = os.path.join(HERE, ".build", "release", "StoreBench")
ROUNDS = int(os.environ.get("ROUNDS", "5"))


def run(*command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or "{}")


def fresh(body):
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        return body(folder)


def swift(case, sync="FULL"):
    return fresh(lambda folder: run(BENCH, case, folder, sync))


def c_write(sync, batch, count):
    # Text keys and the outbox's own indexes: what a program with the same tables does at best.
    return fresh(lambda folder: run(
        os.path.join(BUILD, "limit"), "write", f"db={folder}/c.db", f"sync={sync}", f"batch={batch}", f"n={count}",
        "ent=et", "out=o12"))


def medians(*measures):
    """Rounds of all measures in turn, so that a noisy moment meets each."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*rounds)]


def main():
    os.makedirs(BUILD, exist_ok=True)
    for name in ["limit", "limit-read"]:
        subprocess.run(["gcc", "-O2", "-o", os.path.join(BUILD, name), os.path.join(HERE, name + ".c"), "-lsqlite3"], check=True)
    subprocess.run(["swift", "build", "-c", "release", "-j", "2", "--package-path", HERE, "--quiet"], check=True)
    rows = []
    for name, case, sync, batch, count, target in [
        ("one typed write, FULL", "write", "FULL", 1, 4000, 0.70), ("one typed write, NORMAL", "write", "NORMAL", 1, 4000, 0.60),
        ("100 in a transaction, NORMAL", "write100", "NORMAL", 100, 40000, 0.40),
    ]:
        ours, limit = medians(lambda: swift(case, sync)["ops_s"], lambda: c_write(sync, batch, count)["ops_s"])
        rows.append((name, f"{ours:,.0f}/s", f"{limit:,.0f}/s", f"{ours / limit:.2f}", f"{target:.2f}"))
    folder = tempfile.mkdtemp(dir=BUILD)
    subprocess.run([BENCH, "fill", folder, "NORMAL", "10000"], check=True)
    ours, limit = medians(
        lambda: run(BENCH, "read", folder)["ops_s"],
        lambda: run(os.path.join(BUILD, "limit-read"), f"{folder}/bench.db", "10000")["ops_s"])
    rows.append(("read 10,000 typed rows", f"{ours:,.0f}/s", f"{limit:,.0f}/s", f"{ours / limit:.2f}", "0.50"))
    few, = medians(lambda: run(BENCH, "open", folder)["ms"])
    subprocess.run([BENCH, "fill", folder, "NORMAL", "90000"], check=True)
    many, = medians(lambda: run(BENCH, "open", folder)["ms"])
    shutil.rmtree(folder)
    rows.append(("open, 10,000 / 100,000 waiting", f"{few:.1f} / {many:.1f} ms", "", f"{many / few:.2f}", "≤ 50 ms"))
    one = [swift("watch1", "NORMAL") for _ in range(ROUNDS)]
    hundred = [swift("watch100", "NORMAL") for _ in range(ROUNDS)]
    middle = lambda runs, key: statistics.median(run[key] for run in runs)
    rows.append(("watch, 1 watcher, p50 / p99", f"{middle(one, 'p50_us'):.0f} / {middle(one, 'p99_us'):.0f} µs", "", "", "100 µs"))
    rows.append((
        "watch, 100 equal, p50 / p99", f"{middle(hundred, 'p50_us'):.0f} / {middle(hundred, 'p99_us'):.0f} µs", "",
        f"{middle(hundred, 'p50_us') / middle(one, 'p50_us'):.1f}", "≤ 8"))
    print("| what | Fieldpost | raw C | ratio | target |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


sys.exit(main())
