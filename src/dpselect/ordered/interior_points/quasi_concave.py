"""Private maximisation of a quasi-concave score over an ordered set of any size, by few evaluations.

A score is quasi-concave when it rises up to some place and falls after it. The exponential mechanism on it is pure, and
its error is 2 log(T/beta)/epsilon for T places. The reduction of Theorem 4.2 (Cohen et al. 2022) has a smaller error
only for T beyond 2**3000 (see `optimisation_reduction` in this folder). Once the peak of such a score is known, you
need not know the score everywhere: a place that was looked at bounds the scores of everything further out.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.mechanisms import ExponentialMechanism, Mechanism
from dpselect.mechanisms.scores import as_vector
from dpselect.numerics.search import first_true
from dpselect.ordered.order_statistics.equal_scores import draw_from_runs, relative_coin, weight_at_least
from dpselect.ordered.public_domain import PublicDomain
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

__all__ = ["QuasiConcave", "RisingAndFalling", "ScoreRuns", "maximize_quasi_concave", "quasi_concave_hull"]

Score = Callable[[int], SupportsFloat]

_LOOK_AT_ALL = 1 << 16
_LARGEST = float(1 << 53)


@dataclass(frozen=True, repr=False)
class RisingAndFalling:
    """The score min(rising(z), falling(z)) of a function that never falls and one that never rises.

    Every quasi-concave score has this form. Its peak is where the two functions cross, and bisection finds it.

    Args:
        rising: a function from an integer place to a number. It never falls as the place grows (you must ensure this).
        falling: a function of the same kind that never rises (you must ensure this).

    >>> rows = [2, 3, 3, 8]
    >>> score = RisingAndFalling(lambda z: sum(x <= z for x in rows), lambda z: sum(x >= z for x in rows))
    >>> score(3), score.find_peak(0, 9)
    (3, 3)
    """

    rising: Score
    falling: Score

    def __call__(self, place: int) -> SupportsFloat:
        """The smaller of the two."""
        return min(self.rising(place), self.falling(place), key=float)

    def find_peak(self, lower: int, upper: int) -> int:
        """A place from lower to upper where the score is largest: the first one that has risen enough, or the last."""
        lower = integer("lower", lower)
        upper = integer("upper", upper, at_least=lower)
        found = first_true(lambda place: float(self.rising(place)) >= float(self.falling(place)), lower, upper - 1)
        high = upper if found is None else found
        # before the crossing the score is the rising part, from it on the falling one
        return high if high == lower else max(high - 1, high, key=lambda place: _tame(self(place)))


@dataclass(frozen=True, repr=False, eq=False)
class ScoreRuns:
    """A score that is given by its values on runs of places, such as one that depends on ranks only.

    The score is `scores[i]` on starts[i], ..., starts[i+1] - 1, and the last run ends at `upper`.

    Args:
        starts: the first place of each run: increasing integers, up to `upper`. The first start is public. The other
            starts, and how many there are, may depend on the data.
        scores: one number for each run. Scores are clipped to magnitude 2**53, and NaN counts as the lowest.
        upper: the last place, an integer, public.
        lengths: how many places each run has. It is computed, not given.

    Raises:
        ArgumentError: if the starts do not increase up to `upper`, or there is not one score for each.
        TypeError: if the scores are not numbers.

    >>> ScoreRuns([0, 5, 6], [0, 90, 1], upper=9).lengths
    [5, 1, 4]
    """

    starts: Any
    scores: ArrayLike
    upper: SupportsIndex
    lengths: list[int] = field(init=False)

    def __post_init__(self) -> None:
        starts, values = [int(start) for start in self.starts], as_vector("scores", self.scores)
        ends = [*starts[1:], integer("upper", self.upper) + 1]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)] if starts else []
        if not starts or values.shape != (len(starts),) or min(lengths) < 1:
            raise ArgumentError("starts must increase up to upper, with one score for each")
        tamed = np.clip(np.nan_to_num(values, nan=-_LARGEST), -_LARGEST, _LARGEST)
        for name, value in (("starts", starts), ("scores", tamed), ("lengths", lengths)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class QuasiConcave(Mechanism):
    """An integer z in [lower, upper] with probability proportional to exp(rate * score(z)), exactly.

    rate = epsilon/(2 sensitivity), or epsilon/sensitivity for monotonic scores. With T places the score is less than
    log(T/beta)/rate below the largest one except with probability beta (McSherry, Talwar 2007, Theorem 6).

    You must ensure three things for every data set. The score rises up to `peak` and falls after it (not strictly:
    plateaus are fine). It is the same whenever it is asked for. It moves by at most `sensitivity` between neighbours,
    at every place and with its rounding. The guarantee rests on all three. `ScoreRuns` need not be quasi-concave.

    Attributes:
        monotonic: whether all scores move in the same direction between neighbours; rarely true under replace-one.

    You run it on a score with public places. The score is a function from an integer to a number, a `RisingAndFalling`
    if it is the smaller of two monotone functions, or `ScoreRuns`. Numbers are clipped to magnitude 2**53, and NaN
    counts as the lowest. Places are integers of any size, and those of `ScoreRuns` are known.

    The places are 0 .. domain_size - 1, or from lower to upper. The `peak` is a place where the score is largest, and
    may depend on the data. `RisingAndFalling` needs no peak. At most 65,536 places need none either: all of them are
    looked at, and then the score need not be quasi-concave. Any other score needs its peak, as no search finds it in an
    arbitrary score. A plateau does not tell you on which side the only better place is.

    It takes about 3 log2(T) evaluations at most. Their number and their places depend on the data. Raises
    `ArgumentError` or `TypeError` for parameters. An exception that the score raises passes through and may tell of the
    data.

    >>> from dpselect.randomness import keyed_source
    >>> mechanism = QuasiConcave(epsilon=2.0)
    >>> mechanism.guarantee.epsilon(delta=0)
    2.0
    >>> mechanism(ScoreRuns([0, 5, 6], [0, 90, 1], upper=10**30), random=keyed_source(1)).value
    5
    """

    epsilon: float
    sensitivity: float = 1.0
    monotonic: bool = False
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        _ = self._exponential  # checks the parameters

    @property
    def _exponential(self) -> ExponentialMechanism:
        return ExponentialMechanism(
            sensitivity=self.sensitivity, epsilon=self.epsilon, monotonic=self.monotonic, adjacency=self.adjacency
        )

    @property
    def guarantee(self) -> Guarantee:
        """Range epsilon, and so pure epsilon."""
        mechanism = self._exponential
        return replace(mechanism.guarantee, terms=mechanism.terms("quasi-concave"))

    @options_of(PublicDomain)
    def prepared(
        self, score: Score | ScoreRuns, *, peak: SupportsIndex | None = None, **places: Any
    ) -> Callable[[RandomSource], int]:
        """The choice among the places."""
        rate = self._exponential.rate
        if isinstance(score, ScoreRuns):
            if peak is not None or places:
                raise ArgumentError("peak and places: those of ScoreRuns are known")
            values = np.asarray(score.scores)
            return lambda random: score.starts[0] + draw_from_runs(score.lengths, values, rate=rate, random=random)
        named = {name: None if value is None else integer(name, value) for name, value in places.items()}
        domain = PublicDomain(**named).of_type(np.dtype(object))
        first, last = domain.decode(0), domain.decode(domain.size - 1)
        if not isinstance(first, int):
            raise ArgumentError("granularity: places are integers, so leave it out and scale them in the score")
        if not callable(score):
            raise TypeError("score must be a function of one integer")
        top = None if peak is None else integer("peak", peak, at_least=first, at_most=last)
        if top is None and not isinstance(score, RisingAndFalling) and domain.size > _LOOK_AT_ALL:
            raise ArgumentError("peak must be given for more than 65,536 places, or the score as RisingAndFalling")

        def run(random: RandomSource) -> int:
            found = score.find_peak(first, last) if top is None and isinstance(score, RisingAndFalling) else top
            if found is not None:
                return _draw(score, first, last, found, rate, random)
            scores = np.array([_tame(score(place)) for place in range(first, last + 1)])
            return int(first + draw_from_runs(np.ones(domain.size, dtype=np.uint64), scores, rate=rate, random=random))

        return run


@options_of(QuasiConcave, QuasiConcave.prepared, PublicDomain)
def maximize_quasi_concave(
    score: Score | ScoreRuns,
    *,
    spender: Spender | None = None,
    label: str = "quasi-concave",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return a private place, an integer, where a quasi-concave score is nearly largest.

    It runs `QuasiConcave` on the score, and its documentation lists the conditions that you must ensure.

    Args:
        score: a function from an integer to a number, a `RisingAndFalling` or a `ScoreRuns`. It holds the data.
        spender: pays the cost before the score is asked for. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: the attributes of `QuasiConcave`: `epsilon`, `sensitivity`, `monotonic` and `adjacency`. The public
            places: `domain_size`, or `lower` and `upper`. And `peak`, a place where the score is largest, which may
            depend on the data. `ScoreRuns` need no places and no peak. `RisingAndFalling` needs no peak, nor do at most
            65,536 places.

    Returns:
        A `Release` with the place as `value`, and with the guarantee, pure epsilon.

    Raises:
        ArgumentError: if a parameter is out of range, a peak is missing, or `ScoreRuns` come with places or a peak.
        TypeError: if `score` is not a function, or a parameter is of another type.
        BudgetError: if the spender refuses.

    An exception that the score raises passes through and may tell of the data.

    >>> from dpselect.randomness import keyed_source
    >>> rows = [10**17, 10**17 + 5, 3 * 10**17] * 100
    >>> score = RisingAndFalling(lambda z: sum(x <= z for x in rows), lambda z: sum(x >= z for x in rows))
    >>> release = maximize_quasi_concave(score, lower=0, upper=2**60, epsilon=1.0, random=keyed_source(1))
    >>> 10**17 <= release.value <= 3 * 10**17
    True
    """
    own = {name: options.pop(name) for name in QuasiConcave.__dataclass_fields__ if name in options}
    return QuasiConcave(**own)(score, spender=spender, label=label, random=random, **options)


def _tame(score: SupportsFloat) -> float:
    value = float(score)
    return -_LARGEST if math.isnan(value) else min(max(value, -_LARGEST), _LARGEST)


def _draw(score: Score, first: int, last: int, peak: int, rate: Fraction, random: RandomSource) -> int:
    """Rejection from a staircase above the weights, which gets a new step wherever a proposal is rejected.

    Regardless of the staircase, and however it came about, a proposal that is kept has the right law.
    """
    best = _tame(score(peak))
    scale = (last - first + 1).bit_length() + 64
    # stretches that end at, or begin at, the place that bounds their scores
    stretches = [(first, peak, best), (peak + 1, last, best)]

    def gap(value: float) -> Fraction:
        return rate * (Fraction(best) - Fraction(min(value, best)))

    weights = [weight_at_least(float(gap(bound)), scale) for _, _, bound in stretches]
    while True:
        running = list(accumulate((b - a + 1) * w for (a, b, _), w in zip(stretches, weights, strict=True)))
        which = bisect_right(running, random.below(running[-1]))
        a, b, bound = stretches[which]
        place = a + random.below(b - a + 1)
        value = min(_tame(score(place)), bound)
        if relative_coin(gap(value), weights[which], scale, random):
            return place
        parts = (
            [(a, place, value), (place + 1, b, bound)] if place <= peak else [(a, place - 1, bound), (place, b, value)]
        )
        stretches[which : which + 1] = parts
        weights[which : which + 1] = [weight_at_least(float(gap(part[2])), scale) for part in parts]


def quasi_concave_hull(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the least quasi-concave score above this one: min(largest so far, largest from here on).

    Maxima and minima of scores move no more than the scores do. So the hull has the same sensitivity, and is monotonic
    if the scores are. A place with hull h is between two places with scores of at least h.

    Args:
        scores: one number for each place, in the order of the places.

    Returns:
        The hull, an array with one number for each place.

    Raises:
        ArgumentError: if the scores have more than one dimension.
        TypeError: if the scores are not numbers.

    >>> quasi_concave_hull([0, 2, 1, 3, 0]).tolist()
    [0.0, 2.0, 2.0, 3.0, 0.0]
    """
    values = as_vector("scores", scores)
    if values.ndim != 1:
        raise ArgumentError(f"scores must be one number for each place, got an array of shape {values.shape}")
    return np.minimum(np.maximum.accumulate(values), np.maximum.accumulate(values[::-1])[::-1])
