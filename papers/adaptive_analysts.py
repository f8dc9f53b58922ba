"""Adaptive analysts on populations without any signal, and the ways of answering that they attack.

Everything happens at the level of block values. An answer is a function of the block values; the truth is always zero
(one half for shares), so that whatever is claimed beyond the spread of an estimator is over-fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from dpselect.adaptive.blocks import BlockPlan
from dpselect.adaptive.grids import uniform_grid
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.numerics.search import Array
from dpselect.ordered.domains import Domain
from dpselect.randomness import RandomSource

__all__ = [
    "QUARTILE",
    "Answer",
    "Claimed",
    "block_grid",
    "certified_answer",
    "exact_median",
    "expected_claim",
    "plain_mean",
    "private_median",
    "random_walk",
    "sign_aggregation",
    "votes",
]

Answer = Callable[[Array], float]
QUARTILE: Final = 0.6744897501960817
"""Half the inter-quartile range of a standard normal."""


@dataclass(frozen=True)
class Claimed:
    """What an analyst claims in the end; whether that is within the quartiles, and which share of the others was."""

    claim: float
    final: bool
    interim: float

    @property
    def valid(self) -> bool:
        """Whether every answer was within the quartiles of its estimator."""
        return self.final and self.interim == 1.0


# ---- ways of answering


def plain_mean(values: Array) -> float:
    """The whole sample."""
    return float(values.mean())


def exact_median(size: int) -> Answer:
    """The median of the block values without noise, rounded to `block_grid`."""
    step = 0.04 / math.sqrt(size)
    return lambda values: round(float(np.median(values)) / step) * step


def block_grid(size: int) -> Domain:
    """201 points within four deviations of a mean of `size` standard normal rows."""
    step = 0.04 / math.sqrt(size)
    return uniform_grid(-100.0 * step, 100.0 * step, step)


def private_median(grid: Domain, *, rho: float, queries: int, random: RandomSource) -> Answer:
    """The exponential median on a grid, with `rho` of concentrated privacy for all questions together."""
    epsilon = math.sqrt(8.0 * rho / queries)
    return lambda values: float(ExponentialMedian(epsilon=epsilon)(values, grid, random=random).value)


def certified_answer(plan: BlockPlan, grid: Domain, random: RandomSource) -> Answer:
    """The mechanism of a plan."""
    median = ExponentialMedian(epsilon=plan.epsilon) if plan.noise is None else SearchMedian(noise=plan.noise)
    return lambda values: float(median(values, grid, random=random).value)


# ---- analysts


def expected_claim(features: int, rows: int) -> float:
    """What `sign_aggregation` is told by the whole sample, on average: sqrt(2k/(pi n))."""
    return math.sqrt(2.0 * features / (math.pi * rows))


def sign_aggregation(rng: np.random.Generator, answer: Answer, blocks: int, size: int, features: int) -> Claimed:
    """Freedman's paradox: ask each of `features` correlations, then the mean along the signs of all answers.

    A block value is a mean of `size` standard normals.
    """
    half, total, valid = QUARTILE / math.sqrt(size), np.zeros(blocks), 0
    for _ in range(features):
        values = rng.normal(0.0, 1.0 / math.sqrt(size), blocks)
        found = answer(values)
        valid += abs(found) < half
        total += np.sign(found) * values
    claim = answer(total / math.sqrt(features))
    return Claimed(claim, abs(claim) < half, valid / features)


def random_walk(rng: np.random.Generator, answer: Answer, blocks: int, size: int, features: int) -> Claimed:
    """Walk to where the last answer was larger: each question mixes the best direction so far with a fresh one."""
    half, spread, valid = QUARTILE / math.sqrt(size), 1.0 / math.sqrt(size), 0
    best = rng.normal(0.0, spread, blocks)
    best_answer = answer(best)
    for _ in range(features - 1):
        tried = math.cos(0.5) * best + math.sin(0.5) * rng.normal(0.0, spread, blocks)
        found = answer(tried)
        valid += abs(found) < half
        if found > best_answer:
            best, best_answer = tried, found
    claim = answer(best)
    return Claimed(claim, abs(claim) < half, valid / max(features - 1, 1))


def votes(rng: np.random.Generator, answer: Answer, blocks: int, size: int, features: int) -> Claimed:
    """Ask how often each feature (a sign) agrees with the label, then the accuracy of the vote of all features.

    A block value is a share of `size` rows, minus one half.
    """
    law = binom(size, 0.5)

    def inside(value: float) -> bool:
        count = (value + 0.5) * size
        return bool(law.cdf(count + 1e-9) > 0.25 and law.cdf(math.ceil(count - 1e-9) - 1) < 0.75)

    total, valid = np.zeros((blocks, size), dtype=np.int32), 0
    for _ in range(features):
        agree = rng.integers(0, 2, (blocks, size), dtype=np.int8)
        found = answer(agree.mean(axis=1) - 0.5)
        valid += inside(found)
        total += (2 * agree - 1) * (1 if found >= 0.0 else -1)
    right = (total > 0) + 0.5 * (total == 0)
    claim = answer(right.mean(axis=1) - 0.5)
    return Claimed(claim + 0.5, inside(claim), valid / features)
