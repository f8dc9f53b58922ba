"""How the K runs of a search fall on finitely many candidates, so that a cluster can start all of them at once.

K runs of a mixture are, for each candidate, a count: given K the counts are multinomial. Only for a Poisson K are they
independent, so that every candidate may draw its own without knowing of the others (Kingman 1993, section 1.2).
Conversely, a count that splits into independent parts is Poisson (Rao and Rubin 1964). Independent
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
from dpselect.repetitions.distribution import Repetitions
from dpselect.repetitions.poisson import Poisson

__all__ = ["independent_counts", "split_counts"]

Weights = int | Sequence[int | float | Fraction]


def split_counts(law: Repetitions, weights: Weights, *, random: RandomSource | None = None) -> NDArray[np.int64]:
    """Draw K and return on which candidates the K runs fall.

    Run every candidate as often as its count says, in any order and anywhere, and release only the best run. That is
    best-of-K of the mixture, at its price. The counts are as secret as K. They are exact up to the distribution's own
    sampling, and take time that grows with K.

    Args:
        law: the distribution of K.
        weights: the number of candidates, all alike, up to 2**24, or a weight for each. Weights are at least 0 and not
            all 0, and are taken at their exact values. You must ensure that they are fixed without the data.
        random: the source of the draws. None, the default, takes a fresh one from system entropy.

    Returns:
        One count for each candidate, int64 of shape (candidates,). They add up to K.

    Raises:
        ArgumentError: if the weights do not fit.
        TypeError: if `law` is not a distribution or `random` is not a `RandomSource`.

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
    """Return the distributions by which candidates draw their own counts, independently.

    Together the counts are one draw of K. The means are rounded down, so that their sum is at most the mean that was
    priced.

    Args:
        law: the distribution of K, a `Poisson`.
        weights: the number of candidates, all alike, or a weight above 0 for each, as for `split_counts`. You must
            ensure that they are fixed without the data.

    Returns:
        One distribution for each candidate, in the order of the weights.

    Raises:
        ArgumentError: if `law` is not `Poisson` (draw with `split_counts` instead), or the weights do not fit.
        TypeError: if `law` is not a distribution.

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
