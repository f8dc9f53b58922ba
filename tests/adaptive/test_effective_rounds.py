"""Exact answers from one data set at a time: moving on, the sets that are left, and what is refused."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

from dpselect.adaptive import effective_rounds
from dpselect.adaptive.effective_rounds import EffectiveRounds
from dpselect.adaptive.verification_plan import VerificationPlan
from dpselect.errors import ArgumentError, BudgetError, ForkedSourceError
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


def test_the_sets_are_what_the_verification_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def planned(**given: Any) -> VerificationPlan:  # the plan for these numbers, which takes a second to find
        asked.append(given)
        return VerificationPlan(
            **given,
            blocks=5555,
            lower_share=0.14790581325754837,
            upper_share=0.20618337057783934,
            accuracy_failure=0.0008096473284807754,
            epsilon_threshold=0.06251975482167127,
            epsilon_queries=0.09924392457271489,
        )

    monkeypatch.setattr(effective_rounds, "plan_verification", planned)
    # one row a block, so that blocks are easily many
    rows = np.tile([0.0, 1.0, 2.0], 2_000)
    given = {"rounds": 2, "queries": 1, "subsample_size": 1, "failure_probability": 0.5}
    session = EffectiveRounds(rows, **given, random=keyed_source(1))
    assert session.rounds_left == 2
    expected = {"queries": 1, "refusals": 1, "failure_probability": 0.25, "rank": 0.25, "margin": 0.125}
    assert asked == [expected]
    assert session._size % 2 == 1
    assert (len(rows) - session.plan.blocks) // 2 - session._size in (0, 1)
    grid = {"lower": 0, "upper": 2, "granularity": 1, "axis": True}
    answer = session.estimate(np.mean, **grid)
    assert answer.value == 1
    assert answer.replayable
    assert answer.guarantee.epsilon(delta=0.5) == float("inf")
    assert repr(session) == "<EffectiveRounds, 2 of 2 sets left>"
    with pytest.raises(BudgetError, match="no answer is left"):
        session.estimate(np.mean, **grid)
    for wrong, name in (({"rounds": 1}, "rounds"), ({"failure_probability": 1.0}, "failure_probability")):
        with pytest.raises(ArgumentError, match=name):
            EffectiveRounds(rows, **{**given, **wrong})
