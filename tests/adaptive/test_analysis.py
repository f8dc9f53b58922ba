"""An analysis: what it certifies, refuses, charges and hides."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpselect.adaptive import explicit_grid, plan_blocks
from dpselect.adaptive.choosing import choice_epsilon, summed_ranks
from dpselect.adaptive.means import AdaptiveMeans
from dpselect.adaptive.multiplicative_weights import MultiplicativeWeights, plan_multiplicative_weights
from dpselect.adaptive.subsamples import cut_into_blocks, evaluate
from dpselect.errors import ArgumentError, BudgetError, ForkedSourceError
from dpselect.ledger import Ledger
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_sessions import Recorder, analysis, normal_rows
from tests.root import ROOT


@pytest.mark.full
@pytest.mark.parametrize("mechanism", ["binary_search", "exponential"])
def test_answers_are_close_and_counted(mechanism: str) -> None:
    session = analysis(mechanism=mechanism)
    assert session.certificate.plan.mechanism == mechanism
    for left in range(5, 0, -1):
        assert session.remaining == left
        release = session.estimate(np.mean, lower=-2, upper=2, granularity=0.01)
        assert abs(release.value - 0.3) < 0.15  # the quartiles of a mean of 20
        assert release.guarantee.epsilon(1e-6) > 0
        assert release.replayable
    with pytest.raises(BudgetError, match="5 questions"):
        session.estimate(np.mean, lower=-2, upper=2, granularity=0.01)


def test_it_refuses_when_the_blocks_are_too_few() -> None:
    needed = plan_blocks(queries=5, grid_size=1001, failure_probability=0.05).blocks
    analysis(normal_rows(20 * needed))
    with pytest.raises(ArgumentError, match=f"needs {needed}"):
        analysis(normal_rows(20 * needed - 1))
    with pytest.raises(ArgumentError, match="fewer queries"):
        analysis(accounting="paper")
    with pytest.raises(ArgumentError, match="fewer queries"):
        analysis(queries=10**6)


@pytest.mark.full
def test_each_question_is_paid_before_it_is_asked() -> None:
    spender = Recorder(limit=2)
    session = analysis(spender=spender, label="trial")
    calls: list[int] = []

    def counted(rows: np.ndarray) -> float:
        calls.append(1)
        return float(rows.mean())

    release = session.estimate(counted, lower=-2, upper=2, granularity=0.01)
    assert release.receipt is not None
    assert spender.settled == [release.receipt.identifier]
    session.choose([np.mean, np.var])
    done = len(calls)
    with pytest.raises(BudgetError):
        session.estimate(counted, lower=-2, upper=2, granularity=0.01)
    assert len(calls) == done
    assert session.remaining == 3
    # a second analysis with the same label must not find its questions paid
    again = Recorder()
    analysis(spender=again, label="trial").estimate(np.mean, lower=-2, upper=2, granularity=0.01)
    names = [name for name, _ in spender.reserved + again.reserved]
    assert len(set(names)) == 3


@pytest.mark.full
def test_a_ledger_pays_for_the_rows(tmp_path: Path) -> None:
    """A budget for replace-one neighbours allows as many questions as its price says, and no more."""
    ledger = Ledger.open(tmp_path / "budget.db")
    session = analysis()
    each = session.certificate.answer.epsilon(1e-6)
    budget = ledger.create_budget(
        "rows", epsilon=str(round(2.5 * each, 6)), delta="1e-5", delta_each="1e-6", adjacency="replace_one"
    )
    paid = analysis(spender=budget)
    for _ in range(2):
        receipt = paid.estimate(np.mean, lower=-2, upper=2, granularity=0.01).receipt
        assert receipt is not None
    with pytest.raises(BudgetError):
        paid.estimate(np.mean, lower=-2, upper=2, granularity=0.01)
    assert paid.remaining == 3


@pytest.mark.full
def test_the_page_on_adaptive_analysis_runs() -> None:
    text = (ROOT / "docs" / "how-to/adaptive.md").read_text(encoding="utf-8")
    left: list[Any] = []
    blocks = "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S))
    exec(compile(blocks, "adaptive.md", "exec"), {"print": lambda *values: left.append(values)})
    assert "100 adaptive answers" in left[0][0]
    assert left[1] == (0.219,)
    assert abs(left[2][0] - 1.0) < 0.12
    assert left[3] == ("binary_search", 64)
    assert left[4] == (105,)
    assert left[6:8] == [(True,), (False,)]
    assert 0.77 < left[8][0] < 1.61


@pytest.mark.full
def test_the_grid_is_limited_and_bounds_are_needed() -> None:
    session = analysis()
    with pytest.raises(ArgumentError, match="grid_size=1001"):
        session.estimate(np.mean, lower=-2, upper=2, granularity=1e-4)
    with pytest.raises(ArgumentError, match="grid_size"):
        session.estimate(np.mean, lower=-2, upper=2)  # all doubles
    with pytest.raises(ArgumentError, match="lower and upper"):
        session.estimate(np.mean)
    with pytest.raises(ArgumentError, match="a function of a block"):
        session.estimate(0.3, lower=0, upper=1, granularity=0.1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a function of a block"):
        session.choose([np.mean, "median"])  # type: ignore[list-item]
    assert session.remaining == 5
    assert session.estimate(np.mean, grid=explicit_grid([-1, 0.3, 7])).value == 0.3
    wide = analysis(grid_size=2**64)
    assert abs(wide.estimate(np.mean, lower=-1e300, upper=1e300).value - 0.3) < 0.15


@pytest.mark.full
def test_failing_blocks_count_and_say_nothing() -> None:
    """A third of the blocks fail: the answer is a quantile of all blocks, nothing is printed, raised or dropped."""

    def fragile(rows: np.ndarray) -> float:
        if rows[0] > 0.6:
            raise ValueError(f"secret {rows[0]}")
        if rows[0] > 0.4:
            warnings.warn("secret", stacklevel=1)
            return math.nan
        return float(rows.mean())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = analysis().estimate(fragile, lower=-2, upper=2, granularity=0.01).value
        assert -2 <= value < 0.3
        assert analysis().estimate(lambda rows: "text", lower=-2, upper=2, granularity=0.01).value == -2
        assert analysis().estimate(lambda rows: 1 / 0, lower=-2, upper=2, granularity=0.01).value == -2
        assert analysis().estimate(lambda rows: math.inf, lower=-2, upper=2, granularity=0.01).value == 2


@pytest.mark.full
def test_heavy_tails_without_a_variance() -> None:
    """Cauchy rows: the mean of a block has no mean, its median does; both answers are within their quartiles."""
    rows = np.random.default_rng(3).standard_cauchy(60_000) + 5.0
    session = analysis(rows, grid_size=2**64)
    assert abs(session.estimate(np.mean, lower=-1e9, upper=1e9).value - 5.0) < 1.0
    assert abs(session.estimate(np.median, lower=-1e9, upper=1e9).value - 5.0) < 0.3


@pytest.mark.full
def test_a_choice_costs_one_question() -> None:
    session = analysis()
    names = {"low": lambda rows: rows.mean() - 5, "high": lambda rows: rows.mean() + 5, "bad": lambda rows: 1 / 0}
    release = session.choose(names)
    assert release.value == "high"
    assert session.remaining == 4
    assert session.choose(names, maximize=False).value == "low"
    assert session.choose([np.mean]).value == 0
    # together with the estimates it stays within the Gaussian that was certified
    assert release.guarantee.pure_epsilon == choice_epsilon(session.certificate.plan)
    with pytest.raises(ArgumentError, match="candidates"):
        session.choose([])


def test_one_block_moves_a_sum_of_ranks_by_its_range() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 4, (5, 7)).astype(float)
        values[rng.random((5, 7)) < 0.1] = np.nan
        other = values.copy()
        other[:, 3] = rng.integers(0, 4, 5)
        ranks = summed_ranks(values)
        assert np.abs(ranks - summed_ranks(other)).max() <= 2 * (5 - 1)
        assert ranks.sum() == 7 * 5 * 4  # every pair of every block is counted twice


def test_sessions_do_not_copy_fork_or_show_data() -> None:
    session = analysis(verifications=5, refusals=1, data=normal_rows(600_000))
    means = AdaptiveMeans(normal_rows(), queries=2, failure_probability=0.05)
    for one in (session, session.verification, means):
        with pytest.raises(TypeError, match="copied or pickled"):
            pickle.dumps(one)
        with pytest.raises(TypeError, match="copied or pickled"):
            copy.copy(one)
        assert "0.3" not in repr(one)
    session._turn.process = os.getpid() + 1
    with pytest.raises(ForkedSourceError):
        session.estimate(np.mean, lower=-2, upper=2, granularity=0.01)
    with pytest.raises(ForkedSourceError):
        session.verify(np.mean, 0.3)


def test_another_quantile_than_the_median() -> None:
    """Exponential rows, blocks of one: answers are between the 60 and 95 % quantiles of a row."""
    rows = np.random.default_rng(2).exponential(1.0, 30_000)
    session = analysis(rows, subsample_size=1, rank=0.6, upper_rank=0.95)
    plan = session.certificate.plan
    assert 0.6 < float(plan.quantile) < 0.95
    assert plan.certified
    assert "between the 60 and 95 % quantiles" in session.certificate.statement
    for _ in range(5):
        value = session.estimate(lambda rows, axis: rows[:, 0], lower=0, upper=10, granularity=0.01, axis=True).value
        assert -math.log(0.4) < value < -math.log(0.05)
    with pytest.raises(ArgumentError, match="upper_rank"):
        analysis(rows, rank=0.6, upper_rank=0.95, mechanism="exponential")
    with pytest.raises(ArgumentError, match="upper_rank"):
        analysis(rows, rank=0.6, upper_rank=0.5)


@pytest.mark.full
def test_parallel_blocks_that_raise_say_nothing() -> None:
    """Two processes; a quarter of the blocks raises, ends the process politely or gives NaN: they are the lowest."""
    rows = np.tile([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 600)

    def fragile(block: np.ndarray) -> float:
        if block[0] == 0.0:
            raise RuntimeError(f"secret {block[0]}")
        if block[0] == 1.0:
            raise SystemExit("secret")
        return math.nan if block[0] == 2.0 else float(block[0])

    session = analysis(rows, subsample_size=1, jobs=2, order="given", queries=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.estimate(fragile, lower=-1, upper=8, granularity=1).value in (3, 4)
    blocks = cut_into_blocks(rows, subsample_size=1, order="given", random=keyed_source(1))
    alone, shared = evaluate(fragile, blocks), evaluate(fragile, blocks, jobs=2)
    assert np.array_equal(alone, shared, equal_nan=True)
    assert np.isnan(alone).mean() == 3 / 8


@pytest.mark.full
def test_a_ledger_pays_for_verifications_and_weights(tmp_path: Path) -> None:
    """A verification is charged once a run, multiplicative weights once an update, both on a real ledger."""
    ledger = Ledger.open(tmp_path / "budget.db")
    budget = ledger.create_budget("rows", epsilon="20", delta="1e-5", delta_each="1e-6", adjacency="replace_one")
    session = analysis(normal_rows(600_000), verifications=10, refusals=2, spender=budget, label="v")
    before = budget.spent().epsilon
    for _ in range(3):
        assert session.verify(np.mean, 0.3, axis=True).value
    once = budget.spent().epsilon
    assert once > before
    assert not session.verify(np.mean, 3.0, axis=True).value
    assert session.verify(np.mean, 0.3, axis=True).value
    assert budget.spent().epsilon > once
    whole = session.certificate.verification_privacy
    assert whole is not None
    assert whole.epsilon(0.0) == pytest.approx(2 * session.verification.run_guarantee.epsilon(0.0), rel=1e-9)  # type: ignore[union-attr]
    assert session.certificate.describe(delta=1e-6)["verification_privacy"]["epsilon"] > 0
    spender = Recorder()
    plan = plan_multiplicative_weights(queries=2, universe=11, grid_size=11, failure_probability=0.05)
    weights = MultiplicativeWeights(
        np.random.default_rng(0).binomial(10, 0.3, plan.blocks), universe=11, queries=2, grid_size=11,
        failure_probability=0.05, spender=spender, random=keyed_source(1),
    )  # fmt: skip
    weights.estimate(np.arange(11), lower=0, upper=10, granularity=1)
    assert 1 <= len(spender.reserved) <= 1 + plan.updates
    weights._turn.process = os.getpid() + 1
    with pytest.raises(ForkedSourceError):
        weights.estimate(np.arange(11), lower=0, upper=10, granularity=1)
