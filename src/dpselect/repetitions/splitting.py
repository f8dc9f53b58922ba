"""How the K runs of a search fall on finitely many candidates, so that a cluster can start all of them at once.

K runs of a mixture are, for each candidate, a count: given K the counts are multinomial. Only for a Poisson K are they
independent of one another, so that every candidate may draw its own without knowing of the others (Kingman 1993,
section 1.2; a count that splits into independent parts is Poisson: Rao and Rubin 1964). Independent
negative binomial counts in particular are not one negative binomial search: they leak more than it is priced at.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, expect, integer, number
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions.law import Repetitions
from dpselect.repetitions.poisson import Poisson

__all__ = ["independent_counts", "split_counts"]

Weights = int | Sequence[int | float | Fraction]


def split_counts(law: Repetitions, weights: Weights, *, random: RandomSource | None = None) -> NDArray[np.int64]:
    """Draw K, then on which candidates the K runs fall: one count for each candidate, which add up to K.

    `weights` is the number of candidates, all alike, or a weight for each: numbers of at least 0, not all 0, taken at
    their exact values and fixed without the data (you must ensure this). Run every candidate as often as its count
    says, in any order and anywhere, and release the best run only: that is best-of-K of the mixture, at its price. The
    counts are as secret as K.

    Exact up to the law's own sampling; takes time that grows with K. Raises `ArgumentError` for bad weights.

    >>> from dpselect.randomness import keyed_source
    >>> from dpselect.repetitions import Fixed
    >>> counts = split_counts(Fixed(count=5), [1, 0, 3], random=keyed_source(1))
    >>> int(counts.sum()), int(counts[1])
    (5, 0)
    """
    expect("law", law, Repetitions)
    totals = list(accumulate(_whole(weights)))
    source = resolve(random)
    counts = np.zeros(len(totals), dtype=np.int64)
    for _ in range(law.sample(source)):
        counts[bisect_right(totals, source.below(totals[-1]))] += 1
    return counts


def independent_counts(law: Repetitions, weights: Weights) -> tuple[Poisson, ...]:
    """The laws by which candidates draw their own counts, independently, so that together they are one draw of K.

    `weights` as for `split_counts`, each above 0. The means are rounded down, so that their sum is at most the mean
    that was priced.

    Raises `ArgumentError` for every law but `Poisson`: draw with `split_counts` instead.

    >>> [part.mean for part in independent_counts(Poisson(mean=6.0), [1, 2])]
    [2.0, 4.0]
    """
    expect("law", law, Repetitions)
    if not isinstance(law, Poisson):
        raise ArgumentError(
            f"the counts of candidates are independent for the Poisson law only, not for {law.law_name}: the sum of "
            "independent counts is another law, which costs more; use split_counts"
        )
    whole = _whole(weights)
    if min(whole) == 0:
        raise ArgumentError("weights must be above 0")
    mean, total = Fraction(law.mean), sum(whole)
    return tuple(Poisson(mean=number("mean", mean * weight / total, rounding="down")) for weight in whole)


def _whole(weights: Weights) -> list[int]:
    """The same proportions in integers."""
    if isinstance(weights, int):
        return [1] * integer("weights", weights, at_least=1, at_most=1 << 24)
    try:
        exact = [Fraction(weight) for weight in weights]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("weights must be finite numbers") from None
    if not exact or min(exact) < 0 or not any(exact):
        raise ArgumentError("weights must be at least 0 and not all 0")
    common = math.lcm(*(weight.denominator for weight in exact))
    return [int(weight * common) for weight in exact]
