"""Scales: from a number within its bounds to features in [-1, 1]."""

import numpy as np
import pytest

from dpselect.study.columns.scale import SCALES
from tests.study.tables_cases import encoded


def test_scales():
    assert encoded({"bounds": (1, 100), "scale": "log"}, 1, 10, 100) == [[-1.0], [0.0], [1.0]]
    (low,), (middle,), (high,) = encoded({"bounds": (0, 99), "scale": "log"}, 0, 9, 99)
    assert (low, high) == (-1.0, 1.0)
    assert middle == pytest.approx(0.0, abs=1e-12)
    bins = {"bounds": (0, 4), "scale": "bins:4"}
    assert encoded(bins, -1, 0.99, 1, 4, 5) == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert encoded({**bins, "missing": "indicator"}, 3, None) == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    wide = {"bounds": (-1.7e308, 1.7e308)}
    assert encoded(wide, -1.7e308, 0, 1.7e308) == [[-1.0], [0.0], [1.0]]


def test_features_of_each_scale_are_exact():
    values = np.array([1.0, 10.0, 100.0])
    assert SCALES["linear"].features(values, 1.0, 100.0, 0)[:, 0].tolist() == [-1.0, 2 * 9 / 99 - 1, 1.0]
    np.testing.assert_allclose(SCALES["log"].features(values, 1.0, 100.0, 0)[:, 0], [-1.0, 0.0, 1.0], atol=1e-12)
    from_zero = SCALES["log"].features(np.array([0.0, 9.0, 99.0]), 0.0, 99.0, 0)[:, 0]
    np.testing.assert_allclose(from_zero, [-1.0, 0.0, 1.0], atol=1e-12)
    bins = SCALES["bins"].features(np.array([0.0, 0.24, 0.25, 1.0]), 0.0, 1.0, 4)
    assert bins.argmax(axis=1).tolist() == [0, 0, 1, 3]
    assert bins.sum(axis=1).tolist() == [1.0] * 4
    assert SCALES["linear"].features(np.array([0.0]), -1.7e308, 1.7e308, 0).tolist() == [[0.0]]


def test_a_size_or_a_bound_that_a_scale_cannot_have_is_refused():
    assert SCALES["log"].refused(-1e-9, 0) == "scale log needs bounds not below 0"
    assert not SCALES["log"].refused(0.0, 0)
    assert [bool(SCALES["bins"].refused(0.0, size)) for size in (1, 2, 4096, 4097)] == [True, False, False, True]
