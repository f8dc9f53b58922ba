"""The lower bound for quasi-concave optimisation (Cohen et al. 2022, Algorithm 6): interior points on words."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.interior_points import RisingAndFalling, maximize_quasi_concave
from dpselect.randomness import RandomSource, keyed_source


@dataclass(frozen=True)
class LowerBoundReduction:
    """Algorithm 6: an interior-point problem on {1..places} as one on words of that length over {1..base}.

    The words are in lexicographic order, coded as integers 0 .. base**places - 1. A mechanism for them with 2n
    samples becomes one for the places with n samples and the same cumulative privacy (Claim 4.6), as
    `points` keeps the cumulative distance for every secret word; an interior point is turned back into one except
    where the mechanism guesses a letter of the secret word, with probability at most 1/(base - 2).
    """

    places: int
    base: int

    def secret_word(self, random: RandomSource) -> tuple[int, ...]:
        """Letters 2 .. base - 1, independent and uniform."""
        return tuple(2 + random.below(self.base - 2) for _ in range(self.places))

    def points(self, data: Sequence[int], word: tuple[int, ...]) -> list[int]:
        """Two words for each x: the secret one up to place x, then only the first letter, or only the last."""
        return sorted(
            self.code(tuple(letter if place <= x else rest for place, letter in enumerate(word, 1)))
            for x in data
            for rest in (1, self.base)
        )

    def answer(self, code: int, word: tuple[int, ...]) -> int:
        """How many letters the word with this code has in common with the secret one from the first on."""
        found = self.word(code)
        return next((place for place in range(self.places) if found[place] != word[place]), self.places)

    def code(self, word: tuple[int, ...]) -> int:
        """The place of a word in lexicographic order, from 0."""
        total = 0
        for letter in word:
            total = total * self.base + letter - 1
        return total

    def word(self, code: int) -> tuple[int, ...]:
        """The word with this code."""
        letters = []
        for _ in range(self.places):
            code, letter = divmod(code, self.base)
            letters.append(letter + 1)
        return tuple(reversed(letters))


def cumulative_distance(one, other, places):
    return max(abs(sum(x <= z for x in one) - sum(x <= z for x in other)) for z in range(places))


def test_the_lower_bound_reduction_keeps_cumulative_distances():
    reduction, source = LowerBoundReduction(places=4, base=5), keyed_source(56)
    multisets = list(itertools.combinations_with_replacement(range(1, 5), 2))
    for _ in range(3):
        word = reduction.secret_word(source)
        assert set(word) <= {2, 3, 4}
        for one in multisets:
            for other in multisets:
                words = reduction.points(one, word), reduction.points(other, word)
                assert len(words[0]) == 4
                places = sorted({*words[0], *words[1]})
                moved = max(abs(bisect_right(words[0], y) - bisect_right(words[1], y)) for y in places)
                assert moved <= cumulative_distance(one, other, 5)


def test_the_lower_bound_reduction_turns_interior_points_back():
    """The common prefix of an interior word is at least the least place; it is beyond the largest only where the next
    letter of the secret word was guessed."""
    reduction, source = LowerBoundReduction(places=5, base=6), keyed_source(57)
    rng = np.random.default_rng(57)
    for _ in range(200):
        data = sorted(rng.integers(1, 6, 3).tolist())
        word = reduction.secret_word(source)
        points = reduction.points(data, word)
        for code in {points[0], points[-1], *(points[0] + source.below(points[-1] - points[0] + 1) for _ in range(5))}:
            found = reduction.answer(code, word)
            assert found >= data[0]
            letters = reduction.word(code)
            assert reduction.code(letters) == code
            assert found <= data[-1] or letters[data[-1]] == word[data[-1]]
        # words of the instance itself never guess
        assert all(data[0] <= reduction.answer(code, word) <= data[-1] for code in points)


@pytest.mark.statistical
def test_a_mechanism_on_words_becomes_one_on_places():
    """The first step of the paper's tower: places 1..10, words over {1..40}. With 60 rows (120 words) the exponential
    mechanism on words finds an interior point with probability above 1 - 40**10 exp(-60) > 1 - 2e-10, and a guess has
    probability at most 1/38: more than 18 failures in 100 trials have probability below 1e-9."""
    reduction, source = LowerBoundReduction(places=10, base=40), keyed_source(58)
    assert reduction.code((40,) * 10) == 40**10 - 1
    rng, failures = np.random.default_rng(58), 0
    for _ in range(100):
        data = rng.integers(3, 8, 60).tolist()
        word = reduction.secret_word(source)
        points = reduction.points(data, word)
        score = RisingAndFalling(lambda y, p=points: bisect_right(p, y), lambda y, p=points: len(p) - bisect_left(p, y))
        code = maximize_quasi_concave(score, lower=0, upper=40**10 - 1, epsilon=2.0, random=source).value
        failures += not min(data) <= reduction.answer(code, word) <= max(data)
    assert failures <= 18


def test_the_arithmetic_of_the_lower_bound():
    assert 10 * math.exp(-0.2) * (1 / 6 - 1 / 50) == pytest.approx(1.20080510, abs=5e-9)
    assert all(Fraction(1, 10 * m * m - 2) <= Fraction(1, 3 * m * (m - 1)) for m in range(2, 1000))
