"""The least noise that meets a target: safe, close and in few evaluations."""

from __future__ import annotations

import math

import pytest

from dpselect.accounting import best_of, calibrate
from dpselect.accounting.planning.calibrate import GuaranteePrice, ParameterSearch, steady
from dpselect.errors import ArgumentError, BudgetError
from dpselect.privacy import (
    approximate_dp,
    dp_sgd,
    gaussian,
    laplace,
    pure_dp,
    zcdp,
)
from dpselect.repetitions import Fixed, Geometric, Harmonic

LAW = Geometric(gamma=0.1)


class TestCalibrate:
    @pytest.mark.full
    @pytest.mark.parametrize(
        ("make", "epsilon", "delta"),
        [
            (lambda s: best_of(gaussian(noise_multiplier=s), LAW), 3.0, 1e-5),
            (lambda s: best_of(gaussian(noise_multiplier=s), LAW, bound="renyi"), 0.05, 1e-6),
            (lambda s: best_of(pure_dp(epsilon=1 / s), LAW), 3.0, 0.0),
            (lambda s: best_of(laplace(scale=s), LAW), 30.0, 1e-5),
            (lambda s: gaussian(noise_multiplier=s), 1.0, 1e-6),
            (lambda s: best_of(gaussian(noise_multiplier=s), Harmonic(limit=1000)), 0.02, 1e-9),
            (lambda s: best_of(gaussian(noise_multiplier=s), Fixed(count=3)), 40.0, 0.01),
            (lambda s: best_of(zcdp(rho=0.5 / s**2), LAW), 2.0, 1e-6),
            (lambda s: best_of(dp_sgd(noise_multiplier=s, sampling_rate=0.01, steps=1000), LAW), 2.0, 1e-6),
        ],
    )
    def test_safe_and_close(self, make, epsilon, delta):
        found = calibrate(make, epsilon=epsilon, delta=delta)
        assert make(found).epsilon(delta) <= epsilon
        assert make(found * (1 - 1.1e-4)).epsilon(delta) > epsilon

    @pytest.mark.full
    def test_full_guarantee_not_only_renyi(self):
        """The profile of DP-SGD allows less noise than its Renyi curve does."""

        def make(bound):
            return lambda s: best_of(dp_sgd(noise_multiplier=s, sampling_rate=0.05, steps=200), LAW, bound=bound)

        full = calibrate(make(None), epsilon=3.0, delta=1e-5, relative=1e-3)
        renyi = calibrate(make("renyi"), epsilon=3.0, delta=1e-5, relative=1e-3)
        assert full < 0.95 * renyi
        assert make(None)(full).epsilon(1e-5) <= 3.0

    def test_few_evaluations(self):
        calls = 0

        def make(noise):
            nonlocal calls
            calls += 1
            return best_of(gaussian(noise_multiplier=noise), LAW, bound="renyi")

        calibrate(make, epsilon=3.0, delta=1e-5)
        assert calls <= 8

    @pytest.mark.parametrize("target", [1e-3, 0.5, 9.0])
    @pytest.mark.parametrize(
        "price",
        [
            lambda s: 20.0 if s < 3.3 else 1e-4,
            lambda s: 0.0 if s > 7.0 else 100.0,
            lambda s: 12.0 - 1e-3 * math.log(s) if s < 50.0 else 0.5 / s,
            lambda s: min(s**-8, 1e200),
        ],
        ids=["jump", "to zero", "flat, then a jump", "steep"],
    )
    def test_awkward_prices_are_bracketed(self, price, target):
        calls = 0

        def make(noise):
            nonlocal calls
            calls += 1
            return pure_dp(epsilon=price(noise))

        found = calibrate(make, epsilon=target, delta=0.0)
        assert price(found) <= target < price(found * (1 - 1.1e-4))
        assert calls <= 60

    def test_impossible(self):
        with pytest.raises(BudgetError, match="no parameter up to"):
            calibrate(lambda s: approximate_dp(epsilon=1 / s, delta=1e-5), epsilon=1.0, delta=1e-6)
        with pytest.raises(BudgetError, match=r"no parameter up to 2 meets epsilon=0\.1"):
            calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=0.1, delta=1e-6, high=2.0)

        with pytest.raises(BudgetError, match="give a delta above 0"):
            calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=3.0, delta=0.0)

    def test_low_end_is_enough(self):
        assert calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=5.0, delta=1e-6, low=3.0) == 3.0

    @pytest.mark.parametrize(
        "wrong", [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 1.0}, {"delta": -0.1}, {"relative": 0.0}, {"low": 0.0}]
    )
    def test_bad_arguments(self, wrong):
        arguments = {"epsilon": 1.0, "delta": 1e-6, **wrong}
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            calibrate(lambda s: gaussian(noise_multiplier=s), **arguments)

    def test_an_optimal_price_is_computed_once(self, monkeypatch):
        """Five deltas lead to the noise, of which each takes a tenth of the time of an epsilon."""
        asked, near = [], []
        epsilon, approximate = GuaranteePrice.epsilon, GuaranteePrice.approximate_delta
        monkeypatch.setattr(GuaranteePrice, "epsilon", lambda self, delta: asked.append(1) or epsilon(self, delta))
        monkeypatch.setattr(GuaranteePrice, "approximate_delta", lambda self, e: near.append(1) or approximate(self, e))
        noise = calibrate(lambda s: best_of(gaussian(noise_multiplier=s), LAW), epsilon=2.0, delta=1e-6)
        assert best_of(gaussian(noise_multiplier=noise), LAW).epsilon(1e-6) <= 2.0
        assert len(asked) == 1
        assert len(near) <= 7

    @pytest.mark.full
    def test_an_approximation_that_is_too_small_is_not_trusted(self, monkeypatch):
        """What is returned has been priced in full, whatever led there."""
        monkeypatch.setattr(GuaranteePrice, "approximate_delta", lambda *_: 1e-12)
        noise = calibrate(lambda s: best_of(gaussian(noise_multiplier=s), LAW), epsilon=2.0, delta=1e-6)
        assert best_of(gaussian(noise_multiplier=noise), LAW).epsilon(1e-6) <= 2.0

    def test_an_approximation_that_is_too_large_is_not_trusted(self, monkeypatch):
        monkeypatch.setattr(
            GuaranteePrice, "approximate_delta", lambda self, e: min(1.0, 1.1 * self.guarantee.delta(e))
        )
        noise = calibrate(
            lambda s: best_of(gaussian(noise_multiplier=s), LAW, bound="profile"), epsilon=2.0, delta=1e-6
        )
        assert best_of(gaussian(noise_multiplier=noise * (1 - 1.1e-4)), LAW, bound="profile").epsilon(1e-6) > 2.0

    def test_the_place_is_between_two_that_were_seen(self):
        asked = {}
        unsafe, safe = ParameterSearch(2.0).bracket(lambda x: asked.setdefault(x, 3.0 / x), 1.0)
        assert unsafe < 1.5 <= safe <= unsafe * (1 + 1e-4)
        assert (asked[unsafe] > 2.0, asked[safe] <= 2.0) == (True, True)
        assert ParameterSearch(2.0, lowest=5.0).bracket(lambda x: 3.0 / x, 5.0) == (0.0, 5.0)

    def test_a_delta_is_a_price_that_falls_with_the_noise(self):
        values = [steady(delta) for delta in (0.0, 1e-300, 1e-6, 0.5, 1.0, 2.0)]
        assert values == sorted(values)
        assert (values[0], values[-1]) == (0.0, math.inf)
