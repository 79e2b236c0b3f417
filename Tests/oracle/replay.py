"""Replays the outbox of a device file, written without a look at Fieldpost's own code.

    python3 replay.py FILE      applies the outbox of FILE to empty tables and compares the result with FILE's tables

Standard library only. It knows the meaning of an operation from the documentation: `create` makes a row, `update`
changes the columns named (`set` new values, `inc` differences, `add` and `remove` elements), `delete` removes it.
"""

import json
import sqlite3
import struct
import sys


def literal(text):
    """JSON with every number as its own digits, so that nothing is rounded before it is compared."""
    return json.loads(text, parse_float=lambda digits: ("real", digits), parse_int=lambda digits: ("int", digits))


class Schema:
    def __init__(self, db):
        self.tables = json.loads(db.execute("SELECT value FROM fieldpost_meta WHERE key = 'schema'").fetchone()[0])["tables"]

    def columns(self, table):
        return self.tables[table]["columns"]

    def type(self, table, column):
        return self.columns(table)[column].rstrip("?")

    def key(self, table):
        return self.tables[table].get("key", "id")

    def rule(self, table, column):
        return self.tables[table].get("rules", {}).get(column)


def comparable(kind, value):
    """A stored value in a form in which equal means the same."""
    if value is None:
        return None
    if kind == "real":
        return struct.pack(">d", float(value) + 0.0)
    if kind == "set":
        return frozenset((type(element).__name__, element) for element in json.loads(value))
    if kind == "json":
        return repr(literal(value))
    return value


def stored(kind, value, text):
    """A member of a change as the table stores it; `value` has its numbers as digits."""
    if value is None and kind != "json":
        return None
    if kind in ("integer", "date"):
        assert value[0] == "int", value
        return int(value[1])
    if kind == "real":
        return float(value[1])
    if kind == "boolean":
        assert value is True or value is False, value
        return int(value)
    if kind == "blob":
        return bytes.fromhex(value)
    if kind in ("json", "set"):
        return None if value is None else text
    return value


def plain(value):
    """A value read by `literal` as JSON text again."""
    if isinstance(value, tuple):
        return value[1]
    if isinstance(value, list):
        return "[" + ",".join(map(plain, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(name) + ":" + plain(member) for name, member in value.items()) + "}"
    return json.dumps(value)


def apply(schema, rows, operation):
    """Applies one operation to `rows`, a dictionary by (table, row)."""
    table, row, action, change = operation
    place = (table, row)
    if action == "delete":
        rows.pop(place, None)
        return
    parts = literal(change)
    assert set(parts) <= {"set", "inc", "add", "remove"}, parts
    if action == "create":
        values = {column: None for column in schema.columns(table)}
        values[schema.key(table)] = row
    elif place in rows:
        values = dict(rows[place])
    else:
        return
    for column, value in parts.get("set", {}).items():
        values[column] = stored(schema.type(table, column), value, plain(value))
    for column, value in parts.get("inc", {}).items():
        values[column] += int(value[1])
    for column in {**parts.get("add", {}), **parts.get("remove", {})}:
        elements = literal(values[column])
        gone = parts.get("remove", {}).get(column, [])
        more = parts.get("add", {}).get(column, [])
        elements = [element for element in elements if element not in gone]
        values[column] = plain(elements + [element for element in more if element not in elements])
    rows[place] = values


def dump(schema, db):
    rows = {}
    for table in schema.tables:
        names = list(schema.columns(table))
        for values in db.execute("SELECT %s FROM %s" % (", ".join(names), table)):
            row = dict(zip(names, values))
            rows[(table, row[schema.key(table)])] = row
    return rows


def operations(db):
    return list(db.execute("SELECT tbl, row, action, change FROM fieldpost_outbox ORDER BY seq"))


def differences(schema, expected, found):
    """Where two dumps differ, in words."""
    lines = []
    for place in sorted(set(expected) | set(found)):
        left, right = expected.get(place), found.get(place)
        if left is None or right is None:
            lines.append("%s %s: %s" % (*place, "not in the table" if right is None else "not in the outbox"))
            continue
        for column in schema.columns(place[0]):
            kind = schema.type(place[0], column)
            if comparable(kind, left[column]) != comparable(kind, right[column]):
                lines.append("%s %s.%s: replayed %r, stored %r" % (*place, column, left[column], right[column]))
    return lines


def check(db, initial=None):
    """What the replay of the outbox on `initial` gets wrong."""
    schema = Schema(db)
    rows = dict(initial or {})
    for operation in operations(db):
        apply(schema, rows, operation)
    return differences(schema, rows, dump(schema, db))


if __name__ == "__main__":
    found = check(sqlite3.connect(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
