"""The choosing mechanism: an exact audit, and its draws."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from dpselect.errors import AdjacencyError
from dpselect.mechanisms import (
    ChoosingMechanism,
)
from dpselect.randomness import keyed_source
from dpselect.testing.exact import hockey_stick
from tests.mechanisms.test_scores import FALSE_ALARM, p_value


def choosing_law(counts: np.ndarray, mechanism: ChoosingMechanism) -> np.ndarray:
    """None first, then the candidates."""
    half = mechanism.epsilon / 2.0
    gap = half * (mechanism.threshold - counts.max())
    passes = 0.5 * math.exp(-gap) if gap >= 0 else 1.0 - 0.5 * math.exp(gap)
    weights = np.where(counts >= 1, np.exp(half * (counts - counts.max())), 0.0)
    if not weights.sum() or counts.max() < 1:
        return np.concatenate(([1.0], np.zeros(len(counts))))
    return np.concatenate(([1.0 - passes], passes * weights / weights.sum()))


@pytest.mark.theorem(
    "Beimel, Nissim, Stemmer 2013, Lemma 3.7",
    exact=True,
    loose="both steps are charged their worst at once",
)
@pytest.mark.parametrize(("growth", "delta"), [(1, 1e-3), (3, 1e-3), (2, 0.05)])
def test_choosing_mechanism_exact_audit(growth: int, delta: float) -> None:
    """Hockey-stick divergence at epsilon, both directions, over levels and numbers of candidates that join."""
    mechanism = ChoosingMechanism(growth=growth, epsilon=0.8, delta=delta)
    worst = 0.0
    for top in range(int(mechanism.threshold) + 12):
        for others, crowd in itertools.product((0, 1, top // 2, max(top - 1, 0), top), (0, 1, 50)):
            counts = np.array([top] + [others] * crowd + [0] * growth, dtype=float)
            for raised in (slice(0, 1), slice(len(counts) - growth, None), slice(0, growth)):
                more = counts.copy()
                more[raised] += 1.0
                p, r = choosing_law(counts, mechanism), choosing_law(more, mechanism)
                for a, b in ((p, r), (r, p)):
                    worst = max(worst, float(hockey_stick(a, b, np.array([0.8])).max()))
    assert worst <= delta
    assert worst > delta / 100
    assert mechanism.guarantee.epsilon(delta=delta) == 0.8
    assert mechanism.guarantee.epsilon(delta=delta / 2) == math.inf


@pytest.mark.full
def test_choosing_mechanism_draws() -> None:
    mechanism = ChoosingMechanism(growth=2, epsilon=2.0, delta=0.05)
    counts, random = np.array([5, 7, 0, 6]), keyed_source("choosing")
    found = Counter(mechanism.draw(counts, random=random) for _ in range(3000))
    law = choosing_law(counts.astype(float), mechanism)
    assert p_value(found, {None: law[0], **dict(enumerate(law[1:]))}, 3000) > FALSE_ALARM
    for odd in ([0, 0], [math.nan, -math.inf], [-3.0], [0.99]):
        assert ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-3).draw(odd) is None
    with pytest.raises(AdjacencyError):
        ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-6, adjacency="replace_one")
