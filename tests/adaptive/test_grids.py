"""Grids of answers: codes and points round trip, in order, for every kind of grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpselect.adaptive import explicit_grid, integer_grid, logarithmic_grid
from dpselect.adaptive.grids import float_grid, uniform_grid
from tests.adaptive.adaptive_sessions import analysis, normal_rows
from tests.adaptive.medians_cases import GRIDS


@pytest.mark.parametrize("grid", [
    uniform_grid(-2, 2, 0.01), logarithmic_grid(1e-3, 10, ratio=1.02), integer_grid(-5, 5), float_grid(-1e9, 1e9),
    explicit_grid([-1, 0.3, 7]),
], ids=["uniform", "logarithmic", "integers", "doubles", "explicit"])  # fmt: skip
def test_every_grid_through_the_front_door(grid: Any) -> None:
    session = analysis(grid_size=2**64, queries=2, data=normal_rows(100_000))
    value = session.estimate(np.mean, grid=grid, axis=True).value
    assert abs(value - 0.3) < (0.51 if isinstance(value, int) else 0.15)
    assert isinstance(value, int) == isinstance(grid.decode(0), int)


@pytest.mark.parametrize("name", list(GRIDS))
def test_grids_round_trip_and_are_monotone(name: str) -> None:
    grid = GRIDS[name]
    codes = sorted({0, 1, grid.size // 3, grid.size // 2, grid.size - 2, grid.size - 1})
    points = [grid.decode(code) for code in codes]
    assert points == sorted(points)
    assert np.asarray(grid.encode(np.array(points, dtype=float))).tolist() == codes
    wild = np.concatenate((np.random.default_rng(0).normal(0, 50, 2000), points, [-np.inf, np.inf, 0.0, -0.0, 1e300]))
    encoded = np.asarray(grid.encode(np.sort(wild)), dtype=np.uint64)
    assert np.all(encoded[1:] >= encoded[:-1])
    for code in codes[1:]:
        threshold = grid.threshold(code)
        assert int(grid.encode(np.array([threshold]))[0]) >= code
        below = float(np.nextafter(threshold, -np.inf))
        assert int(grid.encode(np.array([below]))[0]) < code
