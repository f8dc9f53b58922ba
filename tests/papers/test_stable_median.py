"""`python -m papers stable-median`: every row; attacks and coverage beside known simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers.adaptive_analysts import (
    QUARTILE,
    block_grid,
    certified_answer,
    exact_median,
    expected_claim,
    plain_mean,
    random_walk,
    sign_aggregation,
    votes,
)
from papers.stable_median import PAPER
from papers.table import Context

from dpselect.adaptive import plan_blocks
from dpselect.randomness import keyed_source
from tests.papers.reproductions import assert_documented, assert_explained, assert_repeats, reproduced, row_named


@pytest.fixture(scope="module")
def parts():
    return reproduced(PAPER)


@pytest.mark.full
def test_every_row_is_reproduced_or_explained(parts):
    assert list(parts) == ["sample sizes", "statements", "adaptive attacks", "coverage"]
    assert_explained(parts)


@pytest.mark.full
def test_sample_sizes(parts):
    rows = [row for row in parts["sample sizes"].rows if row.name.startswith("blocks for")]
    assert len(rows) == 12
    assert all(row.paper == row.ours for row in rows)
    assert all(60 < row.ours / row.optimal < 140 for row in rows)
    crossing = row_named(parts["sample sizes"], "questions from which")
    assert crossing.verdict == "reproduced"
    assert crossing.optimal == pytest.approx(105, abs=2)
    paper, exponential, search, fresh = (curve.y for curve in parts["sample sizes"].figures[0].curves)
    assert all(a > b > c for a, b, c in zip(paper, exponential, search, strict=True))
    assert search[0] > fresh[0]
    assert search[-1] < fresh[-1]


@pytest.mark.full
def test_statements_that_differ_are_the_known_ones(parts):
    differing = {row.name.split(":")[0] for row in parts["statements"].rows if row.verdict == "differs, explained"}
    assert differing == {"Corollary 4.4", "Remark 4.5", "Theorem 4.7"}
    theorem = row_named(parts["statements"], "Theorem 4.7")
    assert theorem.ours == pytest.approx(7461.922, abs=1e-3)
    assert "0.724" in theorem.note
    assert all(row.optimal <= row.ours for row in parts["statements"].rows if row.optimal is not None)


@pytest.mark.full
def test_attacks_on_noise(parts):
    """Means of independent simulations with standard deviations of a run; five errors of the mean of both."""
    known = {
        # start of the name: claim, deviation of a run, runs there, runs here
        "claim after 100 questions, whole": (0.0800, 0.006, 100, 20),
        "claim after 100 questions, exact median, 50": (0.063, 0.010, 100, 20),
        "claim after 100 questions, private": (0.047, 0.018, 100, 20),
        "claim after 1000 questions, whole": (0.2522, 0.006, 30, 3),
        "claim after 1000 questions, exact median, 50": (0.196, 0.010, 30, 6),
        "claim after 1000 questions, exact median, 10": (0.178, 0.010, 30, 6),
        "claim after 1000 questions, private median, 10 rows a block, rho 0.5": (0.087, 0.024, 30, 6),
        "claim after 1000 questions, private median, 10 rows a block, rho 0.0081": (0.084, 0.49, 30, 6),
    }
    part = parts["adaptive attacks"]
    for start, (claim, deviation, there, here) in known.items():
        found = row_named(part, start).ours
        assert abs(found - claim) <= 5 * deviation * math.sqrt(1 / there + 1 / here) + 0.001, start
    assert "within the quartiles 0% of the time" in row_named(part, "claim after 1000 questions, exact median, 50").note
    for features, claim in ((101, 0.532), (1001, 0.600)):
        row = row_named(part, f"claimed accuracy of a vote of {features} features")
        assert abs(row.ours - claim) < 0.02  # a run has deviation 0.005
        assert row.optimal == pytest.approx(0.5, abs=1e-9)


@pytest.mark.full
def test_coverage(parts):
    """The promise is 0.95; all runs of a certified mechanism were valid in independent simulations too."""
    for row in parts["coverage"].rows:
        assert row.verdict == "reproduced"
        assert row.ours >= 0.95
        assert row.optimal >= 0.95


@pytest.mark.full
def test_analysts_find_something_wherever_answers_leak():
    """Without privacy the whole sample and exact medians of many questions are not valid; with few they are."""
    rng = np.random.default_rng(5)
    leaked = [sign_aggregation(rng, exact_median(50), 200, 50, 1000) for _ in range(3)]
    assert not any(one.final for one in leaked)
    assert all(one.interim == 1.0 for one in leaked)
    walked = [random_walk(rng, plain_mean, 1000, 1, 400).claim for _ in range(3)]
    # every accepted step raises the empirical mean; a fresh mean has deviation 0.03
    assert min(walked) > 0.1
    assert votes(rng, plain_mean, 100, 10, 101).claim > 0.55
    assert expected_claim(100, 10_000) == pytest.approx(0.0798, abs=1e-4)


@pytest.mark.full
def test_too_few_blocks_are_not_covered():
    """The same mechanism on a tenth of its blocks gives answers outside the quartiles."""
    plan = plan_blocks(queries=11, grid_size=201, failure_probability=0.05, mechanism="binary_search")
    answer = certified_answer(plan, block_grid(10), keyed_source(3))
    found = sign_aggregation(np.random.default_rng(6), answer, plan.blocks // 10, 10, 10)
    assert not found.valid


@pytest.mark.full
def test_block_grid():
    grid = block_grid(25)
    assert grid.size == 201
    assert float(grid.decode(0)) == pytest.approx(-0.8)
    assert float(grid.decode(200)) == pytest.approx(0.8)
    assert pytest.approx(0.67448975, abs=1e-8) == QUARTILE


@pytest.mark.full
def test_the_page_shows_these_rows(parts):
    assert_documented(PAPER, parts)


@pytest.mark.full
def test_a_second_run_gives_the_same(parts):
    assert_repeats(PAPER, parts, "statements")


@pytest.mark.slow
def test_full_mode():
    found = dict(PAPER.run(Context(False, keyed_source(2026))))
    assert_explained(found)
    assert len(found["coverage"].rows) == 4
