"""Quasi-concave optimisation through interior points: the reduction of Cohen et al. (2022), Theorem 4.2.

`interior_point_instance` turns a score into a multiset whose interior points are nearly optimal. Neighbouring scores
give multisets of cumulative distance at most two. So a mechanism for interior points that is private in that sense
optimises.

Two data sets of the same size have cumulative distance d if #{x <= z} differs by at most d at every z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import Mechanism
from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import CumulativeInteriorPoint
from dpselect.ordered.interior_points.quasi_concave import QuasiConcave, ScoreRuns
from dpselect.ordered.interior_points.search_tree import code_bits
from dpselect.ordered.interior_points.tree_log import TreeLogParameters
from dpselect.ordered.interior_points.tree_log_tuning import cumulative_rows, tuned_cumulative
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__ = ["QuasiConcaveByInteriorPoint", "interior_point_instance"]

Finder = Literal["exponential", "cumulative"]

_DISTANCE = 2
"""The cumulative distance of the instances of neighbouring scores."""


def interior_point_instance(starts: Codes, scores: Codes | NDArray[np.int64], error: int) -> list[int]:
    """`error` places, sorted, such that the score at every place between the extremes is above the largest - error.

    Place z occurs max(f'(z) - f'(z-1), 0) times for f'(z) = max(0, f(z) - largest + error). So the number of places up
    to z is the largest f' so far. `scores[i]` holds from starts[i] to before starts[i+1]. If the score moves by at most
    one everywhere, the largest does too, and f' moves by at most two. Then the results have cumulative distance <= 2.

    The proof first tests whether the score is nearly constant. That is not needed: the argument above has no use for
    it (and it would cost budget). Source: Cohen et al. 2022, Theorem 4.2.

    >>> interior_point_instance([0, 4, 7, 9], [0, 3, 5, 1], 4)
    [4, 4, 7, 7]
    """
    values = [int(score) for score in scores]
    largest = max(values)
    found: list[int] = []
    for start, value in zip(starts, values, strict=True):
        found += [int(start)] * max(0, value - largest + error - len(found))
    return found


@dataclass(frozen=True, kw_only=True)
class QuasiConcaveByInteriorPoint(Mechanism):
    """Maximises an integer quasi-concave score of sensitivity one through an interior point (Theorem 4.2).

    The method "exponential" finds the interior point by the exponential mechanism. Its score moves by at most the
    cumulative distance, two: rate = epsilon/4. The method "cumulative" finds it by Algorithm 8, which spends delta and
    may find none (None). The class is here for comparison. `QuasiConcave` has a quarter of the error of the first, and
    less error than the second for anything below 2**3000 places.

    You run it on `ScoreRuns`. It rounds them down to integers, which keeps them within one of each other. You must
    ensure that the score is quasi-concave and moves by at most one between neighbours at every place.

    Attributes:
        places: how many there are, for what is asked before there is a score.

    >>> from dpselect.randomness import keyed_source
    >>> mechanism = QuasiConcaveByInteriorPoint(epsilon=1.0, places=2**16)
    >>> mechanism.error, mechanism(ScoreRuns([0, 5, 6], [0, 900, 1], upper=10**6), random=keyed_source(1)).value
    (113, 5)
    """

    epsilon: float
    delta: float = 0.0
    failure_probability: float = 0.05
    method: Finder = "exponential"
    places: int | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        self._parsed(
            epsilon=number("epsilon", self.epsilon, at_least=2.0**-30, at_most=2.0**20, rounding="down"),
            delta=number("delta", self.delta, at_least=0.0, below=1.0, rounding="down"),
            failure_probability=number("failure_probability", self.failure_probability, above=0.0, below=1.0),
        )
        if self.method not in get_args(Finder):
            said = f"method must be one of {get_args(Finder)}, got {self.method!r}"
            raise ArgumentError(said + write_one_of("method", self.method, get_args(Finder)))
        if self.method == "cumulative" and not 0.0 < self.delta < self.failure_probability / 4.0:
            raise ArgumentError("delta must be above 0 and below a quarter of failure_probability for 'cumulative'")

    @property
    def _size(self) -> int:
        if self.places is None:
            raise ArgumentError("places must be given before there is a score")
        return integer("places", self.places, at_least=1)

    @cached_property
    def _cumulative(self) -> TreeLogParameters:
        """The parameters of Algorithm 8."""
        return tuned_cumulative(code_bits(self._size), self.epsilon, self.delta, self.failure_probability, _DISTANCE)

    @property
    def error(self) -> int:
        """How far below the largest score the chosen one may be: the points that it needs for an interior point.

        "exponential": ceil(8 log(places/failure_probability)/epsilon). Some place has n/2 of the instance's n places on
        either side. Each of the places outside weighs 1 against exp(epsilon n/8).
        """
        if self.method == "cumulative":
            return cumulative_rows(self._cumulative, code_bits(self._size), self.failure_probability)
        logs = math.log(self._size) - math.log(self.failure_probability)
        return max(1, math.ceil(8.0 * logs / self.epsilon * (1.0 + 2.0**-40)))

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, or (epsilon, delta): neighbouring scores are at the distance, for any adjacency."""
        if self.method == "exponential":
            return QuasiConcave(epsilon=self.epsilon, adjacency=self.adjacency).guarantee
        return self._finder.guarantee

    @property
    def _finder(self) -> CumulativeInteriorPoint:
        bits, parameters = code_bits(self._size), self._cumulative
        return CumulativeInteriorPoint(bits=bits, parameters=parameters, distance=_DISTANCE, adjacency=self.adjacency)

    def bind(self, *data: Any) -> tuple[QuasiConcaveByInteriorPoint, tuple[ScoreRuns]]:
        """With the number of places."""
        (runs,) = data
        return replace(self, places=sum(runs.lengths)), (runs,)

    def prepared(self, score: ScoreRuns) -> Callable[[RandomSource], int | None]:
        """The choice among the places of the runs."""
        first, size = score.starts[0], sum(score.lengths)
        values = np.floor(np.asarray(score.scores)).astype(np.int64)
        points = [place - first for place in interior_point_instance(score.starts, values, self.error)]

        def run(random: RandomSource) -> int | None:
            if self.method == "exponential":
                rate = epsilon_used(self.epsilon) / (2 * _DISTANCE)
                return int(first + SecretDraws(random).interior(points, size, rate))
            found = self._finder.draw(points, random=random)
            return None if found is None else int(first + min(int(found), size - 1))

        return run
