"""Proposals that draw one of several candidates with fixed weights. Candidates may be made only when drawn."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, SupportsIndex

from dpselect.accounting import mixture
from dpselect.capabilities import Indexable
from dpselect.errors import ArgumentError, integer, number
from dpselect.randomness import RandomSource
from dpselect.selection.candidates import Candidate, PrivateCandidate, check_candidate

__all__ = ["Candidates", "private_mixture", "uniform_mixture", "weighted_mixture"]

Candidates = Sequence[Candidate] | Callable[[int], Candidate]
"""Candidates by their index: a sequence, or a function that makes the one that was drawn."""


def uniform_mixture(candidates: Candidates, *, count: SupportsIndex | None = None) -> Candidate:
    """Return a proposal that runs one of several candidates, drawn uniformly each time, with replacement.

    Its guarantee is any that covers every candidate. (`private_mixture` gives the average, which is smaller.)

    Args:
        candidates: a sequence, or with `count` a function `index -> candidate` for the indices 0 .. count - 1. A
            sequence is indexed and never iterated over. So one that makes its members on demand makes only those drawn.
            Making a candidate is part of the run: if it raises, that run failed.
        count: the number of candidates, for a function. None for a sequence.

    Raises:
        ArgumentError: if there is no candidate.
        TypeError: if `candidates` is neither a sequence of callables, nor a function with a `count`.

    >>> from dpselect.randomness import keyed_source
    >>> uniform_mixture([lambda random: (1.0, "a")])(keyed_source(1))
    (1.0, 'a')
    >>> many = uniform_mixture(lambda index: lambda random: (1.0, index), count=100_000)
    >>> 0 <= many(keyed_source(1))[1] < 100_000
    True
    """
    make, size = _indexed(candidates, count)

    def proposal(random: RandomSource) -> tuple[float, Any]:
        return make(random.below(size))(random)

    return proposal


def weighted_mixture(
    candidates: Candidates, weights: Sequence[float | Fraction], *, count: SupportsIndex | None = None
) -> Candidate:
    """Return a proposal that runs one of several candidates, with probability proportional to its weight, exactly.

    Args:
        candidates: as for `uniform_mixture`.
        weights: one for each candidate, fixed without the data (you must ensure this). They are integers, fractions or
            doubles, each taken at its exact value, at least 0 and not all 0.
        count: the number of candidates, for a function. None for a sequence.

    Raises:
        ArgumentError: if a weight does not fit, there is another number of them, or there is no candidate.
        TypeError: if `candidates` is neither a sequence of callables, nor a function with a `count`.

    >>> from dpselect.randomness import keyed_source
    >>> coins = [lambda random: (1.0, "never"), lambda random: (1.0, "always")]
    >>> weighted_mixture(coins, [0, 0.3])(keyed_source(1))
    (1.0, 'always')
    """
    make, size = _indexed(candidates, count)
    totals = list(accumulate(_whole_weights(weights, size)))

    def proposal(random: RandomSource) -> tuple[float, Any]:
        return make(bisect_right(totals, random.below(totals[-1])))(random)

    return proposal


def private_mixture(
    candidates: Sequence[PrivateCandidate], weights: Sequence[float | Fraction] | None = None
) -> PrivateCandidate:
    """Return the mixture of candidates that have guarantees, with the average of these.

    The guarantee is `dpselect.accounting.mixture`. It holds with the index of the candidate released, so an output may
    name it.

    Args:
        candidates: a sequence of `PrivateCandidate`, with equal adjacencies.
        weights: one for each candidate, above 0, fixed without the data (you must ensure this). None for equal ones.

    Raises:
        AdjacencyError: if the adjacencies differ.
        ArgumentError: if a weight does not fit, there is another number of them, or a candidate would always fail.
        TypeError: if one is not a `PrivateCandidate`.

    >>> from dpselect.privacy import zcdp
    >>> quiet, loud = (PrivateCandidate(lambda random: (0.0, None), zcdp(rho=rho)) for rho in (0.05, 0.2))
    >>> round(private_mixture([quiet, loud]).guarantee.renyi(order=8), 5)
    1.50101
    """
    if not all(isinstance(candidate, PrivateCandidate) for candidate in candidates):
        raise TypeError("candidates must be PrivateCandidate, each with its guarantee")
    for candidate in candidates:
        check_candidate(candidate)
    given = [1] * len(candidates) if weights is None else weights
    return PrivateCandidate(
        weighted_mixture(candidates, given), mixture([c.guarantee for c in candidates], [float(w) for w in given])
    )


def _indexed(candidates: Candidates, count: SupportsIndex | None) -> tuple[Callable[[int], Candidate], int]:
    if count is not None:
        if not callable(candidates):
            raise TypeError("candidates must be a function of an index when count is given")
        return candidates, integer("count", count, at_least=1)
    if callable(candidates) or not isinstance(candidates, Indexable):
        raise TypeError("candidates must be a sequence, or a function of an index together with count")
    if not len(candidates):
        raise ArgumentError("candidates must hold at least one candidate")
    if isinstance(candidates, (list, tuple)) and not all(map(callable, candidates)):
        raise TypeError("candidates must be callables: candidate(random) -> (score, output)")
    return candidates.__getitem__, len(candidates)


def _whole_weights(weights: Sequence[float | Fraction], size: int) -> list[int]:
    if len(weights) != size:
        raise ArgumentError(f"weights must be one for each of the {size} candidates, got {len(weights)}")
    parsed = [number("weights", weight, at_least=0.0) for weight in weights]
    exact = [w if isinstance(w, Fraction) else Fraction(p) for w, p in zip(weights, parsed, strict=True)]
    unit = math.lcm(*(w.denominator for w in exact))
    whole = [int(w * unit) for w in exact]
    if not any(whole):
        raise ArgumentError("weights must not all be 0")
    return whole
