#!/usr/bin/env python3
"""Kills a device with SIGKILL while it syncs 1,000 operations, ten rounds, then looks whether anything is wrong.

Half of the kills fall, by the server's own log, between its commit and the answer; the others at a random moment.
Afterwards the server must have each operation exactly once and in order.
"""

import os
import random
import shutil
import sys
import threading
import uuid

from bay import Phone, Radio, Server, fieldpost_binary, sqlite, token

FOLDER = os.path.join("build", "kill-rounds")
SCHEMA = os.path.join("Scripts", "washbay.json")
STORE, DB = f"{FOLDER}/server.db", f"{FOLDER}/phone.db"
ROUNDS, OPERATIONS, GROUP = int(os.environ.get("ROUNDS", "10")), 1_000, 5


def write_orders(phone, round_number):
    for number in range(OPERATIONS // GROUP):
        phone.write(*(
            {"table": "orders", "action": "create", "row": str(uuid.uuid4()),
             "set": {"branch_id": "kemang", "plate": f"{round_number}-{number}-{place}", "total_idr": place,
                     "opened_at": number}}
            for place in range(GROUP)))


def kill_after_commit(phone, server, radio, chance):
    """Dies between the server's commit and the answer of a push somewhere in the middle of the sync."""
    left, fell = chance.randrange(1, 6), threading.Event()
    commits = len(server.committed)
    pushes = 0

    def on_answer(ids):
        nonlocal left, pushes
        pushes += 1
        left -= 1
        if left == 0:
            radio.on_answer = None
            assert server.wait_for_commits(commits + pushes)
            phone.kill()
            fell.set()
    radio.on_answer = on_answer
    phone.tell({"do": "sync"})
    assert fell.wait(timeout=60), "the sync was over before the kill"
    return "between the commit and the answer"


def kill_at_random(phone, radio, chance):
    """Dies once a random number of requests has gone out, at whatever it is doing then."""
    seen, limit, reached = 0, chance.randrange(1, 7), threading.Event()

    def on_answer(ids):
        nonlocal seen
        seen += 1
        if seen >= limit:
            reached.set()
    radio.on_answer = on_answer
    phone.tell({"do": "sync"})
    reached.wait(timeout=60)
    threading.Event().wait(chance.random() * 0.02)
    phone.kill()
    radio.on_answer = None
    return "at a random moment"


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    chance = random.Random(int(os.environ.get("SEED", "1")))
    fieldpost = fieldpost_binary()
    server = Server(fieldpost, SCHEMA, STORE)
    radio = Radio(server)
    radio.has_signal = True
    phone = Phone(fieldpost, SCHEMA, DB, radio.address, token(fieldpost, STORE, "kemang"))
    after_commit = 0
    for number in range(ROUNDS):
        write_orders(phone, number)
        if number % 2 == 0:
            where = kill_after_commit(phone, server, radio, chance)
            after_commit += 1
        else:
            where = kill_at_random(phone, radio, chance)
        left = sqlite(DB, "SELECT count(*) FROM fieldpost_outbox")
        print(f"round {number + 1}: killed {where}; {left} operations were unsettled on the phone", flush=True)
        phone.start()
    reply = phone.ask(do="sync")
    # A program that knows nothing of Fieldpost writes into the file while the device has it open.
    strange = str(uuid.uuid4())
    sqlite(DB, f"INSERT INTO orders VALUES ('{strange}', 'kemang', 'shell', 1, 'open', 0)", writing=True)
    shell = phone.ask(do="sync")
    phone.stop()
    code = server.stop()
    total = ROUNDS * OPERATIONS
    resent = sum(map(len, radio.sent)) - total - 1
    # Checked by the sqlite3 shell, on the files.
    checks = {
        "the phone has nothing left to send": sqlite(DB, "SELECT count(*) FROM fieldpost_outbox") == "0",
        f"the server has {total} orders and the one of the shell": sqlite(
            STORE, "SELECT count(*) FROM orders") == str(total + 1),
        "each was settled once": sqlite(
            STORE, "SELECT count(*) || ' ' || count(DISTINCT id) FROM fieldpost_operations") == f"{total + 1} {total + 1}",
        "a row that the sqlite3 shell wrote into the live file was sent": shell["pushed"] == 1 and sqlite(
            STORE, f"SELECT plate FROM orders WHERE id = '{strange}'") == "shell",
        "in the order of the phone": sqlite(
            STORE, "SELECT count(*) FROM (SELECT seq, lag(seq) OVER (ORDER BY version) AS before "
                   "FROM fieldpost_operations) WHERE before >= seq") == "0",
        "phone and server hold the same rows": sqlite(DB, "SELECT * FROM orders ORDER BY id")
        == sqlite(STORE, "SELECT * FROM orders ORDER BY id"),
        "at least three kills fell between commit and answer": after_commit >= min(3, ROUNDS),
        "operations were sent again after kills": resent > 0,
        "the last sync reports all synced": reply["status"]["state"] == "allSynced",
        "the server stopped cleanly": code == 0,
    }
    radio.stop()
    for check, holds in checks.items():
        print(("ok      " if holds else "FAILED  ") + check)
    print(f"{resent} operations were sent more than once")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
