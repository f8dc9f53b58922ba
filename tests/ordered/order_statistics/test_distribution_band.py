"""The band that holds a distribution function."""

from __future__ import annotations

import bisect

from hypothesis import given, strategies as st

from dpselect.ordered.order_statistics.distribution_band import distribution_band


@given(
    rows=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    shares=st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_the_band_holds_the_function_at_every_point(rows, shares, data):
    """For any values, with errors that are as small as the definition of a rank error allows."""
    rows, shares = sorted(rows), sorted(shares)
    values = sorted(data.draw(st.lists(st.integers(0, 9), min_size=len(shares), max_size=len(shares))))
    count, errors = len(rows), []
    for share, value in zip(shares, values, strict=True):
        at_most, below = bisect.bisect_right(rows, value), bisect.bisect_left(rows, value)
        errors.append(max(share - at_most / count, below / count - share, 0.0))
    low, high = distribution_band(shares, errors)
    for point in [z / 2 for z in range(-2, 21)]:
        true = bisect.bisect_right(rows, point) / count
        reached = bisect.bisect_right(values, point)
        assert (low[reached - 1] if reached else 0.0) <= true
        assert true <= (high[reached] if reached < len(values) else 1.0)


def test_a_sharp_value_bounds_the_function_at_the_others():
    low, high = distribution_band([0.25, 0.5, 0.75], [0.5, 0.0, 0.5])
    assert [round(bound, 9) for bound in low] == [0.0, 0.5, 0.5]
    assert [round(bound, 9) for bound in high] == [0.5, 0.5, 1.0]
