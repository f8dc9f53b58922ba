"""Plans for a data set: the fewest blocks, means of bounded functions, and concentrated estimators."""

from __future__ import annotations

import math

import pytest

from dpselect.adaptive import (
    plan_blocks,
)
from dpselect.adaptive.planner import plan_analysis, plan_concentrated
from dpselect.adaptive.spread import hoeffding_subsample
from dpselect.errors import ArgumentError


@pytest.mark.full
def test_planner_for_a_data_set() -> None:
    """A million rows, 100 questions, 1,001 points. Splitting: 232 rows a block; the paper 3 rows, 1.15 deviations."""
    found = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001)
    by_name = {one.name: one for one in found.options}
    assert by_name["splitting"].subsample_size == 232
    assert math.isclose(by_name["splitting"].deviations or 0, 0.114, rel_tol=5e-3)
    assert by_name["paper"].subsample_size == 3
    assert found.best is not None
    assert found.best.name == "binary_search"
    assert found.best.subsample_size == 228  # 127 with independent noise
    only = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001, validity_only=True)
    assert only.best is not None
    assert only.best.name == "splitting"
    many = plan_analysis(rows=1_000_000, queries=1000, failure_probability=0.05, grid_size=1001, validity_only=True)
    assert many.best is not None
    assert many.best.name == "binary_search"
    assert {one.name: one.subsample_size for one in many.options}["paper"] == 0
    assert plan_analysis(rows=100, queries=100, failure_probability=0.05, grid_size=1001).best is None


@pytest.mark.full
def test_it_chooses_for_means_of_bounded_functions() -> None:
    """Gaussian answers where they are better, new rows for few questions when no row needs privacy; and says why."""
    common = {"failure_probability": 0.05, "grid_size": 1001, "statistic": "bounded_mean"}
    found = plan_analysis(rows=330_000, queries=1000, **common)
    assert found.best is not None
    assert found.best.name == "gaussian_means"
    assert "gaussian_means has the smallest certified error" in found.reason
    assert found.break_even == 105
    concentrated = next(one for one in found.options if one.name == "concentrated")
    again = plan_blocks(queries=1000, grid_size=1001, failure_probability=0.05, rank=concentrated.rank)
    assert again.blocks * concentrated.subsample_size <= 330_000
    assert concentrated.error is not None
    assert concentrated.error >= math.sqrt(-math.log(concentrated.rank) / (2 * concentrated.subsample_size)) * 0.999
    few = plan_analysis(rows=20_000, queries=10, validity_only=True, **common)
    assert few.best is not None
    assert few.best.name == "splitting"
    none = plan_analysis(rows=50, queries=100, **common)
    assert none.best is None
    assert "no way" in none.reason
    with pytest.raises(ArgumentError, match="statistic"):
        plan_analysis(rows=50, queries=1, failure_probability=0.05, grid_size=2, statistic="median")


@pytest.mark.cases(1)
@pytest.mark.parametrize(("queries", "known"), [(10, 8.9e4), (100, 3.3e5), (1000, 1.17e6), (10000, 4.05e6)])
def test_concentrated_estimators(queries: int, known: float) -> None:
    """Means of functions into [-1, 1] to 0.1 on 201 points, Hoeffding at 0.95 of that; known to two or three digits."""
    common = {"queries": queries, "grid_size": 201, "failure_probability": 0.05}

    def rows(rank: float) -> int:
        return hoeffding_subsample(rank=rank, error=0.095)

    independent = plan_concentrated(**common, subsample_for=rows, refined=False)
    assert math.isclose(independent.rows, known, rel_tol=0.01)
    ours = plan_concentrated(**common, subsample_for=rows)
    assert ours.rows < 0.7 * known
    assert ours.plan.certified
    assert ours.plan.rank < 1e-4


def test_a_plan_prints_a_table_of_its_ways():
    plan = plan_analysis(
        rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001, statistic="bounded_mean"
    )
    head, *lines, reason = str(plan).split("\n")
    assert reason == plan.reason
    assert [line.split()[0] for line in lines] == [one.name for one in plan.options]
    assert next(line for line in lines if "(best)" in line).split()[0] == plan.best.name == "gaussian_means"
    ends = [head.index(name) for name in ("blocks", "private", "error of")]
    assert [line[end - 1] for line in lines for end in ends] == [" "] * (3 * len(lines))
    (split,) = [line for line in lines if line.startswith("splitting")]
    assert "no" in split.split()
    html = plan._repr_html_()
    assert html.count("<tr>") == len(lines) + 1
    assert "gaussian_means (best)" in html
    few = plan_analysis(rows=50, queries=100, failure_probability=0.05, grid_size=1001)
    assert "too few rows" in str(few)
    assert "(best)" not in str(few)
