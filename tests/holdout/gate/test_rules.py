"""The theorem of the gate, against searchers whose law is exact, and what happens to rules that are nearly it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.gate import attained
from hypothesis import given, settings, strategies as st

from dpselect.holdout.gate.error_budget import ErrorBudget
from dpselect.holdout.gate.rules import bet, bet_wealth, gain_bound, sign_test
from tests.holdout.gate.gate_laws import Searcher, attaining, compositions, fractions


@pytest.mark.theorem("docs/theory/gate.md, Theorem 1", exact=True, sharp=True)
def test_a_searcher_attains_the_failure_probability():
    purse = Fraction(14, 64)
    failure = attaining().failure(6, purse)
    assert failure <= purse
    assert failure > Fraction(99, 100) * purse


def test_the_benchmark_says_what_is_attained():
    """By hand: 14 of 64 and 18 of 256 outcomes of so many coins."""
    assert attained(6, 5) == (14 / 64, 14 / 64)
    assert attained(8, 7) == (18 / 256, 18 / 256)
    assert attaining().failure(6, Fraction(14, 64)) == Fraction(14, 64)


@pytest.mark.parametrize("tasks", [4, 5, 7])
@pytest.mark.parametrize("purse", [Fraction(14, 64), Fraction(1, 4), Fraction(1, 2)])
def test_the_same_searcher_on_other_tasks(tasks, purse):
    assert attaining().failure(tasks, purse) <= purse


OUTCOMES = st.tuples(*[st.sampled_from([Fraction(k, 4) for k in range(5)])] * 3)
NODES = [answers for length in range(3) for answers in itertools.product((False, True), repeat=length)]


@st.composite
def searchers(draw):
    weights = draw(st.tuples(*[st.integers(1, 6)] * 3))
    law = tuple(Fraction(weight, sum(weights)) for weight in weights)
    systems = {node: draw(OUTCOMES) for node in NODES}
    stakes = {node: Fraction(draw(st.integers(1, 8)), 64) for node in NODES[:1]}
    return Searcher(law, draw(OUTCOMES), systems, stakes)


@settings(max_examples=60, deadline=None)
@given(searchers(), st.sampled_from([Fraction(8, 64), Fraction(14, 64), Fraction(22, 64)]))
def test_no_searcher_fails_more_often(searcher, purse):
    assert searcher.failure(5, purse) <= purse


def test_an_accept_that_leaves_the_whole_purse_is_caught():
    purse = Fraction(29, 64)

    def kept(before: ErrorBudget, stake: Fraction, accepted: bool) -> ErrorBudget:
        return before if accepted else before.after(stake, accepted=False)

    assert attaining().failure(6, purse, after=kept) == Fraction(44, 64) > purse
    assert attaining().failure(6, purse) <= purse


def test_levels_by_the_number_of_transcripts_are_caught():
    failure = Fraction(22, 64)
    found = attaining().failure(6, failure, level=lambda node: failure / math.comb(2, sum(node) + 1))
    assert found == Fraction(29, 64) > failure


def test_asks_whose_outcomes_were_seen_are_not_free():
    """Were an ask free when its outcomes are those of an earlier one, the purse would tell whether they are.

    Two asks at a small stake, whose outcomes are alike if no task is of the third cell; then one all in, by that.
    """
    law, small, level = fractions("1/2", "1/4", "1/4"), Fraction(1, 1024), Fraction(7, 64)
    failed = Fraction(0)
    for (first, second, third), chance in compositions(6, law):
        wins, losses = first, second + third  # of a candidate that is as likely to win as to lose
        accepted = sign_test(wins, losses, level) if not third else sign_test(losses, wins, level)
        failed += chance * accepted
    assert failed > Fraction(3, 2) * (level + 2 * small)


@pytest.mark.parametrize("tasks", range(1, 9))
def test_the_sign_test_is_exact_at_every_level(tasks):
    for wins in range(tasks + 1):
        tail = Fraction(sum(math.comb(tasks, k) for k in range(wins, tasks + 1)), 2**tasks)
        assert sign_test(wins, tasks - wins, tail)
        assert not sign_test(wins, tasks - wins, tail * Fraction(999, 1000))


@pytest.mark.full
@pytest.mark.parametrize("wins", [2650])
def test_the_sign_test_by_logarithms_refuses_a_little_more(wins, monkeypatch):
    tail = Fraction(sum(math.comb(5000, k) for k in range(wins, 5001)), 2**5000)
    for level in (tail * Fraction(1_000_001, 1_000_000), tail * Fraction(999_999, 1_000_000)):
        monkeypatch.setattr("dpselect.holdout.gate.rules._EXACT", 10_000)
        exact = sign_test(wins, 5000 - wins, level)
        monkeypatch.setattr("dpselect.holdout.gate.rules._EXACT", 100)
        assert sign_test(wins, 5000 - wins, level) == exact
    assert not sign_test(wins, 5000 - wins, tail)


LAWS = [(-1.0, 1.0), (-1.0, 0.0, 1.0), (-0.5, -0.5, 1.0), (-1.0, 0.25, 0.25, 0.25, 0.25)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("level", [0.5, 0.2, 0.05])
def test_a_bet_accepts_a_null_pair_at_most_at_its_level(law, margin, level):
    """Exact: every sequence of differences with mean equal to the margin."""
    spread = np.array(law) * (1.0 - margin) + margin
    every = np.array(list(itertools.product(spread, repeat=6)))
    target = -math.log(level)
    accepted = bet_wealth((every - margin) / (1.0 + margin), np.full(len(every), target)) >= target
    assert float(accepted.mean()) <= level
    assert [bet(row, Fraction(level), margin) for row in every[:50]] == list(accepted[:50])


def test_a_bet_accepts_what_is_better():
    random = np.random.default_rng(0)
    assert bet(random.uniform(-0.2, 0.4, 500), Fraction(1, 400), 0.0)
    assert not bet(random.uniform(-0.2, 0.4, 500), Fraction(1, 400), 0.12)


@pytest.mark.statistical
def test_a_bet_in_a_sorted_order_is_void():
    """Equal systems on 200 tasks; level 0.01. In a random order at most 0.01 of them pass, sorted nearly all do."""
    random = np.random.default_rng(1)
    differences = random.choice([-1.0, 0.0, 1.0], p=[0.3, 0.4, 0.3], size=(1000, 200))
    target = np.full(1000, math.log(100.0))
    sorted_ones = np.sort(differences, axis=1)[:, ::-1]
    assert np.mean(bet_wealth(differences, target) >= target) <= 0.02  # by chance with probability 0.003
    assert np.mean(bet_wealth(sorted_ones, target) >= target) > 0.9


@pytest.mark.statistical
def test_a_shifted_sign_test_is_void_and_the_bet_is_not():
    """Wins are small and losses large: more wins than losses by the margin, but the mean is below it."""
    random = np.random.default_rng(2)
    differences = random.choice([0.1, -0.4], p=[0.8, 0.2], size=(1000, 200))  # mean 0
    signs = [sign_test(int((row > 0).sum()), int((row < 0).sum()), Fraction(1, 100)) for row in differences]
    target = np.full(1000, math.log(100.0))
    assert np.mean(signs) > 0.9
    assert np.mean(bet_wealth(differences, target) >= target) <= 0.02


@pytest.mark.theorem("docs/theory/gate.md, Theorem 2", exact=True, loose="a bet on a grid stops short of its level")
@pytest.mark.parametrize(("chance", "level"), [(0.75, Fraction(1, 4)), (0.9, Fraction(1, 2)), (0.5, Fraction(1, 8))])
def test_a_bound_is_above_the_gain_at_most_at_its_level(chance, level):
    """Exact: won or lost tasks, seven of them, every sequence."""
    gain, wrong = 2.0 * chance - 1.0, 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=7):
        if gain_bound(np.array(signs), level, 0.0) > gain:
            wrong += chance ** signs.count(1.0) * (1.0 - chance) ** signs.count(-1.0)
    assert wrong <= float(level)


def test_a_bound_grows_with_the_tasks_and_is_below_the_gain():
    random = np.random.default_rng(3)
    found = [gain_bound(random.choice([-1.0, 1.0], p=[0.2, 0.8], size=n), Fraction(1, 100), 0.0) for n in (50, 2000)]
    assert found[0] < found[1] < 0.6
    assert found[1] > 0.5
    assert gain_bound(np.zeros(100), Fraction(1, 100), 0.0) == 0.0
    assert gain_bound(np.ones(100), Fraction(0), 0.0) == 0.0
