"""Choosing among K candidates by their ranks on the blocks, for the price of one question."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpselect.adaptive.block_plan import BlockPlan, exponential_loss, splitting_blocks
from dpselect.adaptive.certificate import no_promise
from dpselect.adaptive.transfer import gaussian_mu_of_range, range_of_gaussian_mu
from dpselect.errors import ArgumentError, expect, integer
from dpselect.mechanisms import ExponentialMechanism, bounded_range
from dpselect.privacy import Adjacency, Guarantee
from dpselect.randomness import RandomSource

__all__ = ["ChoiceError", "choice_error", "choice_guarantee", "draw_choice", "summed_ranks"]


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
    """The guarantee of one choice for a row."""
    if plan.mechanism == "splitting":
        return no_promise()
    return bounded_range(epsilon=choice_epsilon(plan), adjacency=Adjacency.REPLACE_ONE)


def draw_choice(ranks: NDArray[np.int64], blocks: int, plan: BlockPlan, random: RandomSource) -> int:
    """The position drawn, or the first of the best if the plan has no noise. A block moves a sum by 2 (K - 1) at most.

    Integers up to 2**53 are scores without rounding (`ArgumentError` beyond).
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
    return int(mechanism.draw(ranks.astype(np.float64), random=random))


@dataclass(frozen=True, kw_only=True)
class ChoiceError:
    """How far a choice is from the best of its candidates, in win shares. See `choice_error`.

    The win share of a candidate is the probability that it beats another one of the candidates, drawn at random, on a
    block, ties counting half. The blocks are those that there are, or new ones.
    """

    candidates: int
    failure_probability: float
    on_blocks: float
    on_fresh_rows: float


def choice_error(plan: BlockPlan, *, candidates: int) -> ChoiceError:
    """Return what is proved about all choices of an analysis with this plan.

    With probability at least 1 - plan.failure_probability every choice has a win share within `on_blocks` of the best
    on the blocks. With the same probability every choice has one within `on_fresh_rows` of the best on new rows. Both
    together fail with at most twice that probability. 1.0 or more says nothing: you need more blocks, or fewer
    questions.

    *Proof.* On the blocks: the best has weight one and each of the others, d behind, exp(-L d) with L = epsilon m/2. So
    a choice is d behind with odds (K-1) exp(-L d) at most (McSherry, Talwar 2007). Hence E(behind - d)_+ is at most
    W((K-1) exp(-L d - 1))/L. On new rows: let f be (1 + win of the chosen - win of the best on new rows)/2, in [0, 1].
    Take f in the proof of the transfer bound. Its mean over the blocks is at least c = (1 - d)/2 less half of that
    shortfall. Its population mean is r or less where the choice is 1 - 2r behind. So c beta - k W/(2L) > h(r beta)
    makes that impossible with probability beta. QED

    Source: docs/theory/generalisation.md, Theorem 10.

    Args:
        plan: the public plan of the analysis, from `plan_blocks`, at the number of blocks that you have.
        candidates: K, how many candidates a choice has at most, an integer of at least 2. Public.

    Returns:
        A `ChoiceError` with both distances as win shares.

    Raises:
        TypeError: if `plan` is not a `BlockPlan`, or `candidates` is not a number.
        ArgumentError: if `candidates` is out of range.

    >>> from dpselect.adaptive.blocks import plan_blocks
    >>> plan = plan_blocks(queries=10, grid_size=1001, failure_probability=0.05).at(20_000)
    >>> found = choice_error(plan, candidates=8)
    >>> round(found.on_blocks, 3), round(found.on_fresh_rows, 3)
    (0.158, 0.176)
    """
    expect("plan", plan, BlockPlan)
    others = integer("candidates", candidates, at_least=2, at_most=1 << 1000) - 1
    k, beta = plan.queries, plan.failure_probability
    if plan.mechanism == "splitting":
        each = splitting_blocks(k, beta, plan.rank)
        fresh = 2.0 * math.sqrt(math.log(2.0 * candidates * k / beta) / (2.0 * each))  # Hoeffding for each of them
        return ChoiceError(candidates=candidates, failure_probability=beta, on_blocks=0.0, on_fresh_rows=fresh)
    each_epsilon = choice_epsilon(plan)
    exponent = each_epsilon * plan.blocks / 2.0
    mu = plan.mu if plan.noise is not None else math.sqrt(k) * gaussian_mu_of_range(each_epsilon)
    on_blocks = (math.log(others) - math.log(beta / k) + math.log1p(-beta / k)) / exponent
    behind = np.linspace(0.0, 1.0, 4001)[1:-1]
    lost = k * exponential_loss(math.log(others) - exponent * behind) / (2.0 * exponent)
    kept = np.maximum((1.0 - behind) / 2.0 * beta - lost, 0.0)
    rank = float(np.max(ndtr(ndtri(kept) - mu))) / beta * (1.0 - 1e-9)
    return ChoiceError(
        candidates=candidates,
        failure_probability=beta,
        on_blocks=max(on_blocks, 0.0) * (1.0 + 1e-9),
        on_fresh_rows=1.0 - 2.0 * rank,
    )
