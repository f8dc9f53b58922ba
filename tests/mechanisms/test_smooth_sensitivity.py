"""Noise by smooth sensitivity: prices, a private base, and draws by an exact audit."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    SmoothSensitivityMechanism,
    smooth_sensitivity,
)
from dpselect.randomness import keyed_source
from tests.mechanisms.test_scores import FALSE_ALARM


def test_smooth_sensitivity_prices() -> None:
    """The exact price of random stopping: closed forms for several base prices, stopping probabilities and deltas."""

    def made(base: float, g: float, base_delta: float) -> SmoothSensitivityMechanism:
        return SmoothSensitivityMechanism(
            candidates=1, smoothness=0.0, base_epsilon=base, base_delta=base_delta, failure_probability=4.0 * g
        )

    for base, g, epsilon in (
        (1.0, 0.1, 2.59134408),
        (1.0, 0.01, 2.95370423),
        (0.1, 0.1, 0.263591285),
        (2.0, 0.1, 4.92037363),
    ):
        guarantee = made(base, g, 1e-10).guarantee
        assert guarantee.pure_epsilon == pytest.approx(epsilon, rel=1e-8)
        assert guarantee.pure_epsilon < 3.0 * base
    some = SmoothSensitivityMechanism(
        candidates=7, smoothness=0.0, base_epsilon=1.0, base_delta=1e-6, failure_probability=0.1
    )
    assert math.exp(some.shift) == pytest.approx(4 * 7 / 0.1**2)
    assert made(1.0, 0.01, 1e-10).guarantee.failure == pytest.approx(9.99999990e-9, rel=1e-8)
    assert made(0.5, 0.005, 1e-8).guarantee.failure == pytest.approx(1.99999602e-6, rel=1e-8)


@pytest.mark.full
def test_smooth_sensitivity_base_is_private() -> None:
    """One draw at the largest smoothness: exact hockey-stick divergence of the two shifted, stretched Laplace laws."""
    for base, base_delta in ((0.5, 1e-3), (1.0, 1e-2), (2.0, 1e-6)):
        m = SmoothSensitivityMechanism(candidates=3, smoothness=0.0, base_epsilon=base, base_delta=base_delta)
        eta, c, t = m.most_smooth, m.multiplier, m.shift
        for ratio, move in itertools.product((math.exp(eta), math.exp(-eta), 1.0), (-1.0, 0.0, 1.0)):
            s, other = 1.0, ratio
            gap = move * min(s, other) - t * c * (other - s)

            def density(x: np.ndarray, centre: float, scale: float) -> np.ndarray:
                return 0.5 * np.exp(-np.abs(x - centre) / scale) / scale

            x = np.linspace(-60 * c, 60 * c, 1_200_001)
            excess = np.maximum(density(x, 0.0, c * s) - math.exp(base) * density(x, gap, c * other), 0.0)
            assert np.sum(excess) * (x[1] - x[0]) <= base_delta * (1 + 1e-3)
        with pytest.raises(ArgumentError, match="smoothness"):
            SmoothSensitivityMechanism(candidates=3, smoothness=eta * 1.01, base_epsilon=base, base_delta=base_delta)


def test_smooth_sensitivity_noise_is_as_wide_as_each_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly `multiplier` times the candidate's own bound, and its score is lowered by `shift` times that."""
    seen: list[smooth_sensitivity.Contender] = []
    monkeypatch.setattr(smooth_sensitivity, "ranking", lambda contenders, _count: seen.extend(contenders) or [0])
    scores, bounds = np.array([0.0, 5.0, -1.0]), np.array([0.25, 1.0, 3.0])
    for seed in range(40):
        smooth_sensitivity._best_draw(scores, bounds, Fraction(7, 2), Fraction(1, 3), 8, keyed_source(f"w{seed}"))
    assert {each.index for each in seen} == {0, 1, 2}
    for each in seen:
        assert each.scale == Fraction(7, 2) * Fraction(bounds[each.index])
        assert each.centre == Fraction(scores[each.index]) - each.scale / 3


@pytest.mark.full
def test_smooth_sensitivity_draws() -> None:
    """Against a plain simulation of its law, 500 of each; and regardless of the numbers."""
    m = SmoothSensitivityMechanism(
        candidates=3, smoothness=1e-3, base_epsilon=1.0, base_delta=1e-3, failure_probability=0.9
    )
    q, s, random = np.array([0.0, 30.0, 60.0]), np.array([0.1, 1.0, 3.0]), keyed_source("smooth")
    draws = 500
    found = np.bincount([m.draw(q, s, random=random) for _ in range(draws)], minlength=3)
    generator, plain = np.random.default_rng(8), np.zeros(3)
    for _ in range(draws):
        i = generator.integers(3, size=generator.geometric(m.stop_probability))
        noisy = q[i] + m.multiplier * s[i] * (generator.laplace(size=len(i)) - m.shift)
        plain[i[np.argmax(noisy)]] += 1
    assert stats.chi2_contingency(np.stack([found, plain]) + 1).pvalue > FALSE_ALARM
    for odd_q, odd_s in (
        ([0, 0, 0], [0, 0, 0]),
        ([math.nan] * 3, [1, 1, 1]),
        ([1, 2, math.inf], [math.nan, math.inf, 0]),
    ):
        assert 0 <= m.draw(odd_q, odd_s, random=random) < 3
    assert (
        SmoothSensitivityMechanism(candidates=1, smoothness=0.0, base_epsilon=1.0, base_delta=1e-9).draw([7.0], [1.0])
        == 0
    )
