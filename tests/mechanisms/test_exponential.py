"""The exponential mechanism: its exact profile, and proposals that waste little."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpselect.mechanisms import (
    ExponentialMechanism,
    exponential,
    exponential_mechanism,
)
from dpselect.mechanisms.scores import read_scores
from dpselect.randomness import keyed_source
from dpselect.testing.exact import hockey_stick, renyi_divergence
from tests.audits.score_laws import exponential_law
from tests.selection.work_cases import shapes

ROUNDING = 1e-12


@pytest.mark.theorem("Durfee, Rogers 2019, Lemma 4.2", "Dong, Durfee, Rogers 2020, Lemma 3.2", exact=True, sharp=True)
@pytest.mark.parametrize("monotonic", [False, True])
def test_exponential_profile_is_exact(monotonic: bool) -> None:
    """Hockey-stick and Renyi divergences of two candidates over all weights: covered, and attained to 1e-4."""
    epsilon, rate = 1.3, 1.3 if monotonic else 0.65
    gaps = np.linspace(-8.0, 8.0, 4001)
    q = np.stack([gaps, np.zeros_like(gaps)], axis=-1)
    moved = q + (np.array([1.0, 0.0]) if monotonic else np.array([1.0, -1.0]))
    p, r = exponential_law(q, rate), exponential_law(moved, rate)
    g = ExponentialMechanism(sensitivity=1.0, epsilon=epsilon, monotonic=monotonic).guarantee
    for e in (0.0, 0.2, 0.7, 1.1):
        worst = max(hockey_stick(p, r, np.array([e])).max(), hockey_stick(r, p, np.array([e])).max())
        assert worst <= g.delta(e) * (1 + ROUNDING)
        assert worst >= g.delta(e) * (1 - 1e-4)
    for order in (1.1, 2.0, 8.0, 64.0):
        worst = max(renyi_divergence(p, r, np.array([order])).max(), renyi_divergence(r, p, np.array([order])).max())
        assert worst <= g.renyi(order) * (1 + 1e-11)
        assert worst >= g.renyi(order) * (1 - 1e-4)


def test_proposal_weights_are_upper_bounds_and_waste_little() -> None:
    """What the exactness of the exponential mechanism rests on, checked with 60 digits."""
    generator = np.random.default_rng(1)
    q = np.concatenate([generator.uniform(-1, 0, 200) * 10.0**k for k in range(-8, 4)] + [np.zeros(1)])
    rate = Fraction(7, 3)
    ((_, weights),) = exponential._proposals(read_scores(q), rate)
    mpmath.mp.dps = 60
    for value, weight in zip(q.tolist(), weights.tolist(), strict=True):
        true = mpmath.exp(mpmath.mpf(value) * 7 / 3) * 2**37
        assert true <= weight <= true * (1 + mpmath.mpf(2) ** -28) + 1


@pytest.mark.cases(4)
@pytest.mark.parametrize("shape", shapes())
def test_proposals_of_the_exponential_mechanism(shape, monkeypatch):
    """At most 8 proposals on average for any scores: the mean of 150 geometric counts stays below 11.

    (Their deviation is at most 7.5, so that is five standard errors.)
    """
    proposed = []
    kept = exponential._kept
    monkeypatch.setattr(exponential, "_kept", lambda *arguments: proposed.append(1) or kept(*arguments))
    random, scores = keyed_source(shape), shapes()[shape]
    for _ in range(150):
        exponential_mechanism(scores, sensitivity=1.0, epsilon=2.0, random=random)
    assert len(proposed) / 150 < 11
