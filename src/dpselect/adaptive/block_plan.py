"""A plan for k median (or quantile) answers, and the check of its certificate from public numbers alone.

An answer that is off costs in two currencies, and the cheaper one counts. One is the probability that its share on
either side is too small, the other the expected shortfall of that share. `transfer.py` shows that the second is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

import numpy as np
from scipy.special import erfcx, lambertw, ndtr

from dpselect.adaptive.generalisation import paper_blocks, paper_epsilon
from dpselect.adaptive.median_bounds import search_steps
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.adaptive.transfer import certifies_interval, largest_mu, largest_rho
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, gaussian

__all__ = ["BlockPlan", "Mechanism", "exponential_loss", "normal_loss", "paper_plan", "splitting_blocks"]

Mechanism = Literal["binary_search", "exponential", "splitting"]
MEDIAN = Fraction(1, 2)
_SAFE = 1e-9


def normal_loss(x: Any) -> Array:
    """E(Z - x)_+ of a standard normal for x >= 0, without cancellation: phi(x) (1 - x Mills(x)). Rounded up."""
    x = np.asarray(x, dtype=np.float64)
    mills = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (1.0 - x * mills) * (1.0 + 1e-9))


def exponential_loss(log_odds: Any) -> Array:
    """W(X/e), X = exp(log_odds): the largest of t X exp(-t)/(1 + X exp(-t)) over t >= 0. Rounded up.

    With X the odds that the badness of an exponential median is B or more, 2/epsilon times it bounds E(badness - B)_+.
    """
    x: Any = np.exp(np.minimum(np.asarray(log_odds, dtype=np.float64), 700.0) - 1.0)
    return np.asarray(np.real(lambertw(x)) * (1.0 + 1e-9) + 1e-300)


def log_bad_odds(size: int, short: Any, exponent: Any) -> Array:
    """Log of the largest odds, over all data, that an exponential median has a share of 1/2 - short or less.

    `exponent` L = epsilon m/2: a badness of b m weighs exp(-L b). Either two neighbours share the middle and all others
    are as bad as that, or a single answer is better by as much as all others are worse.
    """
    short, exponent = np.asarray(short, dtype=np.float64), np.asarray(exponent, dtype=np.float64)
    alone = math.log(size - 1) - 2.0 * exponent * short
    return np.maximum(math.log((size - 2) / 2.0) - exponent * short, alone) if size > 2 else alone


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """A certified way to answer `queries` median questions from `blocks` blocks.

    Every answer is in qi(rank, upper_rank) of its estimator on new rows (1 - rank when None), all of them with
    probability at least 1 - failure_probability. One of two statements holds on any blocks. Either every answer has a
    share of more than `sample_rank` of the values on its left and of more than 1 - (2 quantile - sample_rank) on its
    right. This holds for all of them with probability at least 1 - accuracy_failure. Or their expected shortfall is at
    most accuracy_failure times the larger of the two shares. The transfer bound does the rest. `noise` belongs to the
    binary search, `epsilon` (per answer) to the exponential mechanism. Data splitting has neither.
    """

    mechanism: Mechanism
    queries: int
    grid_size: int
    rank: float
    failure_probability: float
    blocks: int
    sample_rank: float
    accuracy_failure: float
    noise: SearchNoise | None = None
    epsilon: float = 0.0
    accounting: Literal["optimal", "paper"] = "optimal"
    upper_rank: float | None = None
    quantile: Fraction = MEDIAN

    @property
    def interval(self) -> tuple[float, float]:
        """The ranks between which answers are on new rows."""
        return self.rank, 1.0 - self.rank if self.upper_rank is None else self.upper_rank

    @property
    def width(self) -> float:
        """How far the ranks of an answer on the blocks may be from `quantile`."""
        return float(self.quantile) - self.sample_rank

    @property
    def larger_share(self) -> float:
        """The larger of the two shares that the accuracy is about. It is 1/2 - width for the median."""
        return max(self.sample_rank, 1.0 - float(self.quantile) - self.width)

    @property
    def mu(self) -> float:
        """The whole interaction by binary search is as private for one block as N(0,1) against N(mu,1)."""
        return 0.0 if self.noise is None else math.sqrt(self.queries) * self.noise.mu

    @property
    def rho(self) -> float:
        """Concentrated privacy of the whole interaction for one block (bounded range: epsilon^2/8 an answer)."""
        return self.mu**2 / 2.0 + self.queries * self.epsilon**2 / 8.0

    @property
    def certified(self) -> bool:
        """Whether all inequalities of the certificate hold, evaluated once more from the numbers in here."""
        if self.accounting == "paper":
            public = (self.queries, self.grid_size, self.failure_probability)
            return self.interval == (0.25, 0.75) and self == paper_plan(*public).at(self.blocks)
        if self.mechanism == "splitting":
            each = splitting_blocks(1, self.failure_probability / self.queries, self.rank)
            return self.upper_rank is None and self.blocks >= self.queries * each
        if not 0.0 < self.width < 0.5 or not self.sample_rank > 0.0:
            return False
        if self.noise is not None and self.noise.steps < search_steps(self.grid_size):
            return False
        return min(self.noise_failures) <= self.accuracy_failure and self._private_enough()

    def at(self, blocks: int) -> BlockPlan:
        """The same certificate on more blocks: the noise grows with them, and so does the privacy.

        Raises `ArgumentError` for fewer blocks than planned.
        """
        blocks = integer("blocks", blocks)
        if blocks < self.blocks:
            raise ArgumentError(f"blocks must be at least the {self.blocks} that this certificate needs, got {blocks}")
        growth = blocks / self.blocks * (1.0 - 1e-12)
        if self.noise is not None:
            noise = SearchNoise(self.noise.steps, self.noise.fresh * growth, self.noise.shared * growth)
            return replace(self, blocks=blocks, noise=noise)
        if self.accounting == "paper":
            return replace(self, blocks=blocks, epsilon=self.epsilon * self.blocks / blocks)
        return replace(self, blocks=blocks, epsilon=self.epsilon / growth)

    @property
    def noise_failures(self) -> tuple[float, float]:
        """The cost of the noise as a probability, by a union bound and by the expected shortfall. Either will do.

        A search: an answer's ranks are off by |z|/m at most for the largest noise z of its search that matters. So its
        expected shortfall is at most the sum of E(|z| - a)_+/m with a = width * m. Shared noise may hurt on either
        side, depending on earlier answers. The exponential mechanism: `exponential_loss`.
        """
        if self.noise is not None:
            x = self.width * self.blocks * (1.0 - 2.0**-20) / self.noise.deviation
            answers = (2 if self.noise.shared else 1) * self.queries * self.noise.steps
            union, loss = float(ndtr(-x)), self.noise.deviation / self.blocks * float(normal_loss(x))
        else:
            answers, exponent = self.queries, self.epsilon * self.blocks / 2.0
            odds = float(log_bad_odds(self.grid_size, self.width, exponent))
            union, loss = 1.0 / (1.0 + math.exp(min(-odds, 700.0))), float(exponential_loss(odds)) / exponent
        return answers * union * (1.0 + 1e-12), answers * loss / self.larger_share * (1.0 + 1e-12)

    def _private_enough(self) -> bool:
        beta, lost = self.failure_probability, self.accuracy_failure
        if self.quantile == MEDIAN and self.upper_rank is None:
            limits = {"sample_rank": self.sample_rank, "rank": self.rank, "failure_probability": beta}
            if self.noise is not None:
                return self.mu < largest_mu(**limits, accuracy_failure=lost)
            return self.rho < largest_rho(**limits, accuracy_failure=lost)
        right = 2.0 * float(self.quantile) - self.sample_rank
        if self.noise is None or not self.interval[0] < self.sample_rank < right < self.interval[1]:
            return False
        return certifies_interval(
            gaussian(noise_multiplier=1.0 / self.mu, adjacency=Adjacency.REPLACE_ONE),
            sample=(self.sample_rank, right),
            population=self.interval,
            failure_probability=beta,
            accuracy_failure=lost,
        )


def paper_plan(queries: int, grid_size: int, failure_probability: float) -> BlockPlan:
    """Theorem 4.3 of Feldman, Steinke 2017, with an integer of blocks.

    Its medians are accurate at epsilon = 16 ln(k|T|/beta)/m.
    """
    public = {"queries": queries, "grid_size": grid_size, "failure_probability": failure_probability}
    exact = paper_blocks(**public)  # type: ignore[arg-type]
    blocks = math.ceil(exact)
    return BlockPlan(
        mechanism="exponential",
        accounting="paper",
        queries=queries,
        grid_size=grid_size,
        rank=0.25,
        failure_probability=failure_probability,
        blocks=blocks,
        sample_rank=0.375,
        accuracy_failure=failure_probability / 2.0,
        epsilon=paper_epsilon(**public) * exact / blocks,  # type: ignore[arg-type]
    )


def splitting_blocks(queries: int, failure_probability: SupportsFloat, rank: SupportsFloat = 0.25) -> int:
    """Blocks of fresh data for each of k questions so that all their plain medians are valid.

    The least odd B with 2 P(Bin(B, rank) >= (B+1)/2) <= beta/k. Questions that do not adapt can share the same B.

    >>> [splitting_blocks(10**i, 0.05) for i in range(6)]
    [13, 27, 43, 57, 73, 89]
    """
    from scipy.stats import binom  # takes half a second to import

    k, rank = integer("queries", queries, at_least=1, at_most=1 << 1000), number("rank", rank, above=0.0, below=0.5)
    target = number("failure_probability", failure_probability, above=0.0, below=1.0) / k
    blocks = 1
    while 2.0 * float(binom.sf((blocks - 1) // 2, blocks, rank)) * (1.0 + _SAFE) > target:
        blocks += 2
    return blocks
