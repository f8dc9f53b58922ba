"""Numbers as indicators of bins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.preprocessing import (
    PublicBins,
)


def test_bins_hold_their_lower_ends_and_a_missing_cell_lies_in_none():
    found = PublicBins(bins=4, bounds=(0, 1)).fit_transform([[0.0], [0.25], [0.4999], [0.5], [1.0], [math.nan]])
    assert [np.flatnonzero(row).tolist() for row in found] == [[0], [1], [1], [2], [3], []]
    assert found.sum(axis=1)[:5] == pytest.approx(1.0, abs=1e-4)
