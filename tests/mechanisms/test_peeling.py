"""The k largest noisy scores: the distribution of peeling, edges, and the price of k ranges."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    TopK,
    bounded_range,
)
from dpselect.mechanisms.scores import CHUNK
from dpselect.privacy import compose
from dpselect.randomness import keyed_source
from tests.audits.score_laws import top_k_law
from tests.mechanisms.scripted_words import Scripted
from tests.mechanisms.test_scores import FALSE_ALARM, p_value


@pytest.mark.full
def test_top_k_follows_peeling() -> None:
    """Durfee, Rogers (2019), Lemma 4.2: 1,500 draws of ordered pairs."""
    q, draws = [0.0, 2.0, 3.0, -1.0], 1500
    random = keyed_source("top")
    found = Counter(tuple(TopK(count=2, sensitivity=1.0, epsilon=2.0).draw(q, random=random)) for _ in range(draws))
    assert p_value(found, top_k_law(q, 0.5, 2), draws) > FALSE_ALARM


def test_top_k_edges() -> None:
    random = keyed_source(1)
    q = np.array([0.0, -math.inf, math.nan, 5.0])
    for _ in range(30):
        drawn = TopK(count=4, sensitivity=1.0, epsilon=1.0).draw(q, random=random)
        assert set(drawn[:2]) == {0, 3}
        assert set(drawn[2:]) == {1, 2}
    drawn = TopK(count=100, sensitivity=1.0, epsilon=1000.0).draw(np.arange(3 * CHUNK) * 100.0, random=random)
    assert drawn == list(range(3 * CHUNK - 1, 3 * CHUNK - 101, -1))
    with pytest.raises(ArgumentError, match="count"):
        TopK(count=2, sensitivity=1.0, epsilon=1.0).draw([0.0])


@pytest.mark.parametrize(
    ("words", "scores", "best"),
    [([0, 1 << 63], [-1e6, 0.0], 1), ([0, 1 << 63], [1e6, 0.0], 0), ([(1 << 64) - 1, 1 << 63], [1e6, 0.0], 0)],
)
def test_words_that_say_little_are_ranked_exactly(monkeypatch, words, scores, best) -> None:
    """In chunks of one, so that a chunk after it does not take such a word for a certain winner or loser."""
    monkeypatch.setattr("dpselect.mechanisms.scores.CHUNK", 1)
    assert TopK(count=1, sensitivity=1.0, epsilon=2.0)(scores, random=Scripted("top", words)).value == [best]


def test_top_k_guarantee_composes_ranges() -> None:
    g = TopK(count=10, sensitivity=1.0, epsilon=1.0).guarantee
    assert 1.0 <= g.epsilon(delta=0) <= 1.0 + 1e-12
    assert g.epsilon(delta=1e-6) <= compose(*[bounded_range(epsilon=0.1)] * 10).epsilon(delta=1e-6) * (1 + 1e-9)
