"""Output guarantees against the exact oracle on finite mechanisms.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022); their numbers were computed by hand or
by integration, not with this library.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.ledger.accounting import worst
from dpselect.privacy import OutputGuarantee, compose, pure_dp, worst_of
from dpselect.privacy.output.amounts import charged_amount, charged_price, noise_epsilon
from dpselect.repetitions import Logarithmic
from tests.privacy.output.guarantee_cases import (
    identity_guarantee,
    mechanisms,
    tight_delta,
)

ROUNDING = 1e-13  # a handful of operations on masses of at most 1, in double precision


def asymmetric(loss_a, loss_b):
    """Two outputs, A and B, with losses +loss_a and -loss_b."""
    lower = (1 - math.exp(-loss_b)) / (math.exp(loss_a) - math.exp(-loss_b))
    upper = math.exp(loss_a) * lower
    return [upper, 1 - upper], [lower, 1 - lower]


@given(mechanisms())
def test_lemma_4_the_worst_case_holds(mechanism):
    upper, lower, cells, epsilons, delta = mechanism
    guarantee = identity_guarantee(cells, epsilons, min(delta, 1 - 1e-9))
    worst = dict.fromkeys("abc", guarantee.worst_epsilon)
    assert tight_delta(upper, lower, cells, worst) <= delta + ROUNDING


def test_fact_11_a_cascade_of_two_tests_has_two_deltas():
    """Both stages answer v_x with mass 0.01 on inadmissible data: 2 delta - delta^2, not delta."""
    delta, epsilon = 0.01, 0.5
    answered = 2 * delta - delta**2
    upper, lower = [answered, 0.0, 1 - answered], [0.0, answered, 1 - answered]
    prices = {"answer": 3 * epsilon, "none": 2 * epsilon}
    found = tight_delta(upper, lower, ["answer", "answer", "none"], prices)
    assert found == pytest.approx(0.0199, abs=ROUNDING)


def test_prices_by_a_function_need_a_supremum():
    counted = OutputGuarantee(cell=len, epsilons=lambda count: 0.1 * count, supremum=0.5)
    assert counted.worst_epsilon == 0.5
    assert counted.observed("ab").epsilon(delta=0) == 0.2
    assert counted.table is None
    with pytest.raises(ArgumentError, match="supremum"):
        OutputGuarantee(cell=len, epsilons=lambda count: 0.1 * count)
    with pytest.raises(ArgumentError, match="supremum"):
        counted.observed("abcdef")
    with pytest.raises(ArgumentError, match="supremum"):
        OutputGuarantee(cell=len, epsilons={0: 1.0}, supremum=0.5)


@pytest.mark.parametrize(
    "use",
    [
        lambda price: compose(price, price),
        lambda price: compose(price),
        lambda price: worst_of(price, pure_dp(epsilon=1.0)),
        lambda price: best_of(price, Logarithmic.with_mean(mean=5)).epsilon(delta=0),
        lambda price: best_of(price, Logarithmic.with_mean(mean=5)).epsilon(delta=1e-6),
        worst,
    ],
)
def test_zoo_a_realised_price_enters_no_other_calculus(use):
    """Fact 9 by the front door: the prices of outputs that came out, composed as if they had been promised."""
    gate = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.01})
    assert gate.observed(False).epsilon(delta=0) == 0.01
    with pytest.raises(ArgumentError, match="realised"):
        use(gate.observed(False))
    use(gate.worst())


def test_the_output_is_not_quoted():
    guarantee = OutputGuarantee(cell=lambda x: x, epsilons={"a": 1.0})
    with pytest.raises(ArgumentError) as caught:
        guarantee.observed("secret")
    assert "secret" not in str(caught.value)


def test_what_a_divergence_used_does_not_tell_guarantees_apart():
    one, other = (
        OutputGuarantee(
            cell=len, epsilons={1: 0.5}, ordinary=pure_dp(epsilon=0.5), used=lambda _cell, orders: 0.0 * orders
        )
        for _ in range(2)
    )
    assert one == other


def test_output_guarantees_pickle():
    for guarantee in (
        OutputGuarantee(cell=len, epsilons={1: 0.5}, delta=1e-6),
        OutputGuarantee(cell=len, epsilons=math.sqrt, supremum=2.0),
    ):
        assert pickle.loads(pickle.dumps(guarantee)) == guarantee


def test_asymmetric_response_is_what_it_says():
    upper, lower = asymmetric(0.01, 1.0)
    assert upper[0] == pytest.approx(0.994243, abs=1e-6)  # Hartmann et al., the counterexample's masses
    assert lower[0] == pytest.approx(0.984350, abs=1e-6)
    assert np.log(np.array(upper) / lower) == pytest.approx([0.01, -1.0], abs=1e-12)


@given(
    parts=st.lists(st.integers(1, 10**6), min_size=1, max_size=6),
    digits=st.integers(1, 6),
)
def test_prices_add_up_as_they_are_typed(parts, digits):
    """Three tests at 0.2 fit a budget of 0.6, and the noise is for less than the double that stands for 0.6."""
    typed = [part / 10**digits for part in parts]
    whole = charged_price(sum(charged_amount("epsilon", value) for value in typed))
    assert charged_amount("epsilon", whole) == Fraction(sum(parts), 10**digits)
    assert sum(noise_epsilon(value) for value in typed) < Fraction(whole)
    third = Fraction(sum(parts), 3 * 10**digits)
    assert third <= charged_amount("epsilon", charged_price(third)) <= third * (1 + Fraction(1, 2**51))
