"""How many blocks certify k median answers: the optimal accounting, solved for the blocks.

Each plan holds everything that its certificate needs, and can be checked from public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsFloat

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr, ndtri
from scipy.stats import binom

from dpselect.adaptive.generalisation import paper_blocks, paper_epsilon
from dpselect.adaptive.median_bounds import log_failure_odds, search_steps
from dpselect.adaptive.search_noise import SearchNoise, best_sharing, search_cost
from dpselect.adaptive.transfer import bernoulli_divergence, largest_mu, largest_rho
from dpselect.errors import ArgumentError, integer, number

__all__ = ["BlockPlan", "break_even", "plan_blocks", "required_samples", "splitting_blocks"]

Array = NDArray[np.float64]
Mechanism = Literal["binary_search", "exponential", "splitting"]
_SAFE = 1e-9


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """A certified way to answer `queries` median questions from `blocks` blocks.

    Every answer lies in qi(rank, 1 - rank) of its estimator on fresh rows, all of them with probability at least
    1 - failure_probability. On any blocks every answer has a share of more than `sample_rank` of the values on either
    side, all of them with probability at least 1 - accuracy_failure, or their expected shortfall below it is at most
    sample_rank * accuracy_failure; the transfer bound does the rest. `noise` belongs to the binary search, `epsilon`
    (per answer) to the exponential mechanism; data splitting has neither.
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
            return self.rank == 0.25 and self == _paper_plan(*public).at(self.blocks)
        limits: dict[str, float] = {
            "sample_rank": self.sample_rank,
            "rank": self.rank,
            "failure_probability": self.failure_probability,
            "accuracy_failure": self.accuracy_failure,
        }
        if self.mechanism == "splitting":
            each = splitting_blocks(1, self.failure_probability / self.queries, self.rank)
            return self.blocks >= self.queries * each
        if self.noise is not None:
            enough = self.noise.steps >= search_steps(self.grid_size)
            return enough and _search_failure(self) <= self.accuracy_failure and self.mu < largest_mu(**limits)
        bad = _bad_count(self.sample_rank, self.blocks)
        odds = log_failure_odds(self.grid_size, self.blocks, self.epsilon, bad)
        failure = self.queries / (1.0 + math.exp(min(-odds, 700.0))) if odds > -math.inf else 0.0
        return failure <= self.accuracy_failure and self.rho < largest_rho(**limits)

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
        if self.mechanism == "exponential":
            return _exponential_at(replace(self, blocks=blocks))
        return replace(self, blocks=blocks)


def _bad_count(sample_rank: float, blocks: int) -> int:
    """Badness from which on an answer may have a share of at most `sample_rank` on one side."""
    return math.ceil((1.0 - sample_rank) * blocks - 1e-9)


def _maximise(
    gain: Callable[[Array, Array], Array], first: tuple[float, float], second: tuple[float, float], zooms: int = 7
) -> tuple[float, float, float]:
    """The largest gain met on a grid over two intervals, zoomed around its best point; with the point."""
    box, outer = [first, second], (first, second)
    best = (-math.inf, 0.0, 0.0)
    for _ in range(zooms):
        x = np.linspace(*box[0], 43)[1:-1, None]
        y = np.linspace(*box[1], 43)[None, 1:-1]
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.nan_to_num(gain(x, y), nan=-math.inf, neginf=-math.inf)
        i, j = np.unravel_index(int(np.argmax(found)), found.shape)
        at = (float(x[i, 0]), float(y[0, j]))
        if found[i, j] > best[0]:
            best = (float(found[i, j]), *at)
        widths = [(high - low) / 6.0 for low, high in box]
        box = [
            (max(limits[0], place - width), min(limits[1], place + width))
            for limits, place, width in zip(outer, at, widths, strict=True)
        ]
    return best


def normal_loss(x: Any) -> Array:
    """E(Z - x)_+ of a standard normal for x >= 0, without cancellation: phi(x) (1 - x Mills(x)). Rounded up."""
    x = np.asarray(x, dtype=np.float64)
    mills = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (1.0 - x * mills) * (1.0 + 1e-9))


def _plan_search(plan: BlockPlan, *, shared: bool) -> BlockPlan:
    """The search with shared noise and the expected shortfall, or with independent noise and the union bound."""
    steps, rank, beta = search_steps(plan.grid_size), plan.rank, plan.failure_probability
    sharing = best_sharing(steps) if shared else 0.0
    noises = (2 if sharing else 1) * plan.queries * steps

    def mu(c: Any, b: Any) -> Array:
        return np.asarray(ndtri(c * (beta - b)) - ndtri(rank * beta))

    def with_shortfall(c: Any, x: Any) -> Array:
        lost = noises * (0.5 - c) / x * normal_loss(x) / c
        return (0.5 - c) * np.where(lost < beta, mu(c, lost), -np.inf) / x

    def with_union(c: Any, x: Any) -> Array:
        lost = noises * ndtr(-x)
        return (0.5 - c) * np.where(lost < beta, mu(c, lost), -np.inf) / x

    best, c, x = _maximise(with_shortfall if shared else with_union, (rank, 0.5), (0.5, 12.0))
    blocks = max(2, math.ceil(math.sqrt(plan.queries * search_cost(steps, sharing)) / best * (1.0 + 1e-6)))
    while True:
        deviation = (0.5 - c) * blocks * (1.0 - 2.0**-20) / x
        noise = SearchNoise.of_deviation(steps, deviation, sharing=sharing)
        found = replace(plan, blocks=blocks, sample_rank=c, noise=noise)
        found = replace(found, accuracy_failure=_search_failure(found) * (1.0 + 1e-9))
        if found.accuracy_failure < beta and found.certified:
            return found
        blocks += 1


def _search_failure(plan: BlockPlan) -> float:
    """What the noise of a search costs, as a probability: the smaller of a union bound and the expected shortfall.

    An answer has a share of at least 1/2 - |z|/m for the largest noise z of its search that matters, so its expected
    shortfall below c is at most the sum of E(|z| - a)_+/m with a = (1/2 - c) m; the transfer needs c (beta - b) to be
    at most c beta minus that sum. Shared noise may hurt on either side, depending on earlier answers.
    """
    assert plan.noise is not None
    x = (0.5 - plan.sample_rank) * plan.blocks * (1.0 - 2.0**-20) / plan.noise.deviation
    noises = (2 if plan.noise.shared else 1) * plan.queries * plan.noise.steps
    shortfall = plan.noise.deviation / plan.blocks * float(normal_loss(x)) / plan.sample_rank
    return noises * min(float(ndtr(-x)), shortfall) * (1.0 + 1e-12)


def _exponential_at(plan: BlockPlan) -> BlockPlan:
    """The smallest epsilon whose worst failure is within the accuracy failure, for the blocks of the plan."""
    odds = plan.accuracy_failure / plan.queries * (1.0 - 1e-9)
    log_odds = math.log(odds) - math.log1p(-odds)
    span = 2 * _bad_count(plan.sample_rank, plan.blocks) - plan.blocks
    size = plan.grid_size
    even = 4.0 * (math.log((size - 2) / 2.0) - log_odds) if size > 2 else 0.0
    return replace(plan, epsilon=max(even, 2.0 * (math.log(size - 1) - log_odds)) / span)


def _plan_exponential(plan: BlockPlan) -> BlockPlan:
    orders = 1.0 + np.geomspace(0.3, 1000.0, 160)
    size, k, rank, beta = plan.grid_size, plan.queries, plan.rank, plan.failure_probability

    def gain(c: Any, b: Any) -> Array:
        p, q = c * (beta - b), rank * beta
        good = p > q
        divergence = bernoulli_divergence(np.where(good, p, q)[..., None], q, orders)
        rho = np.where(good, np.max(divergence / orders, axis=-1), 0.0)
        log_odds = np.log(b / k) - np.log1p(-b / k)
        first = 4.0 * (math.log(max(size - 2, 1) / 2.0) - log_odds) if size > 2 else 0.0
        need = np.maximum(first, 2.0 * (math.log(size - 1) - log_odds))
        return (1.0 - 2.0 * c) * np.sqrt(8.0 * rho / k) / need

    best, c, log_b = _maximise(
        lambda c, log: gain(c, beta * np.exp(log)), (rank, 0.5), (math.log(1e-7), math.log(0.99))
    )
    b = beta * math.exp(log_b)
    blocks = max(2, math.floor(1.0 / best) - 2)
    while True:
        found = _exponential_at(replace(plan, blocks=blocks, sample_rank=c, accuracy_failure=b))
        if found.certified:
            return found
        blocks += 1


def _paper_plan(queries: int, grid_size: int, failure_probability: float) -> BlockPlan:
    """Theorem 4.3 with a whole number of blocks; epsilon = 16 ln(k|T|/beta)/m keeps its medians accurate."""
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
    k, rank = integer("queries", queries, at_least=1), number("rank", rank, above=0.0, below=0.5)
    target = number("failure_probability", failure_probability, above=0.0, below=1.0) / k
    blocks = 1
    while 2.0 * float(binom.sf((blocks - 1) // 2, blocks, rank)) * (1.0 + _SAFE) > target:
        blocks += 2
    return blocks


def plan_blocks(
    *,
    queries: int,
    grid_size: int,
    failure_probability: SupportsFloat,
    rank: SupportsFloat = 0.25,
    mechanism: Mechanism | Literal["best"] = "best",
    shared_noise: bool = True,
    accounting: Literal["optimal", "paper"] = "optimal",
) -> BlockPlan:
    """The fewest blocks that certify `queries` answers on grids of at most `grid_size` points, and how.

    `mechanism="best"` takes the better of the two private medians; data splitting promises no privacy to a row, so it
    has to be asked for. `accounting="paper"` is Feldman and Steinke's Theorem 4.3 as it stands. `shared_noise=False`
    draws the noise of every step of a binary search by itself and bounds it by a union, for comparison; sharing needs
    about 40 per cent fewer blocks. Raises `ArgumentError`.

    >>> plan = plan_blocks(queries=100, grid_size=1001, failure_probability=0.05)
    >>> plan.mechanism, plan.blocks, plan.certified
    ('binary_search', 4383, True)
    """
    plan = BlockPlan(
        mechanism="binary_search",
        queries=integer("queries", queries, at_least=1, at_most=10**9),
        grid_size=integer("grid_size", grid_size, at_least=2),
        rank=number("rank", rank, at_least=1e-12, below=0.5),
        failure_probability=number("failure_probability", failure_probability, at_least=1e-12, below=1.0),
        blocks=0,
        sample_rank=0.5,
        accuracy_failure=0.0,
    )
    if accounting == "paper":
        if plan.rank != 0.25 or mechanism not in ("best", "exponential"):
            raise ArgumentError("accounting='paper' is for rank 0.25 and the exponential mechanism")
        return _paper_plan(plan.queries, plan.grid_size, plan.failure_probability)
    if accounting != "optimal":
        raise ArgumentError(f"accounting must be 'optimal' or 'paper', got {accounting!r}")
    if mechanism == "splitting":
        each = splitting_blocks(plan.queries, plan.failure_probability, plan.rank)
        return replace(plan, mechanism="splitting", blocks=plan.queries * each)
    found: list[BlockPlan] = []
    if mechanism in ("best", "binary_search"):
        found.append(_plan_search(plan, shared=shared_noise))
    if mechanism in ("best", "exponential"):
        found.append(_plan_exponential(replace(plan, mechanism="exponential")))
    if not found:
        raise ArgumentError("mechanism must be 'best', 'binary_search', 'exponential' or 'splitting'")
    return min(found, key=lambda one: one.blocks)


def required_samples(
    *,
    queries: int,
    subsample_size: int = 1,
    failure_probability: SupportsFloat,
    grid_size: int,
    accounting: Literal["optimal", "paper"] = "optimal",
    rank: SupportsFloat = 0.25,
) -> int:
    """Rows that certify `queries` adaptive questions, each as good as one run on `subsample_size` fresh rows.

    All answers are in the inter-quartile interval (or qi(rank, 1 - rank)) of their estimators except with probability
    `failure_probability`. "paper": the constants of Feldman and Steinke, Theorem 4.3, at the quartiles only.

    >>> required_samples(queries=100, failure_probability=0.05, grid_size=1001, accounting="paper")
    295666
    """
    size = integer("subsample_size", subsample_size, at_least=1)
    plan = plan_blocks(
        queries=queries, grid_size=grid_size, failure_probability=failure_probability, rank=rank, accounting=accounting
    )
    return size * plan.blocks


def break_even(
    *,
    grid_size: int,
    failure_probability: SupportsFloat,
    rank: SupportsFloat = 0.25,
    mechanism: Mechanism | Literal["best", "paper"] = "best",
    shared_noise: bool = True,
) -> int:
    """A number of questions from which on asking the same data needs fewer blocks than splitting it.

    Splitting grows by whole blocks, so that near this number the comparison may change sides a few times.
    """

    def cheaper(k: int) -> bool:
        if mechanism == "paper":
            ours = paper_blocks(queries=k, grid_size=grid_size, failure_probability=failure_probability)
        else:
            ours = plan_blocks(
                queries=k,
                grid_size=grid_size,
                failure_probability=failure_probability,
                rank=rank,
                mechanism=mechanism,
                shared_noise=shared_noise,
            ).blocks
        return ours < k * splitting_blocks(k, failure_probability, rank)

    low, high = 0, 1
    while not cheaper(high):
        low, high = high, 2 * high
        if high > 1 << 40:
            raise ArgumentError("no number of questions up to 2**40 favours asking the same data")
    while high - low > max(1, high >> 8):
        middle = (low + high) // 2
        low, high = (low, middle) if cheaper(middle) else (middle, high)
    return high
