"""The lower bound for selectors: the construction's own conditions, known values, and that ours are above it."""

import math

import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.accounting.candidates.lower_bounds import selector_lower_bound
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Logarithmic


@pytest.mark.parametrize(
    ("candidates", "exponent", "epsilon", "distance", "factor"),
    [(10**6, 0.05, 0.1, 76, 1.72693882), (10**6, 0.05, 1.0, 8, 1.64059188), (10**9, 0.01, 0.01, None, 1.94096813)],
)
def test_known_values(candidates, exponent, epsilon, distance, factor):
    """Liu, Talwar (2019), Theorem D.2 at finite K: 1.7269 of the 1.7273 in the limit, 1.64 where the distance is 8."""
    hard = selector_lower_bound(candidates=candidates, epsilon=epsilon, exponent=exponent)
    assert distance in (None, hard.distance)
    assert_allclose(hard.selector_epsilon / epsilon, factor, rtol=1e-8)
    assert hard.selector_epsilon / epsilon < (1 - exponent) / (0.5 + exponent)


def test_the_construction_at_ten_thousand():
    """Dominance and the log-ratios of the candidates' probabilities."""
    hard = selector_lower_bound(candidates=10**4, epsilon=0.1, exponent=0.05)
    assert_allclose(hard.dominance, 0.499330251, rtol=1e-8)
    assert_allclose(1 - hard.usefulness, 0.369042654, rtol=1e-8)
    ratios = (
        math.log(hard.common / hard.losing),
        math.log(hard.winning / hard.common),
        math.log((1 - hard.common) / (1 - hard.winning)),
    )
    assert_allclose(ratios, (5.06569, 4.91928, 1.14865), atol=5e-6)
    assert max(ratios) <= 0.55 * math.log(10**4) * (1 + 1e-12) <= 0.1 * hard.distance


@pytest.mark.theorem("Liu, Talwar 2019, Theorem D.2", exact=True, sharp=True)
@given(candidates=st.integers(2, 10**9), epsilon=st.floats(1e-3, 5.0), exponent=st.floats(0.001, 0.499))
def test_what_every_bound_must_satisfy(candidates, epsilon, exponent):
    """Walk the bit in steps of epsilon: `distance` steps reach both ends; the rest is the definition."""
    hard = selector_lower_bound(candidates=candidates, epsilon=epsilon, exponent=exponent)
    reach, p = hard.distance * epsilon, hard.common
    down = p * math.exp(-reach)
    up = min(p * math.exp(reach), 0.5)
    left = reach - math.log(up / p)
    assert down <= hard.losing * (1 + 1e-9)
    assert 1 - (1 - up) * math.exp(-left) >= hard.winning * (1 - 1e-9)
    assert hard.dominance >= 1 - hard.usefulness
    # group privacy: from at most 1/K on D_0 to at least the usefulness on D_j
    needed = math.log(candidates * hard.usefulness)
    assert 0.99 * needed < hard.selector_epsilon * hard.distance <= needed * (1 + 1e-9)
    assert hard.selector_epsilon < 2 * epsilon


@pytest.mark.parametrize("candidates", [10**3, 10**6])
def test_our_selectors_pay_more_than_the_bound(candidates):
    """Runs enough to be useful: at least K of them on average."""
    bound = selector_lower_bound(candidates=candidates, epsilon=0.1).selector_epsilon
    base = pure_dp(epsilon=0.1)
    logarithmic = best_of(base, Logarithmic.with_mean(mean=candidates), bound="pure").epsilon(0.0)
    known = threshold_stopping(base, stop_probability=1.0 / candidates, bound="paper").epsilon(0.0)
    assert bound < logarithmic <= 0.2 * (1 + 1e-9)
    assert bound < known <= 0.2 * (1 + 1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": 1},
        {"candidates": 2.5},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"exponent": 0.5},
        {"exponent": 0},
    ],
)
def test_parameters_out_of_range(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        selector_lower_bound(**({"candidates": 100, "epsilon": 1.0} | wrong))
