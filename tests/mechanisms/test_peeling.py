"""The k largest noisy scores: the distribution of peeling, edges, and the price of k ranges."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import (
    TopK,
    bounded_range,
    peeling,
)
from dpselect.mechanisms.noisy_ranking import FEW_BITS, Contender, ranking
from dpselect.mechanisms.scores import CHUNK
from dpselect.privacy import compose
from dpselect.randomness import keyed_source
from dpselect.randomness.lazy import LazyGumbel
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


def test_top_k_has_a_lower_end_near_the_upper_one() -> None:
    lower, upper = TopK(count=10, sensitivity=1.0, epsilon=1.0).guarantee.epsilon_bracket(1e-4)
    assert 0.98 * upper < lower <= upper
    assert TopK(count=20_000, sensitivity=1.0, epsilon=1.0).guarantee.lower_profile is None


def contenders(words: list[int], scores: list[float], best: float, rate: float) -> np.ndarray:
    """What a draw has after its pass over the scores."""
    found = np.empty(len(words), peeling._CONTENDERS)
    found["index"], found["word"], found["score"] = range(len(words)), words, scores
    found["estimate"] = peeling._estimates(found["score"], found["word"], best, rate)
    return found


@pytest.mark.parametrize("size", [0.0, 1e9])
def test_errors_cover_what_the_estimates_are_off(size: float) -> None:
    """Words of every size down to those that say too little, with the least and the largest bits that may follow."""
    middle = keyed_source("errors").words(80).tolist()
    near_ends = [FEW_BITS << k for k in range(44)] + [(1 << 64) - (FEW_BITS << k) - 1 for k in range(44)]
    words = middle + near_ends
    scores = size * np.random.default_rng(1).normal(size=len(words))
    rate, best = 0.7, float(scores.max())
    found = contenders(words, scores.tolist(), best, rate)
    errors = peeling._errors(found, best, rate)
    for one, error in zip(found, errors, strict=True):
        centre = Fraction(rate) * (Fraction(float(one["score"])) - Fraction(best))
        for more in (0, (1 << 64) - 1):
            low, high = LazyGumbel(keyed_source(1), int(one["word"]) << 64 | more, 128).enclosure(64)
            assert abs(centre + low - Fraction(float(one["estimate"]))) <= error
            assert abs(centre + high - Fraction(float(one["estimate"]))) <= error


def test_near_ties_are_ranked_as_real_numbers() -> None:
    """Scores that make up for the noise, but for less than a float64 tells: the order and the next bits are exact's."""
    rate, exact_rate, together = 0.7, Fraction(0.7), 0
    for trial in range(60):
        words = keyed_source(f"ties {trial}").words(5).tolist()
        noise = peeling._estimates(np.zeros(5), np.array(words, dtype=np.uint64), 0.0, rate)
        scores = ((noise.min() - noise) / rate).tolist()
        scores[4] -= 1e-9 * (trial % 2)
        found = contenders(words, scores, 0.0, rate)
        here, there = keyed_source(trial), keyed_source(trial)
        noises = [LazyGumbel(there, word, 64) for word in words]
        exact = [Contender(i, exact_rate * Fraction(score), noises[i]) for i, score in enumerate(scores)]
        count = trial % 5 + 1
        ranked = peeling._ranked(found, exact_rate, 0.0, count, here)
        assert ranked == ranking(exact, count)
        assert here.bits(64) == there.bits(64)
        together += ranked != np.argsort(-found["estimate"], kind="stable")[:count].tolist()
    assert together > 5  # what float64 alone gets wrong


def test_estimates_decide_unless_they_are_close(monkeypatch) -> None:
    """No exact ranking for two thousand of 20,000 scores, so that the time does not grow with its square."""
    monkeypatch.setattr(peeling, "ranking", None)
    scores = np.random.default_rng(1).random(20_000)
    drawn = TopK(count=2000, sensitivity=1.0, epsilon=2.0).draw(scores, random=keyed_source(1))
    assert len(set(drawn)) == 2000
