"""Parameters of TreeLog: their guarantees, and how near they are to the best."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.interior_points.tree_log_price import (
    printed_parameters,
    tree_log_price,
)
from dpselect.ordered.interior_points.tree_log_tuning import (
    cumulative_rows,
    tree_log_rows,
    tuned_cumulative,
    tuned_tree_log,
)


def test_the_constants_of_the_proofs_on_a_real_domain():
    """Theorems 3.7 and 3.8 with 1/6, 3 epsilon and n = 10 log* t: 2.26e7 points for 2**64 at (1, 1e-6)."""
    queries = math.ceil(math.log(2e6) / math.log(6 / 5))
    epsilon = 1 / (3 * queries + 7)
    delta = 0.5e-6 / (7 * 5 + 8)
    t = 100 / epsilon * math.log(1 / delta)
    assert (queries, round(epsilon, 6)) == (80, 0.004049)
    assert t == pytest.approx(4.513e5, rel=1e-3)
    assert 10 * 5 * t == pytest.approx(2.26e7, rel=2e-3)
    # the same algorithm at its real depth and price, constants as printed
    p = printed_parameters(1 / 9 - 1e-9, 2.4e-7)
    price = tree_log_price(p, bits=64)
    assert price.epsilon <= 1.0
    assert price.delta <= 1e-6
    assert tree_log_rows(p, 64, 0.01) == pytest.approx(1.1e5, rel=0.01)


def test_tuned_parameters_keep_their_promises():
    for bits, epsilon, delta, levels in (
        (16, 1.0, 1e-6, 1),
        (64, 1.0, 1e-6, 1),
        (64, 0.1, 1e-9, 1),
        (64, 1.0, 1e-6, 2),
    ):
        p = tuned_tree_log(bits, epsilon, delta, 0.01, levels)
        price = tree_log_price(p, bits=bits)
        assert p.levels(bits) == levels
        assert price.epsilon <= epsilon * (1 + 1e-9)
        assert price.delta <= delta
    for bits, distance, levels in ((16, 2, 1), (64, 1, 1), (64, 2, 2)):
        p = tuned_cumulative(bits, 1.0, 1e-6, 0.01, distance, levels)
        price = tree_log_price(p, bits=bits, distance=distance)
        assert price.epsilon <= 1.0 + 1e-9
        assert price.delta <= 1e-6


def test_rows_beside_the_continuous_optimum():
    """Optima with continuous noise and slightly coarser masses: 735, 724, 713; at distance two 4560 and 4710."""
    for bits, continuous in ((16, 713), (32, 724), (64, 735), (256, 757), (1024, 777)):
        rows = tree_log_rows(tuned_tree_log(bits, 1.0, 1e-6, 0.01), bits, 0.01)
        assert 0.95 * continuous < rows < 1.02 * continuous
    for bits, continuous in ((16, 4560), (64, 4710)):
        rows = cumulative_rows(tuned_cumulative(bits, 1.0, 1e-6, 0.01, 2), bits, 0.01)
        assert 0.95 * continuous < rows < 1.02 * continuous


def test_prices_refuse_what_they_do_not_cover():
    p = tuned_tree_log(16, 1.0, 1e-6, 0.01)
    with pytest.raises(ArgumentError):
        tree_log_price(p, bits=16, distance=1)
    with pytest.raises(ArgumentError):
        tree_log_price(replace(p, gate=p.promise + 1), bits=16)
    c = tuned_cumulative(16, 1.0, 1e-6, 0.01, 1)
    with pytest.raises(ArgumentError):
        tree_log_price(c, bits=16)
    with pytest.raises(ArgumentError):
        tree_log_price(c, bits=16, distance=2)
    with pytest.raises(ArgumentError):
        tree_log_price(replace(c, slice_epsilon=0.1), bits=16, distance=1)
