"""The arena's attacks win where they must, and its honest searcher gets somewhere."""

import argparse

import pytest
from benchmarks.arena import ATTACKS, BOARDS, OneBit, arena
from benchmarks.gate import log_tails

OPTIONS = argparse.Namespace(arenas=4, tasks=200, asks=200)


@pytest.fixture(autouse=True)
def tails(monkeypatch):
    monkeypatch.setattr(OneBit, "tails", log_tails(OPTIONS.tasks), raising=False)


@pytest.mark.parametrize("attack", sorted(set(ATTACKS) - {"honest"}))
def test_exact_scores_are_over_fitted_and_the_gate_is_not(attack):
    false, fitted, _ = arena("exact scores", attack, OPTIONS)
    assert false > 0.5
    assert fitted > 0.03
    assert arena("the gate", attack, OPTIONS)[0] == 0.0


def test_bisection_finds_every_label_when_scores_are_exact():
    assert arena("exact scores", "bisection", OPTIONS)[1] > 0.45


@pytest.mark.parametrize("name", ["exact scores", "the Ladder", "the gate"])
def test_an_honest_searcher_gets_better(name):
    assert arena(name, "honest", OPTIONS)[2] > 0.05


@pytest.mark.full
def test_claims_are_certified():
    assert {arena("holdout, claims", attack, OPTIONS)[0] for attack in ATTACKS} == {0.0}
    assert len(BOARDS) == 6
