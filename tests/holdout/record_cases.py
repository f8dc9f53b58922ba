"""A record with entries of one word each, for the tests of its parts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from dpselect.holdout.record import Record


def make(path, **options):
    return Record.create(path, kind="test", terms={"k": 3}, secret=b"SECRET-LABELS", exposure=(0, 0), **options)


def say(record, word):
    """Append one entry; its exposure is how many entries there are, of both kinds."""
    with record.turn() as turn:
        asked = exposure(turn.entries) + 1
        turn.append({"word": word}, (asked, asked))


def exposure(entries):
    asked = 0
    for entry in entries:
        asked = max(asked, entry["lost"][0]) if "lost" in entry else asked + 1
    return asked


def entries(path):
    with Record.open(path, kind="test").turn() as turn:
        return turn.entries


def execute(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()
