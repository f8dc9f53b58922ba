"""Outcomes of tasks: their form, clusters, repeats, and their secret order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.holdout import Gate
from dpselect.holdout.gate import service
from dpselect.holdout.gate.outcomes import Layout, _outcome
from tests.holdout.gate.service_cases import TASKS, better, half, make


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


NO_OUTCOMES = [None, "", "nan", float("nan"), float("inf"), -1, 1.5, "solved", "1_0", b"1", [], {}, object(), 10**400]


@pytest.mark.cases(12)
@pytest.mark.parametrize("value", NO_OUTCOMES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("test", ["sign", "bet"])
def test_what_is_no_outcome_is_a_failure_and_charged(folder, value, test):
    gate = make(folder, rules={"test": test})
    given = dict.fromkeys(half(), value if value != [] else [None])
    assert not gate.ask(given, candidate="a")
    assert gate.purse < 0.05
    assert not gate.ask(lambda: given, candidate="b")
    assert gate.status()["asked"] == 2


@pytest.mark.parametrize("wrong", [None, 5, [0, 1], "outcomes"])
def test_outcomes_that_are_no_mapping(folder, wrong):
    with pytest.raises(TypeError, match="outcomes"):
        make(folder).ask(wrong)
    with pytest.raises((TypeError, ContentError), match="outcomes"):
        Gate.create(folder / "b.gate", wrong)


def test_clusters_count_once(folder):
    """Twenty clusters of ten tasks each: what wins in three clusters has won three times, not thirty."""
    names = [f"t{i}" for i in range(TASKS)]
    candidate = {name: int(i < 30) for i, name in enumerate(names)}
    nothing = dict.fromkeys(names, 0)
    assert make(folder, nothing, name="a.gate").ask(candidate)
    clusters = {name: f"c{i // 10}" for i, name in enumerate(names)}
    gate = make(folder, nothing, name="b.gate", clusters=clusters)
    assert (gate.terms.tasks, gate.terms.units, gate.terms.test) == (200, 20, "bet")
    assert not gate.ask(candidate)
    assert gate.ask(dict.fromkeys(names, 1))


def test_a_bet_in_the_order_of_the_file_would_be_void(folder, monkeypatch):
    """Equal systems on a sorted file of tasks: first those that the candidate wins. The gate's order saves it."""
    names = [f"t{i}" for i in range(TASKS)]
    incumbent = {name: 0.75 * (i >= 100) for i, name in enumerate(names)}
    candidate = {name: 0.75 * (i < 100) for i, name in enumerate(names)}
    assert not make(folder, incumbent).ask(candidate)  # by chance with probability 0.0025

    def as_given(ids, clusters, repeats, random):
        return Layout(tuple((name,) for name in ids), repeats)

    monkeypatch.setattr(service.Layout, "shuffled", staticmethod(as_given))
    assert make(folder, incumbent, name="sorted.gate").ask(candidate)


def test_repeats_are_means_and_claim_a_higher_mean(folder):
    outcomes = {name: [value, 0, 0.5] for name, value in half().items()}
    gate = make(folder, outcomes)
    assert (gate.terms.repeats, gate.terms.test) == (3, "bet")
    assert "mean" in gate.terms.claim
    assert gate.ask({name: np.array([1, 0.5, 0.5]) for name in outcomes})
    with pytest.raises(ContentError, match="3 of each task"):
        gate.ask(better())


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("clustered", [False, True])
def test_means_are_sums_rounded_once(repeats, clustered):
    """For tasks of one outcome and of several, alone and in clusters; what is no outcome counts as 0."""
    draw = np.random.default_rng(repeats)
    values = [0.1, 0.7, 1, 0, True, "0.3", None, math.nan, 2.0, -0.0, 10**400, b"1", "true", np.float32(0.5)]
    ids = [f"t{k}" for k in range(300)]
    outcomes = {name: [values[k] for k in draw.integers(0, len(values), draw.integers(0, repeats + 2))] for name in ids}
    del outcomes["t7"]
    units = tuple(tuple(ids[k : k + 3]) for k in range(0, 300, 3)) if clustered else tuple((name,) for name in ids)

    def task(name):
        return math.fsum(_outcome(value) or 0.0 for value in outcomes.get(name, ())[:repeats]) / repeats

    wanted = [math.fsum(map(task, unit)) / len(unit) for unit in units]
    assert Layout(units, repeats).means(outcomes).tolist() == wanted


def test_what_is_an_outcome():
    for value, wanted in ((0.25, 0.25), (1, 1.0), (True, 1.0), (-0.0, 0.0), ("false", 0.0), (np.float32(0.5), 0.5)):
        assert repr(_outcome(value)) == repr(wanted)
    for value in (math.nan, 1.0000001, -1e-300, 2, None, b"1", "x", 10**400, [1.0]):
        assert _outcome(value) is None
