"""Each quantile by itself: an equal share of epsilon, answers in order, and the largest error of any of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import Column
from dpselect.ordered.order_statistics.methods.method import METHODS, AskedQuantiles
from dpselect.ordered.order_statistics.one import rank_error
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD = Adjacency.ADD_OR_REMOVE_ONE
QS = (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10))


def method(epsilon=3.0, units=1, qs=QS):
    return METHODS["independent"](AskedQuantiles(qs, epsilon, ADD, units))


def test_a_quantile_moves_by_the_larger_of_its_two_sides():
    """A row moves a score by at most D = max(q, 1 - q), and an equal share of epsilon has the rate 1/(2 D)."""
    assert [float(rate) for rate in method().planned.rates] == pytest.approx([2 / 3, 1.0, 5 / 9], rel=1e-12)
    assert method().planned.guarantee.epsilon(delta=0) == pytest.approx(3.0, rel=1e-12)


def test_weights_divide_the_rates():
    plain, weighted = method().planned.rates, method(units=1024).planned.rates
    assert weighted == tuple(rate / 1024 for rate in plain)
    assert method(units=1024).rank_errors(1000, 0.1)[0] == pytest.approx(method().rank_errors(1000, 0.1)[0], rel=1e-3)


def test_each_has_the_largest_error():
    """Ordered answers may be another quantile's, and the failure is shared by all of them."""
    one = method(qs=QS[2:], epsilon=1.0).planned.rates[0]
    expected = rank_error(1000, one, 0.1 / 3)
    assert method().rank_errors(1000, 0.1) == pytest.approx([expected] * 3, rel=1e-12)


def test_answers_are_in_order():
    column = Column(np.arange(50), lower=0, upper=49)
    close = [Fraction(n, 100) for n in range(48, 54)]
    for seed in range(20):
        codes = METHODS["independent"](AskedQuantiles(tuple(close), 1.0, ADD)).draw(column, keyed_source(seed)).codes
        assert codes == sorted(codes)
        assert len(codes) == 6
    assert method(epsilon=3000.0).draw(column, keyed_source(1)).codes == pytest.approx([12, 25, 45], abs=1)
