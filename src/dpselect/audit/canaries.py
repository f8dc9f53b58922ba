"""Canaries: rows that coins put into the data, and guesses which of them are in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.randomness import RandomSource, resolve

__all__ = ["guess", "include", "right_guesses"]


def include(count: int, random: RandomSource | None = None) -> NDArray[np.bool_]:
    """Fair, independent coins: which of `count` canaries are put into the data. Shape (count,).

    The auditor's secret until the guesses stand: a score that sees it makes the audit worthless.

    >>> include(4).shape
    (4,)
    """
    return resolve(random).bernoulli(0.5, integer("count", count, at_least=1))


def guess(scores: ArrayLike, *, inside: int, outside: int) -> NDArray[np.int8]:
    """Guesses from scores, larger meaning "more likely in": 1 (in), -1 (out), 0 (no guess). Shape (canaries,).

    The `inside` largest are guessed to be in and the `outside` smallest out. Equal scores in the order of the
    canaries. Fix both numbers before there are scores: the largest of several audits is no audit.

    Raises `ArgumentError` when there are more guesses than canaries, or none, or a score that is not a number.

    >>> guess([0.3, -1.0, 2.0, 0.5], inside=1, outside=2).tolist()
    [-1, -1, 1, 0]
    """
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1 or np.any(np.isnan(found)):
        raise ArgumentError("scores must be one number a canary, none of them NaN")
    inside = integer("inside", inside, at_least=0)
    outside = integer("outside", outside, at_least=0)
    if not 1 <= inside + outside <= found.size:
        raise ArgumentError(f"inside + outside must be from 1 to the number of canaries, {found.size}")
    order = np.argsort(found, kind="stable")
    guesses = np.zeros(found.size, dtype=np.int8)
    guesses[order[found.size - inside :]] = 1
    guesses[order[:outside]] = -1
    return guesses


def right_guesses(guesses: ArrayLike, included: ArrayLike) -> int:
    """How many guesses hit.

    >>> right_guesses([1, -1, 0, 1], [True, False, True, False])
    2
    """
    said, truth = np.asarray(guesses), np.asarray(included, dtype=bool)
    return int(np.count_nonzero(said == np.where(truth, 1, -1)))
