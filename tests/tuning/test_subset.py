"""The split of rows for tuning on a subset: every row by a coin of its own."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.tuning import split_rows


def test_each_row_is_in_one_part_and_both_are_in_order():
    tuning, rest = split_rows(1000, sampling_rate=0.3, random=keyed_source(1))
    assert sorted([*tuning, *rest]) == list(range(1000))
    assert (np.diff(tuning) > 0).all()
    assert (np.diff(rest) > 0).all()


def test_the_search_sees_each_row_with_the_sampling_rate():
    """The number of rows is binomial: 30,000 with deviation 145, so 6 deviations are 870."""
    tuning, _ = split_rows(100_000, sampling_rate=0.3, random=keyed_source(2))
    assert abs(len(tuning) - 30_000) < 870
    lengths = {len(split_rows(100, sampling_rate=0.5, random=keyed_source(seed))[0]) for seed in range(20)}
    assert len(lengths) > 3  # a split of a fixed size would have another price


def test_ends():
    assert [len(part) for part in split_rows(7, sampling_rate=1.0, random=keyed_source(1))] == [7, 0]
    assert [len(part) for part in split_rows(0, sampling_rate=0.5, random=keyed_source(1))] == [0, 0]
    for count, rate in ((-1, 0.5), (5, 0.0), (5, 1.01)):
        with pytest.raises(ArgumentError):
            split_rows(count, sampling_rate=rate)
