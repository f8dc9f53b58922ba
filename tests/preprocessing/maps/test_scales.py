"""Numbers scaled by their bounds, or by the order of magnitude."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.preprocessing import (
    CenteredScale,
    LogScale,
)

# what each does


def test_the_middle_of_the_bounds_is_zero():
    found = CenteredScale(bounds=[(0, 10), (-4, 4)]).fit_transform([[5, 0], [10, -4], [99, -99], [math.nan, 2]])
    assert found * math.sqrt(2) == pytest.approx(np.array([[0, 0], [1, -1], [1, -1], [0, 0.5]]), abs=1e-4)


def test_the_logarithm_spreads_small_amounts():
    found = LogScale(bounds=(10, 10 + math.e**4 - 1)).fit_transform([[10 + math.e**k - 1] for k in range(5)])
    assert found.ravel() == pytest.approx([-1, -0.5, 0, 0.5, 1], abs=1e-4)
