"""Laws of K against published values: Papernot and Steinke (2022), Definition 1 and the statements named below.

The digits were computed from the printed formulas, apart from this library.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.repetitions import (
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
    Uniform,
)

ETAS = (-0.5, 0.0, 0.5, 1.0, 2.0)
DIGITS = pytest.approx


def tnb(eta: float, gamma: float = 0.1) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial(eta=eta, gamma=gamma)


def mean_law(eta: float, mean: float) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial.with_mean(eta=eta, mean=mean)


@pytest.mark.parametrize(
    ("eta", "pmf"),
    [
        (-0.5, (0.658113883008, 0.148075623677, 0.0666340306546)),
        (0.0, (0.390865033713, 0.175889265171, 0.105533559102)),
        (0.5, (0.208113883008, 0.140476871031, 0.105357653273)),
        (1.0, (0.1, 0.09, 0.081)),
        (2.0, (0.0181818181818, 0.0245454545455, 0.0294545454545)),
    ],
)
def test_definition_1_pmf(eta, pmf):
    assert tnb(eta).pmf(np.arange(1.0, 4.0)) == DIGITS(pmf, rel=1e-11)


def test_definition_1_means():
    means = (2.08113883008419, 3.908650337129266, 6.58113883008419, 10.0, 18.181818181818)
    assert [tnb(eta).mean for eta in ETAS] == DIGITS(means, rel=1e-13)


def test_pgf_at_seven_tenths():
    values = (0.5728863026336695, 0.431798275933005, 0.2978294068872841, 0.1891891891891892, 0.06368284746663125)
    assert [tnb(eta).pgf(0.7) for eta in ETAS] == DIGITS(values, rel=1e-14)


@pytest.mark.parametrize(
    ("mean", "gammas"),
    [
        (10, (1 / 361, 0.02691825960068022, 1 / 16, 0.1, 0.1708203932499369, 0.33426324237452)),
        (
            100,
            (
                2.52518875785965e-5,
                0.001542115074889666,
                0.005366274292452123,
                0.01,
                0.01961524227066319,
                0.04761905872345894,
            ),
        ),
    ],
)
def test_gamma_for_a_mean(mean, gammas):
    laws = [mean_law(eta, mean) for eta in (*ETAS, 5.0)]
    assert [law.gamma for law in laws] == DIGITS(gammas, rel=2e-14)
    # rounded to the costlier side, and the mean is that of this very gamma
    assert all(mean <= law.mean <= mean * (1 + 1e-14) for law in laws)
    assert Geometric.with_mean(mean=mean).gamma == DIGITS(1 / mean, rel=1e-14)
    assert Logarithmic.with_mean(mean=mean).gamma == DIGITS(gammas[1], rel=1e-14)


def test_expected_quantile():
    values = (0.58658230888265, 0.67681662920786, 0.75974692664796, 0.82684134654394, 0.90909090909091)
    assert [tnb(eta).expected_quantile() for eta in ETAS] == DIGITS(values, rel=1e-13)
    assert mean_law(-0.5, 10).expected_quantile() == DIGITS(0.65, rel=1e-13)
    assert mean_law(0.5, 10).expected_quantile() == DIGITS(0.8, rel=1e-13)
    assert Poisson(mean=10).expected_quantile() == DIGITS(1 - (1 - math.exp(-10)) / 10, rel=1e-15)
    # by hand
    assert Fixed(count=4).expected_quantile() == 0.8
    assert Uniform(limit=2).expected_quantile() == DIGITS((0 + 1 / 2 + 2 / 3) / 3, rel=1e-15)


def test_lemma_22_truncation():
    geometric = Geometric.with_mean(mean=10)
    assert geometric.survival(50) == DIGITS(0.00515378, rel=1e-6)
    assert geometric.size_biased_survival(50) == DIGITS(0.0309227, rel=2e-6)
    logarithmic = Logarithmic.with_mean(mean=10)
    assert logarithmic.survival(200) == DIGITS(1.83338e-4, rel=3e-6)
    assert logarithmic.size_biased_survival(200) == DIGITS(0.00426447, rel=2e-6)
    assert mean_law(-0.5, 10).size_biased_survival(1000) == DIGITS(0.018518, rel=3e-5)
    # for the geometric law, E[K 1{K > m}] / E[K] = (1 - gamma)**m (1 + gamma m), by hand
    assert geometric.size_biased_survival(50) == DIGITS(0.9**50 * 6, rel=1e-13)


def test_lemma_20_tilt():
    assert tnb(0.5, 0.0625).tilted(0.99).gamma == DIGITS(0.071875, rel=1e-15)
    failures = (0.00923279883, 0.00982349365, 0.00988888804, 0.00991080278)
    laws = [mean_law(eta, 10) for eta in (-0.5, 0.0, 0.5, 1.0)]
    assert [law.success_probability(1e-3) for law in laws] == DIGITS(failures, rel=1e-8)
    assert Poisson(mean=100).success_probability(1e-3) == DIGITS(0.0951625820, rel=1e-9)
    assert Poisson(mean=100).tilted(0.999) == Poisson(mean=99.9)


def test_continuity_at_eta_zero():
    assert tnb(1e-3, 0.05).mean == DIGITS(6.3518605565, rel=1e-10)
    assert tnb(1e-6, 0.05).mean == DIGITS(6.3423653132, rel=1e-10)
    assert tnb(0.0, 0.05).mean == DIGITS(6.3423558132, rel=1e-10)
    # the slope in eta is 9.5, so 1e-9 moves the mean in its tenth digit and nothing else may
    for eta in (1e-9, -1e-9):
        assert tnb(eta, 0.05).mean - tnb(0.0, 0.05).mean == DIGITS(9.5 * eta, rel=1e-2)
        assert tnb(eta, 0.05).pgf(0.3) == DIGITS(tnb(0.0, 0.05).pgf(0.3), rel=5e-9)
    assert tnb(0.0, 0.05).pmf(np.arange(1.0, 9.0)) == DIGITS(Logarithmic(gamma=0.05).pmf(np.arange(1.0, 9.0)), rel=0)


def test_large_eta_tends_to_poisson():
    """The untruncated negative binomial with mean 10: its generating function at one half tends to exp(-5)."""
    limits = {10.0: 0.0173415, 100.0: 0.0076045, 1e4: 0.0067464}
    for eta, value in limits.items():
        gamma = eta / (eta + 10.0)
        nothing = gamma**eta
        untruncated = nothing + (1 - nothing) * tnb(eta, gamma).pgf(0.5)
        assert untruncated == DIGITS(value, rel=1e-5)
    assert Poisson(mean=10).pgf(0.5) == DIGITS(0.0067379, rel=1e-5)


@pytest.mark.parametrize(("eta", "first", "quantile", "success"), [(-0.5, 0.5, 2 / 3, 0.1), (-0.25, 0.25, 0.8, 0.3162)])
def test_negative_eta_saturates(eta, first, quantile, success):
    law = tnb(eta, 1e-14)
    values = [law.pmf(1), law.expected_quantile(), law.success_probability(0.01)]
    assert values == DIGITS([first, quantile, success], rel=1e-3)


@pytest.mark.parametrize(
    ("eta", "first", "quantiles", "variance"),
    [
        (-0.5, 0.526316, (1, 16, 171, 558), 1710.0),
        (0.0, 0.269183, (4, 26, 81, 148), 271.495),
        (0.5, 0.15625, (6, 24, 55, 88), 135.0),
        (1.0, 0.1, (7, 22, 44, 66), 90.0),
    ],
)
def test_spread_at_mean_ten(eta, first, quantiles, variance):
    law = mean_law(eta, 10)
    assert law.pmf(1) == DIGITS(first, rel=1e-5)
    assert tuple(law.quantile(p) for p in (0.5, 0.9, 0.99, 0.999)) == quantiles
    assert law.second_derivative(0.0) + law.mean - law.mean**2 == DIGITS(variance, rel=2e-6)


def test_log_derivative_closed_forms():
    """log f' of Papernot and Steinke (2022), after Lemma 7, by their formulas."""
    v = np.linspace(0.0, 0.9, 7)
    law = mean_law(0.5, 10)
    g = law.gamma
    assert law.log_derivative(v) == DIGITS(math.log(law.mean) + 1.5 * np.log(g / (g + (1 - g) * v)), abs=1e-13)
    assert Poisson(mean=10).log_derivative(v) == DIGITS(math.log(10) - 10 * v, abs=1e-13)
    assert Binomial(trials=20, probability=0.5).log_derivative(v) == DIGITS(
        math.log(10) + 19 * np.log1p(-0.5 * v), abs=1e-13
    )
    assert Fixed(count=3).log_derivative(v) == DIGITS(math.log(3) + 2 * np.log1p(-v), abs=1e-13)
    assert Harmonic(limit=2).log_derivative(v) == DIGITS(np.log(2 / 3 + 2 / 3 * (1 - v)), abs=1e-13)


def test_extreme_parameters():
    # P(K = 1) = eta / (gamma**-eta - 1), about 10**-1998: nothing overflows on the way to zero
    heavy = tnb(20.0, 1e-100)
    assert heavy.pmf(1) == 0.0
    assert heavy.mean == DIGITS(20e100, rel=1e-14)
    assert heavy.pgf(0.5) == 0.0
    assert heavy.success_probability(1.0) == 1.0
    tiny = tnb(0.0, 1e-30)
    assert tiny.mean == DIGITS(1e30 / (30 * math.log(10)), rel=1e-14)
    assert tiny.success_probability(1e-40) == DIGITS(tiny.mean * 1e-40, rel=1e-9)
    # near gamma = 1 the law is a single run: P(K = 2) is about (1 + eta) / 2 (1 - gamma)
    single = tnb(3.0, 1 - 2**-40)
    assert single.mean - 1 == DIGITS(2 * 2**-40, rel=1e-3)
    assert single.survival(1) == DIGITS(2 * 2**-40, rel=1e-3)


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.0, 0.3, 0.5, 2.0])
def test_survival_steps_are_the_pmf(eta):
    """P(K > k - 1) - P(K > k) = P(K = k) far into a heavy tail; the difference loses three to four digits there."""
    law = TruncatedNegativeBinomial.with_mean(eta=eta, mean=1000.0 if eta < 0.5 else 10.0)
    for k in (1, 2, 10, 100, 1000):
        assert law.survival(k - 1) - law.survival(k) == pytest.approx(law.pmf(k), rel=1e-10)
