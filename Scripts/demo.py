#!/usr/bin/env python3
"""A morning at a car wash with no signal: two phones, one server, one lost answer, one dead battery.

Everything that is printed under "the files say" is read by the sqlite3 shell from the three files. Exit status 0 only
if every order and payment is on both phones and on the server, none twice, none missing.
"""

import os
import shutil
import sys
import uuid

from bay import Phone, Radio, Server, fieldpost_binary, sqlite, token

FOLDER = os.path.join("build", "demo")
SCHEMA = os.path.join("Scripts", "washbay.json")
SERVER, PHONES = f"{FOLDER}/server.db", [f"{FOLDER}/phone1.db", f"{FOLDER}/phone2.db"]
TABLES = ["orders", "payments", "stock_movements"]


def say(text=""):
    print(text, flush=True)


def wash(phone, number, plate, price):
    """One order with its payment and the soap it took, in one transaction."""
    order = str(uuid.uuid4())
    minute = 1_764_460_800_000 + number * 60_000
    return phone.write(
        {"table": "orders", "action": "create", "row": order,
         "set": {"branch_id": "kemang", "plate": plate, "total_idr": price, "opened_at": minute}},
        {"table": "payments", "action": "create",
         "set": {"branch_id": "kemang", "order_id": order, "amount_idr": price}},
        {"table": "stock_movements", "action": "create",
         "set": {"branch_id": "kemang", "product": "soap", "quantity": -1}})


def play(fieldpost):
    server = Server(fieldpost, SCHEMA, SERVER)
    key = token(fieldpost, SERVER, "kemang")
    radio = Radio(server)
    first, second = (Phone(fieldpost, SCHEMA, db, radio.address, key) for db in PHONES)

    say("07:00  No signal in the bays. Two phones take orders and payments.")
    for number in range(12):
        wash(first, number, f"B {1000 + number} JID", 50_000 + number * 1_000)
    for number in range(9):
        wash(second, 100 + number, f"B {2000 + number} JID", 75_000)
    for name, phone in (("phone 1", first), ("phone 2", second)):
        reply = phone.ask(do="sync")
        say(f"       {name}: sync {'worked' if reply['online'] else 'found no network'}; “{reply['status']['sentence']}”")

    say("09:30  Signal. Phone 1 sends; the server answers; the answer is lost on the way.")
    radio.has_signal, radio.lose_answers = True, 1
    reply = first.ask(do="sync")
    say(f"       phone 1: {'online' if reply['online'] else 'no network'}; “{reply['status']['sentence']}”")

    say("09:31  Phone 2 sends; the server has committed; the battery dies before the answer is there.")
    commits = len(server.committed)

    def battery_dies(ids):
        radio.on_answer = None
        assert server.wait_for_commits(commits + 1), "the server's log shows no commit"
        second.kill()
    radio.on_answer = battery_dies
    second.tell({"do": "sync"})
    assert second.hear() is None, "phone 2 should be dead"
    second.start()

    say("09:40  Signal again for both.")
    for name, phone in (("phone 1", first), ("phone 2", second), ("phone 1", first)):
        reply = phone.ask(do="sync")
        say(f"       {name}: sent {reply['pushed']}, received {reply['pulled']}; “{reply['status']['sentence']}”")
    first.stop(), second.stop()
    return server, radio


def verdict(radio):
    """Reads the three files with the sqlite3 shell and compares."""
    say()
    say("The files say, asked by the sqlite3 shell:")
    say(f"       {'':16}{'phone 1':>10}{'phone 2':>10}{'server':>10}")
    good = True
    for table in TABLES:
        counts = [sqlite(file, f"SELECT count(*) || '/' || count(DISTINCT id) FROM {table}") for file in PHONES + [SERVER]]
        say(f"       {table:16}" + "".join(f"{c:>10}" for c in counts) + "   rows/different ids")
        rows = [sqlite(file, f"SELECT * FROM {table} ORDER BY id") for file in PHONES + [SERVER]]
        good &= counts[0] == "21/21" and rows[0] == rows[1] == rows[2]
    totals = [sqlite(file, "SELECT sum(amount_idr) FROM payments") for file in PHONES + [SERVER]]
    say(f"       {'rupiah paid':16}" + "".join(f"{t:>10}" for t in totals))
    waiting = [sqlite(file, "SELECT count(*) FROM fieldpost_outbox") for file in PHONES]
    say(f"       {'still to send':16}" + "".join(f"{w:>10}" for w in waiting))
    good &= waiting == ["0", "0"] and totals[0] == totals[1] == totals[2]

    sends = {}
    for ids in radio.sent:
        for id in ids:
            sends[id] = sends.get(id, 0) + 1
    twice = [id for id, count in sends.items() if count == 2]
    lost = next((id for id in twice if id in radio.lost), None)
    killed = next((id for id in twice if id not in radio.lost), None)
    for what, id in (("its answer was lost", lost), ("its phone died before the answer", killed)):
        if id is None:
            say(f"       no operation was sent twice because {what}")
            good = False
            continue
        settled = sqlite(SERVER, f"SELECT count(*) FROM fieldpost_operations WHERE id = '{id}'")
        row = sqlite(SERVER, f"SELECT operation ->> '$.row' FROM fieldpost_operations WHERE id = '{id}'")
        there = sum(int(sqlite(SERVER, f"SELECT count(*) FROM {table} WHERE id = '{row}'")) for table in TABLES)
        say(f"       operation {id}: {what}; sent {sends[id]} times, settled {settled} time, {there} row")
        good &= settled == "1" and there == 1
    say()
    say("Nothing is missing, nothing is there twice." if good else "THE FILES DO NOT AGREE.")
    return good


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    server, radio = play(fieldpost_binary())
    good = verdict(radio)
    if sys.stdout.isatty() and sys.stdin.isatty() and not os.environ.get("CI"):
        say(f"The server stays up at http://{server.host}:{server.port} (try /healthz); the files are in {FOLDER}. Ctrl-C ends it.")
        try:
            server.process.wait()
        except KeyboardInterrupt:
            pass
    radio.stop()
    return 0 if server.stop() == 0 and good else 1


if __name__ == "__main__":
    sys.exit(main())
