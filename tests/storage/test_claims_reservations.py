"""Claims in the record of a budget: other draws, exports, older ledgers, damaged files."""

from __future__ import annotations

import warnings

import pytest

from dpselect.errors import ClaimError, StudyError
from dpselect.ledger import AlreadySettledError, Ledger
from dpselect.ledger.schema import schema_version
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.privacy import pure_dp
from dpselect.records.claims import ClaimFile
from tests.budgets import budget_at
from tests.ledger.test_schema import made_from


def bound(budget, **changes):
    terms = {"label": "s", "identifier": "i", "binding": "draws", "claim": "first"} | changes
    return budget.reserve(pure_dp(epsilon=1), **terms)


def test_other_draws_and_other_reservations_are_refused(path):
    budget = budget_at(path)
    bound(budget)
    for refused in (
        lambda: bound(budget, binding="other"),
        lambda: budget.claim("i", binding="other", claim="c"),
        lambda: budget.claim("unknown", binding="draws", claim="c"),
    ):
        with pytest.raises(ClaimError):
            refused()
    budget.reserve(pure_dp(epsilon=1), label="s", identifier="free")
    with pytest.raises(ClaimError):
        budget.claim("free", binding="draws", claim="c")
    with pytest.raises(ClaimError):
        budget.settle("free", claim="c", release="h")
    with pytest.raises(ValueError, match="claim"):
        bound(budget, identifier="j", claim=None)
    budget.settle("i")
    assert budget.claim("i", binding="draws", claim="c") == ""
    with pytest.raises(AlreadySettledError):
        budget.settle("i", claim="first", release="h")


def test_claims_are_verified_exported_and_imported(path, tmp_path):
    budget = budget_at(path)
    bound(budget)
    bound(budget, claim="second")
    with Ledger.open(path, witness=False) as ledger:
        assert ledger.verify()
        lines = list(export_lines(ledger))
    with import_lines(lines, tmp_path / "there.db", witness=False) as moved:
        assert moved.verify()
        with pytest.raises(ClaimError):
            moved.budget("b").settle("i", claim="first", release="h")
        moved.budget("b").settle("i", claim="second", release="h")
        assert moved.verify()


def test_an_older_ledger_is_read_as_it_is_and_claimed_in_after_the_first_write(path):
    made_from(path, "ledger-v2.sql")
    with Ledger.open(path, witness=False) as ledger:
        assert ledger.verify()
        with ledger._store.read() as transaction:
            assert schema_version(transaction.database) == 2
    with Ledger.open(path, witness=False) as ledger:
        (budget, *_) = ledger.budgets()
        receipt = budget.reserve(pure_dp(epsilon=1e-6), label="s", identifier="i", binding="b", claim="c")
        budget.claim("i", binding="b", claim="d")
        assert ledger.verify(receipt)


def test_a_damaged_file_of_claims_is_refused(tmp_path):
    file = ClaimFile("s", tmp_path)
    file.claim("b", "c")
    (tmp_path / "s.head").write_bytes(b"x" * 6000)
    with pytest.raises(StudyError, match="damaged"):
        file.claim("b", "d")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ClaimFile("t", tmp_path).claim("b", "c")
