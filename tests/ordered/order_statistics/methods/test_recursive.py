"""The recursive method, by `Quantiles`: its levels share epsilon, and frequent values are cut."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import Quantiles, quantiles
from dpselect.ordered.order_statistics.recursive import equal_share
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
