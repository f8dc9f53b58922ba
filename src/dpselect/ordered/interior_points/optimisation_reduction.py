"""Quasi-concave optimisation and interior points: the reductions of Cohen et al. (2022), Section 4.

`interior_point_instance` turns a score into a multiset whose interior points are nearly optimal (the proof of Theorem
4.2); neighbouring scores give multisets of cumulative distance at most two, so a mechanism for interior points that is
private in that sense optimises. `LowerBoundReduction` is Algorithm 6, which shows that much better is impossible; it is
a device for tests.

Two data sets of the same size have cumulative distance d if #{x <= z} differs by at most d at every z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.scores import as_vector
from dpselect.ordered.interior_points.interior_point import cumulative_interior_point
from dpselect.ordered.interior_points.quasi_concave import quasi_concave_guarantee, tamed_scores
from dpselect.ordered.interior_points.tree_log import TreeLogParameters
from dpselect.ordered.interior_points.tree_log_tuning import cumulative_rows, tuned_cumulative
from dpselect.ordered.order_statistics.intervals import exponential_interior_point
from dpselect.privacy import Adjacency, Release, Spender, paid
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = ["LowerBoundReduction", "interior_point_instance", "maximize_by_interior_point", "reduction_error"]

Finder = Literal["exponential", "cumulative"]

_DISTANCE = 2
"""The cumulative distance of the instances of neighbouring scores."""


def interior_point_instance(starts: Sequence[int], scores: Sequence[int] | NDArray[np.int64], error: int) -> list[int]:
    """`error` places, sorted, such that the score at every place between the extremes is above the largest - error.

    Place z occurs max(f'(z) - f'(z-1), 0) times for f'(z) = max(0, f(z) - largest + error), so that the number of
    places up to z is the largest f' so far. `scores[i]` holds from starts[i] to before starts[i+1]. If the score moves
    by at most one everywhere the largest does too, f' by at most two, and the results have cumulative distance <= 2.

    The proof first tests whether the score is nearly constant. That is not needed: the argument above has no use for
    it (and it would cost budget).

    >>> interior_point_instance([0, 4, 7, 9], [0, 3, 5, 1], 4)
    [4, 4, 7, 7]
    """
    values = [int(score) for score in scores]
    largest = max(values)
    found: list[int] = []
    for start, value in zip(starts, values, strict=True):
        found += [int(start)] * max(0, value - largest + error - len(found))
    return found


def reduction_error(
    *,
    places: SupportsIndex,
    epsilon: float,
    delta: float = 0.0,
    failure_probability: float = 0.05,
    method: Finder = "exponential",
) -> int:
    """The error n of `maximize_by_interior_point`: the points that it needs for an interior point.

    "exponential": ceil(8 log(places/failure_probability)/epsilon). Some place has n/2 of the instance's n places on
    either side; each of the places outside weighs 1 against exp(epsilon n/8).

    >>> reduction_error(places=2**16, epsilon=1.0)
    113
    """
    return _plan(integer("places", places, at_least=1), epsilon, delta, failure_probability, method)[0]


def _plan(
    places: int, epsilon: float, delta: float, failure: float, method: Finder
) -> tuple[int, TreeLogParameters | None]:
    """The number of points, and the parameters of Algorithm 8 for it."""
    epsilon = number("epsilon", epsilon, at_least=2.0**-30, at_most=2.0**20)
    delta = number("delta", delta, at_least=0.0, below=1.0)
    failure = number("failure_probability", failure, above=0.0, below=1.0)
    if method not in get_args(Finder):
        raise ArgumentError(f"method must be one of {get_args(Finder)}, got {method!r}")
    if method == "exponential":
        return max(1, math.ceil(8.0 * (math.log(places) - math.log(failure)) / epsilon * (1.0 + 2.0**-40))), None
    if not 0.0 < delta < failure / 4.0:
        raise ArgumentError("delta must be above 0 and below a quarter of failure_probability for 'cumulative'")
    bits = _bits(places)
    parameters = tuned_cumulative(bits, epsilon, delta, failure, _DISTANCE)
    return cumulative_rows(parameters, bits, failure), parameters


def _bits(places: int) -> int:
    return max((places - 1).bit_length(), 1)


def maximize_by_interior_point(
    starts: Sequence[int],
    scores: ArrayLike,
    *,
    upper: SupportsIndex,
    epsilon: float,
    delta: float = 0.0,
    failure_probability: float = 0.05,
    method: Finder = "exponential",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    spender: Spender | None = None,
    label: str = "quasi-concave",
    random: RandomSource | None = None,
) -> Release:
    """Maximise a whole-number quasi-concave score of sensitivity one through an interior point (Theorem 4.2).

    The interior point is found by the exponential mechanism, whose score moves by at most the cumulative distance, two:
    rate = epsilon/4; or by Algorithm 8 ("cumulative"), which spends delta and may find none (None). It is here to
    compare: `maximize_over_runs` has a quarter of the error of the first and less than that of the second for
    anything below 2**3000 places.

    The caller must ensure that the score is quasi-concave and moves by at most one between neighbours at every place.
    The starts and scores, `spender` and `label` are those of `maximize_over_runs`; scores are rounded down to whole
    numbers, which keeps them within one of each other, and cut off at 2**53 (NaN at the lower end): none of them makes
    it fail. Raises `ArgumentError` for starts that are not increasing up to `upper` and for parameters.

    >>> from dpselect.randomness import keyed_source
    >>> maximize_by_interior_point([0, 5, 6], [0, 900, 1], upper=10**6, epsilon=2.0, random=keyed_source(1)).value
    5
    """
    last = integer("upper", upper)
    places = [int(start) for start in starts]
    increasing = all(a < b for a, b in pairwise([*places, last + 1]))
    values = as_vector("scores", scores)
    if not places or values.shape != (len(places),) or not increasing:
        raise ArgumentError("starts must increase up to upper, with one score for each")
    first, size = places[0], last - places[0] + 1
    error, parameters = _plan(size, epsilon, delta, failure_probability, method)
    guarantee = quasi_concave_guarantee(epsilon=epsilon, adjacency=adjacency)
    source = resolve(random)
    points = [
        place - first
        for place in interior_point_instance(places, np.floor(tamed_scores(values)).astype(np.int64), error)
    ]
    if parameters is not None:
        # neighbouring scores are what is at this distance, whatever makes two data sets neighbours
        found = cumulative_interior_point(
            points,
            bits=_bits(size),
            parameters=parameters,
            distance=_DISTANCE,
            adjacency=guarantee.adjacency,
            spender=spender,
            label=label,
            random=source,
        )
        return replace(found, value=None if found.value is None else first + min(int(found.value), size - 1))

    def run() -> int:
        rate = epsilon_used(guarantee.pure_epsilon) / (2 * _DISTANCE)
        place = exponential_interior_point(points, lower=0, upper=size - 1, epsilon=rate, monotonic=True, random=source)
        return first + int(place)

    return paid(run, guarantee, spender=spender, label=label, replayable=source.replayable)


@dataclass(frozen=True)
class LowerBoundReduction:
    """Algorithm 6: an interior-point problem on {1..places} as one on words of that length over {1..base}.

    The words are in lexicographic order, coded as whole numbers 0 .. base**places - 1. A mechanism for them with 2n
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
