"""Exact answers from one data set at a time: moving on, the sets that are left, and what is refused."""

from __future__ import annotations

import os
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpselect.adaptive import effective_rounds
from dpselect.adaptive.effective_rounds import EffectiveRounds
from dpselect.errors import ArgumentError, BudgetError, ForkedSourceError
from dpselect.privacy import Release, pure_dp
from dpselect.randomness import keyed_source


@pytest.mark.full
def test_effective_rounds_move_on_when_they_over_fit() -> None:
    """An analyst who hill-climbs on exact answers is caught by the verification and gets the next set."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400_000, 3))
    session = EffectiveRounds(
        features, rounds=3, queries=200, subsample_size=5, failure_probability=0.05, random=keyed_source(3)
    )
    for column in range(3):
        found = session.estimate(lambda rows, axis, column=column: rows[..., column].mean(axis=axis),
                                 lower=-3, upper=3, granularity=0.001, axis=True).value  # fmt: skip
        assert abs(found) < 0.35
    assert session.rounds_left == 3
    # an answer that the current set gets wrong: stand in for over-fitting by a set with other rows
    session._blocks.data[session._blocks.rows[: session._size]] += 5.0
    moved = session.estimate(lambda rows, axis: rows[..., 0].mean(axis=axis), lower=-9, upper=9, granularity=0.01,
                             axis=True)  # fmt: skip
    assert abs(moved.value) < 0.35
    assert session.rounds_left == 2
    with pytest.raises(TypeError, match="copied or pickled"):
        pickle.dumps(session)
    session._turn.process = os.getpid() + 1
    with pytest.raises(ForkedSourceError):
        session.estimate(np.mean, lower=-9, upper=9, granularity=0.01)
    with pytest.raises(ArgumentError, match="needs"):
        EffectiveRounds(features[:100], rounds=3, queries=200, subsample_size=5, failure_probability=0.05)


class Answering:
    """Stands for a verification: gives the answers of a list, and a refusal uses one up."""

    def __init__(self, blocks, plan, *, random):
        self.blocks, self.plan, self.random = blocks, plan, random
        self.remaining, self.refusals_left = plan.queries, plan.refusals
        self.answers, self.guesses = [True, False, True], []

    def check(self, held_out, guess):
        self.guesses.append((guess, len(held_out())))
        self.remaining -= 1
        value = self.answers.pop(0)
        self.refusals_left -= not value
        return Release(value=value, guarantee=pure_dp(epsilon=1))


def test_a_refused_answer_comes_from_the_next_set_and_uses_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[dict[str, Any]] = []

    def plan(**given: Any) -> SimpleNamespace:
        planned.append(given)
        return SimpleNamespace(**given, blocks=11)

    monkeypatch.setattr(effective_rounds, "plan_verification", plan)
    monkeypatch.setattr(effective_rounds, "Verification", Answering)
    # two sets of 101 blocks of one row each, and twelve rows to verify on; the sets have other medians
    rows = np.repeat([1.0, 2.0, 9.0], [101, 101, 12])
    given = {"rounds": 2, "queries": 3, "subsample_size": 1, "failure_probability": 0.5, "order": "given"}
    session = EffectiveRounds(rows, **given, random=keyed_source(1))
    assert planned == [{"queries": 3, "refusals": 1, "failure_probability": 0.25, "rank": 0.25, "margin": 0.125}]
    assert repr(session) == "<EffectiveRounds, 2 of 2 sets left>"
    grid = {"lower": 0, "upper": 9, "granularity": 1, "axis": True}
    assert [session.estimate(np.mean, **grid).value for _ in range(2)] == [1, 2]
    assert session.rounds_left == 1
    assert session._verification.guesses == [(1.0, 12), (1.0, 12)]
    answer = session.estimate(np.mean, **grid)
    assert (answer.value, answer.replayable, answer.guarantee.epsilon(delta=0.5)) == (2, True, float("inf"))
    with pytest.raises(BudgetError, match="no answer is left"):
        session.estimate(np.mean, **grid)
    with pytest.raises(ArgumentError, match="data has 20 blocks, and this certificate needs"):
        EffectiveRounds(rows[:20], **given)
    for wrong, name in (({"rounds": 1}, "rounds"), ({"failure_probability": 1.0}, "failure_probability")):
        with pytest.raises(ArgumentError, match=name):
            EffectiveRounds(rows, **{**given, **wrong})
