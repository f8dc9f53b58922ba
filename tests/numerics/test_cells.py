"""Suprema over cells: an enclosure, the same in every run, within the limit."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from dpselect.numerics.cells import supremum_over_cells

# Suprema.


def lipschitz(function, slope):
    """Bounds over intervals for a function whose slope is at most that."""

    def measure(cells, settled):
        left, right = cells
        return function(left) + slope * (right - left) + 1e-9, function(left)

    return measure


EDGES = np.linspace(0.0, 1.0, 9)
CELLS = np.array([EDGES[:-1], EDGES[1:]])


@given(
    waves=st.lists(st.tuples(st.floats(-2.0, 2.0), st.floats(0.0, 30.0), st.floats(0.0, 6.0)), min_size=1, max_size=4),
    relative=st.sampled_from([0.1, 1e-3]),
)
def test_the_supremum_lies_between_what_is_attained_and_the_bound(waves, relative):
    def function(x):
        return 3.0 + sum(a * np.sin(w * x + s) for a, w, s in waves)

    slope = sum(abs(a) * w for a, w, _ in waves)
    low, high = supremum_over_cells(lipschitz(function, slope), CELLS, relative=relative, absolute=1e-3)
    largest = float(np.max(function(np.linspace(0.0, 1.0, 4001))))
    assert low <= largest + 1e-6 * (1.0 + slope**2)
    assert high >= largest
    assert high <= low + relative * abs(low) + 1e-3


def test_the_same_cells_are_measured_in_every_run_and_no_more_than_allowed():
    def counting(limit):
        seen: list[int] = []
        inner = lipschitz(lambda x: -np.abs(x - 1 / 3), 1.0)

        def measure(cells, settled):
            seen.append(cells.shape[1])
            return inner(cells, settled)

        return supremum_over_cells(measure, CELLS, relative=0.0, absolute=1e-12, limit=limit), seen

    assert counting(500) == counting(500)
    for limit in (1, 9, 10, 100):
        found, seen = counting(limit)
        assert sum(seen) <= max(limit, 8)
        assert found.attained <= 0.0 <= found.bound
    assert counting(100)[0].bound <= counting(10)[0].bound


def test_nan_infinity_and_what_is_enough():
    def measure(cells, settled):
        left, right = cells
        return np.where(right - left > 0.1, np.nan, right), np.where(left < 0.5, np.nan, left)

    low, high = supremum_over_cells(measure, CELLS, relative=1e-6)
    assert 1.0 - 1e-5 < low < 1.0 == high
    hopeless = supremum_over_cells(lambda c, s: (c[1] * np.inf, c[0]), CELLS, limit=50)
    assert hopeless.bound == math.inf
    # nothing above `enough`: it is not sharpened, and the bound says so
    assert supremum_over_cells(lipschitz(lambda x: x, 9.0), CELLS, enough=20.0) == (0.875, 20.0)
    asked: list[float] = []

    def seen(cells, settled):
        asked.append(settled)
        return lipschitz(lambda x: x, 1.0)(cells, settled)

    assert supremum_over_cells(seen, CELLS, stop=0.8, enough=0.1).attained == 0.875
    assert asked == [0.1]


def test_cells_of_any_shape_are_split_as_the_caller_says():
    """The largest x y (1 - x - y) on a square, boxes cut into four."""

    def measure(cells, settled):
        x_0, x_1, y_0, y_1 = cells
        return x_1 * y_1 * np.maximum(1.0 - x_0 - y_0, 0.0), x_0 * y_0 * (1.0 - x_0 - y_0)

    def quarters(cells):
        x_0, x_1, y_0, y_1 = cells
        x, y = (x_0 + x_1) / 2.0, (y_0 + y_1) / 2.0
        parts = [(x_0, x, y_0, y), (x, x_1, y_0, y), (x_0, x, y, y_1), (x, x_1, y, y_1)]
        return np.concatenate([np.array(part) for part in parts], axis=1)

    low, high = supremum_over_cells(measure, np.array([[0.0], [1.0], [0.0], [1.0]]), split=quarters, relative=1e-3)
    assert low <= 1 / 27 <= high <= low * (1.0 + 1e-3)
