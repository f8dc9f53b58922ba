"""Choosing among K candidates by their ranks on the blocks, for the price of one question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive.blocks import BlockPlan
from dpselect.adaptive.certificate import no_promise
from dpselect.adaptive.transfer import range_of_gaussian_mu
from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range import bounded_range
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.privacy import Adjacency, Guarantee
from dpselect.randomness import RandomSource

__all__ = ["choice_guarantee", "draw_choice", "summed_ranks"]


def summed_ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """For values of shape (candidates, blocks): over the blocks, twice the candidates beaten plus those tied.

    One block contributes between 0 and 2 (K - 1). NaN is below everything.

    >>> summed_ranks(np.array([[1.0, 3.0], [2.0, np.nan], [2.0, 1.0]]))
    array([4, 3, 5])
    """
    filled = np.where(np.isnan(values), -np.inf, values)
    ordered = np.sort(filled, axis=0)
    total = np.zeros(len(filled), dtype=np.int64)
    for block in range(filled.shape[1]):
        column = ordered[:, block]
        below = np.searchsorted(column, filled[:, block], side="left")
        up_to = np.searchsorted(column, filled[:, block], side="right")
        total += below + up_to - 1
    return total


def choice_epsilon(plan: BlockPlan) -> float:
    """The range that costs what one answer costs: the same epsilon, or the one within the search's Gaussian mu."""
    return plan.epsilon if plan.noise is None else min(range_of_gaussian_mu(plan.noise.mu), 50.0)


def choice_guarantee(plan: BlockPlan) -> Guarantee:
    """What one choice promises to a row."""
    if plan.mechanism == "splitting":
        return no_promise()
    return bounded_range(epsilon=choice_epsilon(plan), adjacency=Adjacency.REPLACE_ONE)


def draw_choice(ranks: NDArray[np.int64], blocks: int, plan: BlockPlan, random: RandomSource) -> int:
    """The position drawn; the first of the best when the plan has no noise. A block moves a sum by 2 (K - 1) at most.

    Whole numbers up to 2**53 are scores without rounding (`ArgumentError` beyond).
    """
    spread = 2 * (len(ranks) - 1)
    if spread * blocks > 1 << 53:
        raise ArgumentError("there are too many candidates for this many blocks")
    if not spread:
        return 0
    if plan.mechanism == "splitting":
        return int(np.argmax(ranks))
    mechanism = ExponentialMechanism(
        sensitivity=float(spread), epsilon=choice_epsilon(plan), adjacency=Adjacency.REPLACE_ONE
    )
    return mechanism.select(ranks.astype(np.float64), random=random)
