"""A state folder of its own for each journey, and a ledger that has been spent from."""

from __future__ import annotations

import pytest

from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def ledger(tmp_path):
    """The file of a ledger with a budget "b" of epsilon 3, of which 1 is spent."""
    path = tmp_path / "budget.db"
    with Ledger.open(path) as record:
        record.create_budget("b", epsilon=3).reserve(pure_dp(epsilon=1), label="first", identifier="first")
    return path
