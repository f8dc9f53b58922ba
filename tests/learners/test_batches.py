"""Rows in batches: the same bits as the whole table, and samples with the distribution of coins for all rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse, stats

import dpselect.learners.batches as module
from dpselect.learners.batches import Batches, poisson_sample
from dpselect.learners.rows import unit_rows
from dpselect.randomness import keyed_source


def table(seed: int, count: int, features: int = 5) -> Any:
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, features)) * 10.0 ** random.integers(-9, 9, size=(count, 1))
    X[random.random(X.shape) < 0.05] = np.nan
    return X


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 300), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 400))
def test_batches_hold_the_unit_rows_to_the_last_bit(seed: int, count: int, intercept: float, cells: int) -> None:
    X, known = table(seed, count), np.random.default_rng(seed).random(count) < 0.8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", cells)
        found = Batches.of_table(X, known, 2.0, intercept)
        rows = np.vstack([np.empty((0, 5 + bool(intercept))), *(part.rows.copy() for part in found.parts())])
    expected = unit_rows(X, 2.0, intercept=intercept)[known]
    assert np.array_equal(rows, expected)
    assert np.array_equal(found.squares, [float(sum(Fraction(x) ** 2 for x in row)) for row in expected])
    assert np.array_equal(Batches.of(expected).squares, found.squares)


def test_a_sparse_table_gives_the_rows_of_the_dense_one() -> None:
    X = sparse.random(300, 40, density=0.1, random_state=np.random.RandomState(1), format="coo")
    known = np.arange(300) % 3 > 0
    dense = Batches.of_table(X.toarray(), known, 1.0, 0.3)
    assert np.array_equal(Batches.of_table(X, known, 1.0, 0.3).cells, dense.cells)


def test_a_sample_takes_the_rows_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", 5 * 64)
    rows = unit_rows(np.nan_to_num(table(3, 500)), 1.0, intercept=0.0)
    sample = np.flatnonzero(np.random.default_rng(1).random(500) < 0.5)
    parts = [(part.rows.copy(), part.squares, part.which) for part in Batches.of(rows).parts(sample)]
    assert len(parts) > 1
    assert np.array_equal(np.vstack([each for each, _, _ in parts]), rows[sample])
    assert np.array_equal(np.concatenate([which for _, _, which in parts]), sample)


class Words:
    """A source whose words are those of a list, first the leading bits and then the rest."""

    def __init__(self, *words: Any) -> None:
        self.left = list(words)

    def words(self, size: int) -> Any:
        found = np.asarray(self.left.pop(0), dtype=np.uint64)
        assert len(found) == size
        return found


@pytest.mark.parametrize("rate", [0.9, 0.5, 0.3, 0.25, 1 / 3, 2.0**-9])
def test_a_row_is_taken_by_the_bits_of_one_coin(rate: float) -> None:
    """Row by row: its leading bits are zeros, and its rest is below that of t, exactly at the edge too."""
    below = int(rate * 2.0**64)
    leading = 64 - below.bit_length()
    edge = (below << leading) - 1
    count = 70
    zeros, ones = np.zeros(2, np.uint64), np.full(2, 2**64 - 1, np.uint64)
    rest = [edge + (place % 2) for place in range(count)]
    found = poisson_sample(rate, count, Words(*[ones] * leading, rest))  # type: ignore[arg-type]
    assert found is not None
    assert found.tolist() == list(range(0, count, 2))
    if leading:
        none = poisson_sample(rate, count, Words(*[ones] * (leading - 1), zeros, []))  # type: ignore[arg-type]
        assert none is not None
        assert len(none) == 0


@pytest.mark.statistical
@pytest.mark.parametrize(("rate", "count"), [(0.7, 67), (0.11, 200), (0.004, 1000)])
def test_samples_are_those_of_independent_coins(rate: float, count: int) -> None:
    """Counts, single rows and pairs, at 1e-9 for each test of one key that is fixed."""
    random, runs = keyed_source("samples"), 3000
    taken = np.zeros((runs, count), dtype=bool)
    for run in range(runs):
        sample = poisson_sample(rate, count, random)
        assert sample is not None
        assert np.all(np.diff(sample) > 0)
        taken[run, sample] = True
    total = taken.sum(axis=1)
    assert abs(total.mean() - rate * count) < 6.1 * math.sqrt(rate * (1 - rate) * count / runs)
    assert abs(total.var() / (rate * (1 - rate) * count) - 1) < 6.1 * math.sqrt(2 / runs) * 1.5
    rows = stats.binom.cdf(taken.sum(axis=0), runs, rate)
    assert 1e-9 / count < rows.min()
    assert stats.binom.sf(taken.sum(axis=0) - 1, runs, rate).min() > 1e-9 / count
    pairs = np.count_nonzero(taken[:, :-1] & taken[:, 1:])
    expected = rate**2 * runs * (count - 1)
    assert abs(pairs - expected) < 6.1 * math.sqrt(expected * (1 + 2 * rate)) + 1


def test_rates_at_the_ends() -> None:
    assert poisson_sample(1.0, 9, keyed_source(1)) is None
    for rate, count in ((0.5, 0), (1e-300, 1000)):
        found = poisson_sample(rate, count, keyed_source(1))
        assert found is not None
        assert len(found) == 0
