"""Rows scaled to norm 1, with or without their mean."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.preprocessing import (
    RowDirection,
    RowStandardization,
)


def test_directions_lose_the_length():
    found = RowDirection(bounds=(-1, 1)).fit_transform([[0.03, 0.04], [0.3, 0.4], [0, 0]])
    assert found == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0]]), abs=1e-3)


def test_brightness_and_contrast_go():
    row = np.random.default_rng(0).integers(0, 50, 12)
    found = RowStandardization().fit_transform([row, 3 * row + 40])
    assert found[0] == pytest.approx(found[1], abs=1e-3)
    assert found[0] == pytest.approx((row - row.mean()) / np.linalg.norm(row - row.mean()), abs=1e-3)
