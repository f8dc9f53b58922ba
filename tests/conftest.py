"""Shared settings and fixtures: Hypothesis draws the same examples on every run unless another profile is asked for."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder of its own; the folder of its keys."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "dpselect" / "keys"


@pytest.fixture
def no_page(monkeypatch):
    """Without the report, which takes seconds."""
    monkeypatch.setattr("dpselect.study.write.search_facts", lambda **_: {})
    monkeypatch.setattr("dpselect.report.page.render_page", lambda *_: "")
    monkeypatch.setattr("dpselect.report.model_card.render_model_card", lambda *_: "")


@pytest.fixture
def drawn(monkeypatch):
    """Make every law draw the given K."""
    from dpselect.repetitions import Geometric, Harmonic

    def fix(count):
        for law in (Harmonic, Geometric):
            monkeypatch.setattr(law, "sample", lambda self, random=None: count)

    return fix


@pytest.fixture
def path(tmp_path):
    """Where a ledger can be."""
    return tmp_path / "budget.db"


@pytest.fixture
def written(path):
    """Entry 1 begins the ledger, 2 is budget b of 3, 3 to 8 are reservations and settlements in turn: 0.3 are spent."""
    from dpselect.ledger import Ledger
    from dpselect.testing.ledger_contract import GATE

    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
        for number in range(3):
            budget.reserve(GATE, label="s", identifier=str(number)).settle(None)
    return path
