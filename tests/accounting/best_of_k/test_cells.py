"""Partitions of the event probabilities: bounds on every cell, tighter with more of them."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting.best_of_k.bounds.profile import layered_bound
from dpselect.accounting.best_of_k.cells import partition, smooth_records
from dpselect.accounting.best_of_k.feasible_region import GaussianTradeOff, PureTradeOff
from dpselect.repetitions import (
    Geometric,
    Harmonic,
    Poisson,
)
from tests.accounting.best_of_k.bounds.profile_cases import gaussian_base

GEOMETRIC_10, GEOMETRIC_100 = Geometric(gamma=0.1), Geometric(gamma=0.01)


def test_finer_cells_are_tighter():
    for law in (GEOMETRIC_10, Poisson(mean=10), Harmonic(limit=29)):
        curve = gaussian_base(0.25).profile.remove
        epsilon = np.array([1.5])
        values = [
            float(layered_bound(partition(law, GaussianTradeOff(0.25), points=n), curve, epsilon)[0])
            for n in (500, 2000, 8000)
        ]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("trade_off", [GaussianTradeOff(0.5), PureTradeOff(0.7)], ids=["gaussian", "pure"])
@pytest.mark.parametrize("law", [GEOMETRIC_10, Poisson(mean=10.0), Harmonic(limit=29)], ids=str)
def test_a_cell_bounds_every_shift_in_it(law, trade_off):
    """log phi'(1 - v) - log phi'(1 - T(v')) for v and v' anywhere in the cell."""
    cells = partition(law, trade_off, points=200)
    assert (cells.edges[0], cells.edges[-1], cells.edges.size) == (0.0, 1.0, 201)
    assert cells.log_weights == pytest.approx(law.log_derivative(cells.edges), rel=1e-15)
    left, right = cells.edges[:-1], cells.edges[1:]
    for share in (0.0, 0.3, 1.0):
        v = left + share * (right - left)
        shift = law.log_derivative(v) - law.log_derivative(np.minimum(trade_off(v), 1.0))
        assert np.all(shift <= cells.shifts)
    highest = float(np.max(law.log_derivative(left) - law.log_derivative(trade_off(left))))
    assert highest <= float(np.max(cells.shifts)) <= 1.12 * highest


def test_records_keep_the_cells_that_no_cell_to_their_left_reaches():
    cells = partition(GEOMETRIC_10, GaussianTradeOff(0.5), points=200)
    weights, shifts = cells.records
    assert np.all(np.diff(shifts) > 0)
    for order in (0.1, 1.0, 30.0):
        every = np.max(cells.log_weights[:-1] + order * cells.shifts)
        assert np.max(weights + order * shifts) == pytest.approx(every, rel=1e-15)


def test_smooth_records_are_above_the_truth_and_nearer_than_cells():
    law, trade_off = Poisson(mean=10.0), GaussianTradeOff(0.5)
    v = np.linspace(0.0, 1.0, 100_001)[1:-1]
    weight = law.log_derivative(v)
    truth = weight - law.log_derivative(np.minimum(trade_off(v), 1.0))
    smooth, cells = smooth_records(law, trade_off, points=200), partition(law, trade_off, points=200).records
    for order in (0.5, 1.0, 5.0):
        exact = float(np.max(weight + order * truth))
        above = float(np.max(smooth[0] + order * smooth[1]))
        assert exact <= above <= float(np.max(cells[0] + order * cells[1]))
        assert above <= exact + 1e-3
