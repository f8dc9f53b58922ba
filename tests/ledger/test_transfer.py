"""The record as JSON lines: export, import, and what lines do not hold."""

from __future__ import annotations

import json
import re

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import Ledger, LedgerDamagedError, StaleRecordError
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.testing.ledger_contract import GATE

# -- what is in the record


def test_there_is_no_time_in_it(written):
    with Ledger.open(written) as ledger:
        text = "\n".join(export_lines(ledger))
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d|\"(date|time)\"", text)


def test_export_and_import(written, tmp_path):
    with Ledger.open(written) as ledger:
        lines = list(export_lines(ledger))
        head = ledger.head()
    assert all(set(json.loads(line)) == {"sequence", "head", "body"} for line in lines)
    with import_lines(lines, tmp_path / "new.db") as copy:
        assert copy.head() == head
        assert copy.verify()
        copy.budget("b").reserve(GATE, label="s").settle(None)
        assert copy.verify()
    with pytest.raises(LedgerDamagedError, match="line 2 is not an entry"):
        import_lines([lines[0], "no json"], tmp_path / "damaged.db")
    for wrong in (lines[:1] + lines[2:], lines[::-1], ["{}"], ["no json"], []):
        with pytest.raises((LedgerDamagedError, ArgumentError)):
            import_lines(wrong, tmp_path / f"{len(wrong)}{hash(str(wrong))}.db")


def test_an_import_leaves_a_witness_and_heeds_it(written, tmp_path):
    """What was imported once does not come back without its last entry, unless no witness is wanted."""
    with Ledger.open(written) as ledger:
        ledger.budget("b").reserve(GATE, label="s").settle(None)
        lines = list(export_lines(ledger))
    for place in (tmp_path / "new.db", tmp_path / "older.db"):
        with pytest.raises(StaleRecordError):
            import_lines(lines[:-1], place)
        import_lines(lines, place).close()
    import_lines(lines[:-1], tmp_path / "unwitnessed.db", witness=False).close()
