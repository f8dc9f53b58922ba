"""The recursive method, by `Quantiles`: its levels share epsilon, and frequent values are cut."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered import Quantiles, quantiles
from dpselect.ordered.order_statistics.recursive import equal_share, level_shares
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def test_shares_add_up_to_at_most_epsilon():
    for parts in range(1, 50):
        for epsilon in (1.0, 0.1, math.pi):
            assert Fraction(equal_share(epsilon, parts)) * parts <= Fraction(epsilon)
            assert Quantiles(epsilon=epsilon, qs=[0.5], method="independent").guarantee.pure_epsilon <= epsilon
    many = [k / 100 for k in range(1, 100)]
    for method in ("recursive", "independent"):
        for adjacency in (ADD, REPLACE):
            assert Quantiles(epsilon=0.7, qs=many, method=method, adjacency=adjacency).guarantee.epsilon(0) <= 0.7


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(2.0**-30, 2.0**20),
    count=st.integers(1, 40),
    rows=st.sampled_from([1, 10**6]),
    adjacency=st.sampled_from([ADD, REPLACE]),
)
def test_levels_cost_epsilon_at_most_for_few_and_for_many_rows(epsilon, count, rows, adjacency):
    qs = [(k + 1) / (count + 1) for k in range(count)]
    plan = Quantiles(epsilon=epsilon, qs=qs, method="recursive", adjacency=adjacency, expected_rows=rows)
    assert epsilon * (1 - 2.0**-30) <= plan.guarantee.epsilon(delta=0) <= epsilon


def test_with_few_rows_the_first_levels_have_larger_shares():
    """Seven quantiles are three levels. Fewer rows than 0.03 * 49 are few."""
    qs = [k / 8 for k in range(1, 8)]
    few, many = (Quantiles(epsilon=1.0, qs=qs, method="recursive", expected_rows=rows) for rows in (1, 2))
    assert many.rates == (Fraction(equal_share(1.0, 3)),) * 7
    assert [float(rate / few.rates[0]) for rate in few.rates] == pytest.approx([1] + [0.75] * 2 + [0.5625] * 4)
    assert sum(level_shares(1.0, 3, Fraction(3, 4))) <= 1.0


@pytest.mark.statistical
def test_a_heavy_atom_is_cut_where_it_must_be():
    # six tenths of the rows are 0: the 0.7-quantile is a quarter into the others; without breaking ties the recursive
    # scheme would aim at their half
    rows = np.concatenate([np.zeros(6000), np.linspace(1.0, 2.0, 4000)])
    released = quantiles(
        rows, qs=[0.4, 0.5, 0.7], lower=0.0, upper=4.0, granularity=2.0**-12, epsilon=4.0, random=keyed_source(2)
    )
    assert released.value[:2] == [0.0, 0.0]
    assert abs(released.value[2] - 1.25) < 0.02
