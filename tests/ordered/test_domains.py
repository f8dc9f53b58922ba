"""Domains: codes keep the order of values, and thresholds are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered import median
from dpselect.ordered.domains import Binades, Doubles, Grid, Timestamps, WholeNumbers
from dpselect.randomness import keyed_source

DOMAINS = [
    (Grid(-10, 33, Fraction(1, 10)), st.floats(allow_nan=False, width=64)),
    (Grid(-(2**48), 2**48, Fraction(1, 2**40)), st.floats(-300, 300)),
    (Grid(0, 30, Fraction(1, 3)), st.floats(-1, 11)),
    (Doubles(-1.5, 1e300), st.floats(allow_nan=False)),
    (Doubles(-1.7976931348623157e308, 1.7976931348623157e308), st.floats(allow_nan=False)),
    (Binades(), st.floats(allow_nan=False)),
]


@pytest.mark.cases(2)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize(("domain", "numbers"), DOMAINS)
@given(data=st.data())
def test_codes_are_monotone_and_thresholds_exact(domain, numbers, data):
    values = np.array(sorted(data.draw(st.lists(numbers, min_size=1, max_size=20))))
    codes = domain.encode(values)
    assert np.all(codes[1:] >= codes[:-1])
    assert int(codes[-1]) < domain.size
    code = data.draw(st.integers(1, domain.size - 1))
    edge = domain.threshold(code)
    assert int(domain.encode(np.array([edge]))[0]) >= code
    assert int(domain.encode(np.array([math.nextafter(edge, -math.inf)]))[0]) < code
    assert np.array_equal(values >= edge, codes >= np.uint64(code))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
@pytest.mark.parametrize("bounds", [(-5, 300), (-(2**63), 2**63 - 1), (0, 2**64 - 1), (-400, -300), (2**65, 2**65 + 3)])
def test_whole_numbers_of_every_type(dtype, bounds):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 3, 100, info.max - 1, info.max], dtype=dtype)
    codes = WholeNumbers(*bounds).encode(values)
    assert [int(c) for c in codes] == [min(max(int(v), bounds[0]), bounds[1]) - bounds[0] for v in values]


def test_large_whole_numbers_keep_their_order_among_powers_of_two():
    values = np.array([-(2**63), -(2**54) - 1, -(2**54), -(2**54) + 1, -1, 0, 1, 2**54 - 1, 2**54, 2**63 - 1])
    codes = Binades().encode(values).tolist()
    assert codes == sorted(codes)
    for value, code in zip(values.tolist(), codes, strict=True):
        assert value >= Binades().threshold(code)
        assert value < Binades().threshold(code + 1)


def test_timestamps_in_days():
    moments = np.datetime64("2024-01-01T00:00:00", "s") + np.arange(0, 86400 * 366, 600).astype("timedelta64[s]")
    found = median(
        moments, lower="2020-01-01", upper="2030-01-01", granularity=np.timedelta64(1, "D"), epsilon=1.0,
        random=keyed_source(1),
    )  # fmt: skip
    assert abs(found.value - np.datetime64("2024-07-02")) <= np.timedelta64(2, "D")
    assert Timestamps(0, 10, "D", 3).size == 4
