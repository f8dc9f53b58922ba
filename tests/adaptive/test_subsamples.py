"""How estimators are evaluated on blocks; effective rounds, means and multiplicative weights as sessions."""

from __future__ import annotations

import math
import os
import pickle

import numpy as np
import pytest

from dpselect.adaptive.effective_rounds import EffectiveRounds
from dpselect.adaptive.means import AdaptiveMeans
from dpselect.adaptive.multiplicative_weights import MultiplicativeWeights, plan_multiplicative_weights
from dpselect.adaptive.subsamples import cut_into_blocks, evaluate
from dpselect.errors import ArgumentError, BudgetError, ContentError, ForkedSourceError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_sessions import Recorder, normal_rows


def test_evaluation_of_blocks() -> None:
    data = np.arange(23.0)
    blocks = cut_into_blocks(data, subsample_size=5, order="given", random=keyed_source(1))
    assert (blocks.count, blocks.size) == (4, 5)  # three rows are left out
    expected = [2.0, 7.0, 12.0, 17.0]
    assert evaluate(np.mean, blocks).tolist() == expected
    assert evaluate(np.mean, blocks, axis=True).tolist() == expected

    def moody(rows: np.ndarray, axis: int) -> np.ndarray:
        if np.any(rows == 7.0):
            raise ValueError
        return rows.mean(axis=axis)

    found = evaluate(moody, blocks, axis=True)
    assert np.isnan(found[1])
    assert found[[0, 2, 3]].tolist() == [2.0, 12.0, 17.0]
    # a shape may depend on the data too: it tells nothing
    assert np.isnan(evaluate(lambda rows, axis: rows, blocks, axis=True)).all()
    dropping = evaluate(lambda rows, axis: rows[rows[:, 0] != 5.0].mean(axis=axis), blocks, axis=True)
    assert np.isnan(dropping[1])
    assert dropping[[0, 2, 3]].tolist() == [2.0, 12.0, 17.0]
    shuffled = cut_into_blocks(data, subsample_size=5, order="random", random=keyed_source(1))
    assert len(np.unique(shuffled.rows)) == 20
    with pytest.raises(ContentError, match="subsample_size"):
        cut_into_blocks(data, subsample_size=24, order="given", random=keyed_source(1))
    with pytest.raises(ArgumentError, match="order"):
        cut_into_blocks(data, subsample_size=4, order="sorted", random=keyed_source(1))  # type: ignore[arg-type]


def test_parallel_evaluation_gives_the_same_values() -> None:
    blocks = cut_into_blocks(normal_rows(2000), subsample_size=20, order="given", random=keyed_source(1))
    assert evaluate(np.median, blocks, jobs=2).tolist() == evaluate(np.median, blocks).tolist()


def test_frames_tuples_and_lists() -> None:
    pandas = pytest.importorskip("pandas")
    rows = normal_rows(400)
    expected = evaluate(np.mean, cut_into_blocks(rows, subsample_size=20, order="random", random=keyed_source(2)))
    frame = pandas.DataFrame({"x": rows, "y": 1.0})
    source = keyed_source(2)
    of_frame = evaluate(
        lambda part: part["x"].mean(), cut_into_blocks(frame, subsample_size=20, order="random", random=source)
    )
    pair = cut_into_blocks((rows, rows), subsample_size=20, order="random", random=keyed_source(2))
    listed = cut_into_blocks(rows.tolist(), subsample_size=20, order="random", random=keyed_source(2))
    assert np.allclose(of_frame, expected)
    assert np.allclose(evaluate(lambda part: part[0].mean(), pair), expected)
    assert np.allclose(evaluate(lambda part, axis: part[1].mean(axis=axis), pair, axis=True), expected)
    assert np.allclose(evaluate(np.mean, listed), expected)
    with pytest.raises(ArgumentError, match="tuple"):
        cut_into_blocks((rows, rows[1:]), subsample_size=20, order="given", random=keyed_source(2))
    with pytest.raises(ArgumentError, match="axis"):
        evaluate(np.mean, cut_into_blocks(frame, subsample_size=20, order="given", random=source), axis=True)


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


@pytest.mark.full
def test_means() -> None:
    spender = Recorder()
    means = AdaptiveMeans(
        normal_rows(200_000), queries=3, failure_probability=0.05, spender=spender, random=keyed_source(1)
    )
    assert abs(means.mean(np.sin, lower=-1, upper=1).value - math.sin(0.3) * math.exp(-0.5)) < 2 * means.plan.error
    assert means.mean(lambda rows: 1 / 0, lower=2, upper=4).value < 2 + 2 * means.plan.error
    assert means.mean(lambda rows: np.full(len(rows), np.nan), lower=2, upper=4).value < 2 + 2 * means.plan.error
    with pytest.raises(BudgetError):
        means.mean(np.sin, lower=-1, upper=1)
    assert len(spender.reserved) == len(spender.settled) == 3
    assert math.isclose(means.guarantee.gaussian_mu or 0, means.plan.answer_mu)


@pytest.mark.full
@pytest.mark.parametrize("fails", ["raises", "drops"])
def test_one_row_never_decides_over_the_others(fails: str) -> None:
    """A function of all rows that fails because of one of them: that row counts as the lower bound, no other does."""
    rows = np.ones(20_000)
    rows[7] = -1.0

    def fragile(values: np.ndarray) -> np.ndarray:
        if fails == "drops":
            return values[values > 0]
        if np.any(values < 0):
            raise ValueError
        return values

    means = AdaptiveMeans(rows, queries=1, failure_probability=0.05, random=keyed_source(1))
    assert means.mean(fragile, lower=0, upper=1).value > 0.9


@pytest.mark.full
def test_multiplicative_weights_answer_and_refuse() -> None:
    plan = plan_multiplicative_weights(queries=5, universe=11, grid_size=11, failure_probability=0.05)
    data = np.random.default_rng(0).binomial(10, 0.3, plan.blocks)
    session = MultiplicativeWeights(
        data, universe=11, queries=5, grid_size=11, failure_probability=0.05, random=keyed_source(1)
    )
    assert session.estimate(np.arange(11), lower=0, upper=10, granularity=1).value in (2, 3, 4)
    assert session.estimate(-np.arange(11.0), lower=-10, upper=0, granularity=1).value in (-2, -3, -4)
    updates, each = session.plan.updates, pure_dp(epsilon=session.plan.epsilon)
    assert session.row_privacy.epsilon(0.0) == pytest.approx(updates * each.epsilon(0.0))
    assert session.row_privacy.renyi(2.0) < 0.35 * updates * each.renyi(2.0)
    with pytest.raises(ArgumentError, match="every code"):
        session.estimate(np.arange(10), lower=0, upper=10, granularity=1)
    with pytest.raises(ArgumentError, match="needs"):
        MultiplicativeWeights(data[:100], universe=11, queries=5, grid_size=11, failure_probability=0.05)
    with pytest.raises(ContentError, match="integers"):
        MultiplicativeWeights([0, 99], universe=11, queries=5, grid_size=11, failure_probability=0.05)
    for _ in range(3):
        session.estimate(np.arange(11), lower=0, upper=10, granularity=1)
    with pytest.raises(BudgetError):
        session.estimate(np.arange(11), lower=0, upper=10, granularity=1)


def test_an_estimator_cannot_change_what_the_next_question_sees() -> None:
    blocks = cut_into_blocks(np.arange(20.0), subsample_size=5, order="given", random=keyed_source(1))

    def greedy(rows: np.ndarray, axis: int) -> np.ndarray:
        rows += 100.0
        return rows.mean(axis=axis)

    assert evaluate(greedy, blocks, axis=True).tolist() == [102.0, 107.0, 112.0, 117.0]
    assert evaluate(np.mean, blocks, axis=True).tolist() == [2.0, 7.0, 12.0, 17.0]
