"""No mechanism runs at more epsilon than what is charged for it, for every kind of number."""

import importlib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.adaptive import integer_grid
from dpselect.adaptive.medians import ExponentialMedian
from dpselect.errors import number
from dpselect.mechanisms import (
    ExponentialMechanism,
    LaplaceReduction,
    NoisyCount,
    PermuteAndFlip,
    ReportNoisyMax,
    SparseVector,
    TopK,
    noise_reduction,
    noisy_count,
)
from dpselect.privacy import OutputGuarantee, approximate_dp, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.output.amounts import charged_amount, epsilon_used
from dpselect.randomness import keyed_source
from dpselect.repetitions import Tabulated
from dpselect.repetitions.by_name import from_description, law_named

counts = importlib.import_module("dpselect.mechanisms.noisy_counts")
DOUBLES = st.floats(2.0**-20, 2.0**20) | st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e-3, 1 / 3, 0.1 + 0.2])
AMOUNTS = (
    DOUBLES
    | DOUBLES.map(np.float64)
    | DOUBLES.map(np.float32).filter(lambda x: x > 0)
    | DOUBLES.map(Fraction)
    | DOUBLES.map(lambda x: Decimal(repr(x)))
    | st.fractions(Fraction(1, 1000), 1000, max_denominator=10**6)
    | st.integers(1, 1000)
)


def exact(value):
    return Fraction(*value.as_integer_ratio())


def charged(epsilon):
    return charged_amount("epsilon", epsilon)


@pytest.mark.full
@given(AMOUNTS)
def test_a_price_is_never_rounded_down(value):
    for guarantee in (pure_dp(epsilon=value), approximate_dp(epsilon=value, delta=1e-6)):
        assert exact(value) <= Fraction(guarantee.pure_epsilon) <= exact(value) * (1 + Fraction(1, 2**51))
    prices = OutputGuarantee(cell=bool, epsilons={True: value, False: 0})
    assert Fraction(prices.price(True)) >= exact(value)
    assert Fraction(zcdp(rho=value).terms["rho"]) >= exact(value)
    assert Fraction(gaussian(noise_multiplier=value).terms["noise_multiplier"]) <= exact(value)
    assert Fraction(laplace(scale=value).pure_epsilon) * exact(value) >= 1
    assert Fraction(number("x", value, rounding="down")) <= exact(value) <= Fraction(number("x", value, rounding="up"))


@given(st.fractions(Fraction(1, 10**6), Fraction(999_999, 10**6)))
def test_a_delta_is_never_rounded_down(value):
    assert Fraction(approximate_dp(epsilon=1, delta=value).failure) >= value
    assert Fraction(OutputGuarantee(cell=bool, epsilons={True: 1}, delta=value).delta) >= value


@given(DOUBLES | DOUBLES.map(Fraction) | st.fractions(Fraction(1, 1000), 1000))
def test_what_is_used_is_at_most_what_is_charged(value):
    used = epsilon_used(value)
    assert used <= min(Fraction(value), charged(number("epsilon", value, rounding="up")))
    assert used >= Fraction(value) * (1 - Fraction(1, 2**50))


@pytest.mark.full
@given(AMOUNTS)
def test_scores_are_drawn_at_what_is_charged(value):
    for make in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
        for monotonic in (False, True):
            mechanism = make(sensitivity=1.0, epsilon=value, monotonic=monotonic)
            used = mechanism.rate * (1 if monotonic else 2)
            assert used <= charged(mechanism.guarantee.pure_epsilon)
    top = TopK(sensitivity=1.0, epsilon=value, count=3)
    assert 2 * top.rate <= charged(top.guarantee.epsilon(delta=0))


@given(AMOUNTS)
def test_noise_is_drawn_at_what_is_charged(value):
    scales = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "draw_laplace", lambda *scale: scales.append(Fraction(*scale[:2])) or 0)
        if isinstance(value, (float, int, Fraction)):
            noisy_count(3, epsilon=value)
            assert 1 / scales[0] <= charged(NoisyCount(epsilon=value).guarantee.pure_epsilon)
        rates = []
        patch.setattr(noise_reduction, "_chain", lambda on_grid, given, source: rates.extend(given))
        LaplaceReduction(epsilons=[value], sensitivity=1).open(3)
    assert rates[0] <= charged(LaplaceReduction(epsilons=[value], sensitivity=1).guarantee.worst_epsilon)


@given(AMOUNTS)
def test_a_sparse_vector_runs_at_what_is_charged(value):
    vector = SparseVector(epsilon_threshold=value, epsilon_queries=value, max_positives=1)
    test = vector._test
    assert test._rate * 2 + test._rate / test._ratio <= charged(vector.guarantee.worst_epsilon)


def test_a_score_mechanism_at_a_tenth_is_charged_a_tenth():
    """It ran at the double next to 0.1, which is above 1/10, and a ledger charged 1/10."""
    assert Fraction(0.1) > Fraction(1, 10)
    mechanism = ExponentialMechanism(sensitivity=1.0, epsilon=0.1)
    assert 2 * mechanism.rate == Fraction(1, 10) == charged(mechanism.guarantee.pure_epsilon)


# ---- small doors ----------------------------------------------------------------------------------------------------


def test_a_tabulated_law_has_its_name():
    law = Tabulated(probabilities=(0.25, 0.75))
    assert law_named("tabulated", {"probabilities": (0.25, 0.75)}) == law == from_description(law.describe())


def test_a_median_is_a_release():
    found = ExponentialMedian(epsilon=20.0)([2, 3, 3, 7, 9], integer_grid(0, 10), random=keyed_source(1))
    assert (found.value, found.replayable) == (3, True)
    assert found.guarantee.epsilon(delta=0) == ExponentialMedian(epsilon=20.0).guarantee.epsilon(delta=0)
