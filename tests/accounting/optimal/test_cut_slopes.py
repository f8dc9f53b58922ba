"""How fast the value of two cuts grows, at the smallest losses too."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpselect.accounting.optimal.cut_slopes import Masses, n_growth, nothing
from dpselect.repetitions import (
    Geometric,
)


def test_the_probability_of_nothing_keeps_its_digits() -> None:
    stop = 1e-12
    for u in (1e-20, 1.37e-12, 1.1e-7, 1e-3, 0.49, 0.51):
        with mpmath.workdps(40):
            left = 1 - mpmath.mpf(u)
            truth = float(mpmath.mpf(stop) * left / (1 - (1 - mpmath.mpf(stop)) * left))
        assert nothing(Geometric(gamma=stop), np.array([u]), np.array([1.0 - u]))[0] == pytest.approx(truth, rel=1e-12)


def test_what_a_cut_may_gain_is_bounded_at_the_smallest_sets() -> None:
    """N empty, S of any mass from 1e-19 to v; the bound is checked at v, where phi'' bends far from its value at 0."""
    law, stop, epsilon, tiny, v, less = Geometric(gamma=0.01), mpmath.mpf("0.01"), 0.0, 1e-19, 0.05, 0.04

    def fall(u: float) -> mpmath.mpf:
        return (1 - stop) / (stop + (1 - stop) * mpmath.mpf(u)) ** 2

    def pair(p: float, q: float) -> np.ndarray:
        return np.array([[p], [q]])

    zero = np.zeros(1)
    masses = Masses(
        (pair(0.0, 0.0), pair(0.0, 0.0)),
        (pair(tiny, 0.8 * tiny), pair(v, less)),
        (zero, zero),
        (np.array([0.2 * tiny]), np.array([v - less])),
    )
    bound = n_growth(law, epsilon, False, masses, (zero, zero))[0]
    assert bound >= float(less * fall(less) - v * fall(v))
