"""The record: tampering is named, versions and files that cannot be used, what is in it and what is not."""

from __future__ import annotations

import json

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import Ledger, LedgerDamagedError, LedgerError
from dpselect.ledger.entries import ChainHead, canonical, cell_text, next_head
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.privacy.release import Receipt
from dpselect.testing.ledger_contract import GATE
from tests.ledger.edits import edited


def first_bad(path):
    with pytest.raises(LedgerDamagedError) as caught, Ledger.open(path, witness=False) as ledger:
        ledger.verify()
    return caught.value.sequence, str(caught.value)


# -- tampering


@pytest.mark.parametrize("sequence", [1, 2, 3, 4, 8])
def test_a_changed_entry_is_named(written, sequence):
    edited(written, f"UPDATE ledger_entry SET body = replace(body, 's', 't') WHERE sequence = {sequence}")
    assert first_bad(written)[0] == sequence


@pytest.mark.parametrize("sequence", [1, 3, 7])
def test_a_missing_entry_is_named(written, sequence):
    edited(written, f"DELETE FROM ledger_entry WHERE sequence = {sequence}")
    if sequence == 1:
        with pytest.raises(LedgerDamagedError, match="entry 1 is missing"):
            Ledger.open(written)
    else:
        assert first_bad(written)[0] == sequence


def test_a_rewritten_chain_breaks_the_rules_where_it_lies(written):
    """Anyone who hashes again can still not write a refund that the reservation does not allow."""
    with Ledger.open(written) as ledger:
        entries = [body for _, _, body in ledger.entries()]
    entries[5]["epsilon"] = "0"
    entries[5]["cell"] = "false"
    lines = [canonical(line) for line in rehashed(entries)]
    with pytest.raises(LedgerDamagedError, match="entry 6 breaks a rule") as caught:
        import_lines(lines, written.with_name("new.db"))
    assert caught.value.sequence == 6


def rehashed(entries):
    from dpselect.ledger.entries import ORIGIN, next_head

    tip = ORIGIN
    for body in entries:
        tip = next_head(tip, canonical(body))
        yield {"sequence": tip.sequence, "head": tip.head, "body": body}


def test_a_cut_tail_is_found_by_the_kept_sums_and_by_receipts(written):
    with Ledger.open(written) as ledger:
        receipt = Receipt("", "", {}, *ledger.head().__dict__.values())
    edited(written, "DELETE FROM ledger_entry WHERE sequence = 8")
    assert "kept sums" in first_bad(written)[1]
    with Ledger.open(written.with_name("copy.db"), witness=False) as ledger:
        ledger.create_budget("b", epsilon=3, delta="1e-6")
        with pytest.raises(LedgerError, match="lacks"):
            ledger.budget("b").reserve(GATE, label="s", after=receipt)


def test_an_entry_of_a_later_kind_is_refused(written):
    """In a record that fits otherwise: by an import, and by anyone who verifies the file."""
    with Ledger.open(written) as ledger:
        lines = list(export_lines(ledger))
    last = json.loads(lines[-1])
    body = {**last["body"], "kind": "later"}
    head = next_head(ChainHead(last["sequence"], last["head"]), canonical(body))
    line = canonical({"sequence": head.sequence, "head": head.head, "body": body})
    with pytest.raises(LedgerDamagedError, match="no known kind"):
        import_lines([*lines, line], written.with_name("copy.db"), witness=False)
    edited(written, f"INSERT INTO ledger_entry VALUES ({head.sequence}, '{head.head}', '{canonical(body)}')")
    with Ledger.open(written, witness=False) as ledger, pytest.raises(LedgerDamagedError, match="no known kind"):
        ledger.verify()


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "null"),
        (False, "false"),
        (-3, "-3"),
        ("\u00e9\n", '"\\u00e9\\n"'),
        (("above", (1, None), ()), '["above",[1,null],[]]'),
    ],
)
def test_a_cell_is_written_in_one_way(cell, text):
    """In ASCII, so that one text has one entry regardless of who writes it."""
    assert cell_text(cell) == text


@pytest.mark.parametrize("cell", [0.5, b"x", ["x"], {"x": 1}, ("x", 0.5)])
def test_other_cells_are_refused_without_being_quoted(cell):
    with pytest.raises(ArgumentError, match="a cell in a ledger must be text, an integer") as refused:
        cell_text(cell)
    assert "0.5" not in str(refused.value)
