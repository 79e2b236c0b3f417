#!/usr/bin/env python3
"""Writes the dump of a device's file as the released version leaves it: one schema version, 500 queued operations.

Run once for each released schema version and layout, with that release's `fieldpost`, and never edit the result:

    Scripts/garage-fixture.py .build/debug/fieldpost > Tests/FieldpostTests/Fixtures/garage-1.sql
"""
import json
import os
import random
import subprocess
import sys
import tempfile

SCHEMA = {
    "version": 1,
    "tables": {
        "jobs": {
            "columns": {
                "id": "uuid", "status": "text", "urgency": "integer", "total_idr": "integer", "hours": "real",
                "paid": "boolean", "opened_at": "date", "plate": "text?", "photo": "blob?", "rate": "text",
                "steps": "json", "car": "json?", "tags": "set",
            },
            "defaults": {"status": "open", "tags": []},
            "rules": {"tags": "set"},
        },
        "parts": {
            "columns": {"id": "text", "job_id": "uuid", "price": "integer"},
            "references": {"job_id": "jobs"},
        },
    },
}


def operations():
    draw = random.Random(1)
    ids = []
    for number in range(200):
        ids.append(f"0191d3a0-0000-7000-8000-{number:012x}")
        yield {"table": "jobs", "action": "create", "row": ids[-1], "set": {
            "urgency": 3, "total_idr": number * 1000, "hours": number / 8, "paid": False, "opened_at": 1764460800000 + number,
            "plate": None if number % 5 == 0 else f"B {number} é", "photo": "AP8=" if number % 7 == 0 else None,
            "rate": "12.50", "steps": ["wash"], "car": {"make": "Kijang", "doors": 4} if number % 3 == 0 else None,
            "tags": ["new"]}}
    for number in range(100):
        yield {"table": "parts", "action": "create", "row": f"part {number}", "set": {
            "job_id": ids[number], "price": number}}
    for number in range(180):
        row = ids[draw.randrange(100, 180)]
        change = draw.choice([
            {"total_idr": draw.randrange(1 << 60)}, {"plate": f"D {number}"}, {"status": "paid", "paid": True, "hours": number + 0.5},
            {"tags": [f"t{number}"]}, {"plate": f"F {number}", "hours": draw.random()}])
        yield {"table": "jobs", "action": "update", "row": row, "set": change}
    for row in ids[180:]:
        yield {"table": "jobs", "action": "delete", "row": row}


def main():
    with tempfile.TemporaryDirectory() as folder:
        schema, db = os.path.join(folder, "schema.json"), os.path.join(folder, "garage.db")
        with open(schema, "w") as file:
            json.dump(SCHEMA, file)
        lines = "".join(json.dumps({"do": "write", "ops": [operation]}) + "\n" for operation in operations())
        command = [sys.argv[1], "device", "--db", db, "--schema", schema]
        answers = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        for answer in answers:
            if not json.loads(answer).get("ok"):
                sys.exit(answer)
        dump = subprocess.run(["sqlite3", db, ".dump"], capture_output=True, text=True, check=True).stdout
        count = subprocess.run(
            ["sqlite3", db, "select count(*) from fieldpost_outbox"], capture_output=True, text=True, check=True).stdout
        if count.strip() != "500":
            sys.exit(f"{count.strip()} operations instead of 500")
        sys.stdout.write(dump)


main()
