"""Cells in public units: what is clipped, missing, an indicator; each by itself; refused facts about columns."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners.encoding import TableEncoding


def encoded(cells, **facts):
    return TableEncoding(**facts).encoded(np.array(cells, dtype=np.float64))


def test_numbers_are_scaled_by_their_bounds_and_clipped():
    row = encoded([[0, 0], [10, 5], [5, -5], [99, -np.inf], [np.nan, 0]], bounds=[(0, 10), (-5, 5)])
    assert row.numbers.tolist() == [[-1, 0], [1, 1], [0, -1], [1, -1], [0, 0]]
    assert row.present.tolist() == [[True, True]] * 4 + [[False, True]]
    assert row.columns == 2


def test_indicators_leave_the_numbers_and_keep_their_order():
    row = encoded([[0.5, 1, -1, 7], [np.nan, np.nan, 1, np.inf]], indicators=[[3], [1, 0]])
    assert row.numbers.tolist() == [[-1], [1]]
    assert row.indicators.tolist() == [[1, 1, 0.5], [1, 0, 0]]
    assert (row.groups, row.columns) == (2, 3)


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (0, 1e-300), (1e308, 1.1e308), (-3, -2)])
def test_any_number_is_from_minus_one_to_one(bounds):
    cells = np.array([[-np.inf], [np.inf], [0.0], [bounds[0]], [bounds[1]], [1e-310], [np.nan]])
    row = encoded(cells, bounds=bounds)
    assert np.all(np.abs(row.numbers) <= 1)
    assert row.numbers[[3, 4], 0].tolist() == pytest.approx([-1, 1])


def test_a_row_is_encoded_alone():
    random = np.random.default_rng(1)
    cells = random.normal(size=(30, 4)) * 10.0 ** random.integers(-5, 5, (30, 4))
    facts = {"bounds": [(-1, 1), (0, 3)], "indicators": [[1, 3]]}
    whole = encoded(cells, **facts)
    for k in range(30):
        alone = encoded(cells[[k]], **facts)
        for name in ("numbers", "present", "indicators"):
            assert np.array_equal(getattr(alone, name)[0], getattr(whole, name)[k])


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"bounds": (1, 1)}, "bounds"),
        ({"bounds": (0, np.inf)}, "bounds"),
        ({"bounds": (0, "much")}, "bounds"),
        ({"bounds": [(0, 1)]}, "bounds"),
        ({"bounds": (0, 5e-324)}, "bounds"),
        ({"indicators": [[9]]}, "indicators"),
        ({"indicators": [[0], [0]]}, "indicators"),
        ({"indicators": [[]]}, "indicators"),
        ({"indicators": [0]}, "indicators"),
        ({"indicators": 3}, "indicators"),
        ({"indicators": [[0.5]]}, "indicators"),
    ],
)
def test_facts_that_are_none_are_named(facts, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        encoded(np.zeros((2, 3)), **facts)
