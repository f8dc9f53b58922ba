"""The large margin mechanism: margins and thresholds, an exact audit, and its draws."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    LargeMarginMechanism,
)
from dpselect.randomness import keyed_source
from tests.audits.broken_sparse_vectors import corrected
from tests.audits.score_laws import exponential_law
from tests.mechanisms.scores_cases import neighbour_moves
from tests.mechanisms.test_scores import FALSE_ALARM, p_value


def large_margin_law(q: np.ndarray, mechanism: LargeMarginMechanism) -> np.ndarray:
    """The sparse vector over the gaps by quadrature, then the exponential mechanism among that many."""
    order = np.argsort(-q, kind="stable")
    width = 2.0 * mechanism.sensitivity * (1 + 2.0**-20)
    search = corrected(mechanism.epsilon / 4.0 / width, mechanism.epsilon / 4.0 / width, 1)
    gaps = [q[order[0]] - q[order[r]] - mechanism.threshold(r) for r in mechanism.ranks]
    law, none = np.zeros(len(q)), 1.0
    for i, rank in [*enumerate(mechanism.ranks), (None, len(q))]:
        chosen = none if i is None else search.pattern_probability(gaps[: i + 1], [False] * i + [True])
        none -= 0.0 if i is None else chosen
        near = order[:rank]
        law[near] += chosen * exponential_law(q[near], mechanism.epsilon / 4.0 / mechanism.sensitivity)
    return law


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.2, 0.02])
def test_large_margin_mechanism_exact_audit(delta: float) -> None:
    """Hockey-stick divergence at epsilon for all neighbours of vectors around the margins."""
    mechanism = LargeMarginMechanism(candidates=4, sensitivity=1.0, epsilon=2.0, delta=delta)
    moves = neighbour_moves(4, monotonic=False)
    worst = 0.0
    for share in (0.0, 0.5, 0.8, 1.0, 1.3, 2.0):
        for pattern in ((0, 1, 1, 1), (0, 0, 1, 1), (0, 0.03, 1, 1.01)):
            q = -share * mechanism.threshold(2) * np.array(pattern)
            p = large_margin_law(q, mechanism)
            assert p.sum() == pytest.approx(1.0, abs=1e-9)
            moved = np.stack([large_margin_law(q + move, mechanism) for move in moves[::3]])
            for a, b in ((moved, np.broadcast_to(p, moved.shape)), (np.broadcast_to(p, moved.shape), moved)):
                worst = max(worst, float(np.maximum(a - math.exp(2.0) * b, 0.0).sum(axis=-1).max()))
    assert worst <= delta
    assert mechanism.guarantee.epsilon(delta=delta) == 2.0


@pytest.mark.full
def test_large_margin_draws() -> None:
    mechanism = LargeMarginMechanism(candidates=5, sensitivity=1.0, epsilon=4.0, delta=0.3)
    q = np.array([0.0, -40.0, -0.5, -41.0, -39.0])
    random = keyed_source("margin")
    found = Counter(mechanism.draw(q, random=random) for _ in range(2000))
    assert p_value(found, dict(enumerate(large_margin_law(q, mechanism))), 2000) > FALSE_ALARM
    for odd in ([-math.inf] * 5, [math.nan] * 5, [math.inf] * 5, [1e308, -1e308, 0, 0, 0]):
        assert 0 <= mechanism.draw(odd, random=random) < 5
    assert LargeMarginMechanism(candidates=1, sensitivity=1.0, epsilon=1.0, delta=1e-6).draw([3.0]) == 0
    with pytest.raises(ArgumentError, match="scores"):
        mechanism.draw([0.0])


def test_margins_and_thresholds_are_the_stated_numbers() -> None:
    mechanism = LargeMarginMechanism(candidates=5, sensitivity=0.5, epsilon=2.0, delta=0.01)
    assert mechanism.ranks == [1, 2, 4]
    assert LargeMarginMechanism(candidates=4, sensitivity=0.5, epsilon=2.0, delta=0.01).ranks == [1, 2]
    assert LargeMarginMechanism(candidates=1, sensitivity=0.5, epsilon=2.0, delta=0.01).ranks == []
    margin = 1.0 + math.log(2.0 * 4 / 0.01)
    assert mechanism.margin(4) == pytest.approx(margin, rel=2e-6)
    assert mechanism.margin(4) >= margin
    # threshold noise of scale 2 at tail delta/4 on one side, query noise of scale 4 at delta/(4 * 3)
    exact = margin + 2.0 * math.log(2.0 / 0.01) + 4.0 * math.log(2.0 * 3 / 0.01)
    assert exact <= mechanism.threshold(4) <= exact * (1 + 4e-6)
    assert (mechanism.guarantee.epsilon(delta=0.01), mechanism.guarantee.delta(2.0)) == (2.0, 0.01)
    assert mechanism.guarantee.terms["candidates"] == 5
    assert mechanism.draw([0.0, -1e9, 0.0, -1e9, -1e9], random=keyed_source(1)) in (0, 2)
