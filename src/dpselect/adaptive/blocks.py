"""How many blocks certify k median answers: the optimal accounting, solved for the blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

import numpy as np
from scipy.special import ndtr, ndtri

from dpselect.adaptive.block_plan import (
    BlockPlan,
    Mechanism,
    exponential_loss,
    log_bad_odds,
    normal_loss,
    paper_plan,
    splitting_blocks,
)
from dpselect.adaptive.generalisation import paper_blocks
from dpselect.adaptive.median_bounds import search_steps
from dpselect.adaptive.search_noise import SearchNoise, best_sharing, search_cost
from dpselect.adaptive.transfer import bernoulli_divergence
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array, first_true

__all__ = [
    "BlockPlan",
    "Mechanism",
    "break_even",
    "normal_loss",
    "plan_blocks",
    "required_samples",
    "splitting_blocks",
]


def _maximise(
    gain: Callable[[Array, Array], Array], first: tuple[float, float], second: tuple[float, float], zooms: int
) -> tuple[float, float, float]:
    """The largest gain met on a grid over two intervals, zoomed around its best point, with the point."""
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


def _limits(plan: BlockPlan, w: Any, b: Any) -> tuple[Array, Array]:
    """The probabilities p > h(q) that the transfer bound compares, on a new last axis. A p below 0: b is too large."""
    # shares of the failures that offend on the left; one for a symmetric interval, where it does not matter
    left = np.array([1.0]) if plan.upper_rank is None else np.linspace(0.0, 1.0, 9)
    beta, target = plan.failure_probability, float(plan.quantile)
    w, b = np.asarray(w)[..., None], np.asarray(b)[..., None]
    low, high = target - w, 1.0 - target - w
    p = left * low * beta + (1.0 - left) * high * beta - np.maximum(low, high) * b
    a, upper = plan.interval
    return p, (left * a + (1.0 - left) * (1.0 - upper)) * beta


def _widest(plan: BlockPlan) -> float:
    """The largest useful distance of an answer's ranks on the blocks from the target."""
    target, (a, upper) = float(plan.quantile), plan.interval
    return min(target - a, upper - target)


def _plan_search(plan: BlockPlan, *, refined: bool, zooms: int = 7) -> BlockPlan:
    """The search with shared noise and the expected shortfall, or with independent noise and the union bound."""
    steps, beta, target = search_steps(plan.grid_size), plan.failure_probability, float(plan.quantile)
    sharing = best_sharing(steps) if refined else 0.0
    noises = (2 if sharing else 1) * plan.queries * steps

    def gain(w: Any, x: Any) -> Array:
        if refined:
            lost = noises * w / x * normal_loss(x) / np.maximum(target - w, 1.0 - target - w)
        else:
            lost = noises * ndtr(-x) + 0.0 * w
        p, q = _limits(plan, w, lost)
        mu = np.min(ndtri(np.maximum(p, 0.0)) - ndtri(q), axis=-1)
        return np.asarray(np.where(lost < beta, w * mu / x, -np.inf))

    best, w, x = _maximise(gain, (0.0, _widest(plan)), (0.5, 12.0), zooms)
    if not best > 0.0:
        raise ArgumentError("rank and upper_rank leave no room for a private answer between them")
    blocks = max(2, math.ceil(math.sqrt(plan.queries * search_cost(steps, sharing)) / best * (1.0 + 1e-6)))
    while True:
        noise = SearchNoise.of_deviation(steps, w * blocks * (1.0 - 2.0**-20) / x, sharing=sharing)
        found = _certified(replace(plan, blocks=blocks, sample_rank=target - w, noise=noise), refined=refined)
        if found is not None:
            return found
        blocks += max(1, blocks >> 14)


def _certified(plan: BlockPlan, *, refined: bool) -> BlockPlan | None:
    """The plan with the accuracy that its noise leaves. None if that is not certified."""
    union, shortfall = plan.noise_failures
    found = replace(plan, accuracy_failure=(min(union, shortfall) if refined else union) * (1.0 + 1e-9))
    return found if found.accuracy_failure < plan.failure_probability and found.certified else None


def _plan_exponential(plan: BlockPlan, *, refined: bool) -> BlockPlan:
    orders = 1.0 + np.geomspace(0.3, 1000.0, 64)
    size, k, beta = plan.grid_size, plan.queries, plan.failure_probability

    def gain(w: Any, x: Any) -> Array:
        """x = L w, the exponent that an answer at the edge of the band has."""
        odds = log_bad_odds(size, w, x / w)
        lost = k * exponential_loss(odds) * w / x / (0.5 - w) if refined else k / (1.0 + np.exp(-odds))
        p, q = (found[..., 0] for found in _limits(plan, w, lost))
        good = (p > q) & (lost < beta)
        divergence = bernoulli_divergence(np.where(good, p, q)[..., None], q[..., None], orders)
        rho = np.where(good, np.max(divergence / orders, axis=-1), 0.0)
        return np.asarray(w * np.sqrt(2.0 * rho / k) / x)

    most = math.log(size) - math.log(beta / k) + 20.0
    best, w, x = _maximise(gain, (0.0, _widest(plan)), (0.1, most), zooms=7)
    blocks = max(2, math.floor(1.0 / best) - 2)
    while True:
        at_blocks = replace(plan, blocks=blocks, sample_rank=0.5 - w, epsilon=2.0 * x / (w * blocks))
        found = _certified(at_blocks, refined=refined)
        if found is not None:
            return found
        blocks += 1


def _plan_search_between(plan: BlockPlan, *, refined: bool) -> BlockPlan:
    """For the quantile between both ranks that needs the fewest blocks."""

    def at(place: float) -> BlockPlan:
        exact = Fraction(round(place * (1 << 20)), 1 << 20)
        return _plan_search(replace(plan, quantile=exact), refined=refined, zooms=4)

    low, high = plan.interval
    width, best = (high - low) / 2.0, at((low + high) / 2.0)
    for _ in range(3):
        width /= 3.0
        places = float(best.quantile) + width * np.array([-2.0, -1.0, 1.0, 2.0])
        best = min(best, *(at(place) for place in places.tolist() if low < place < high), key=lambda one: one.blocks)
    return best


def plan_blocks(
    *,
    queries: int,
    grid_size: int,
    failure_probability: SupportsFloat,
    rank: SupportsFloat = 0.25,
    upper_rank: SupportsFloat | None = None,
    mechanism: Mechanism | Literal["best"] = "best",
    refined: bool = True,
    accounting: Literal["optimal", "paper"] = "optimal",
) -> BlockPlan:
    """Return the plan with the fewest blocks that certify `queries` answers.

    Answers are in qi(rank, upper_rank) of their estimators, medians in qi(rank, 1 - rank) without an `upper_rank`.

    Args:
        queries: how many questions may be asked, an integer in [1, 1e9].
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-12 and below 1.
        rank: the lower rank of the interval, at least 1e-12. It is below 0.5, or below `upper_rank` if you give one.
            The default is 0.25.
        upper_rank: the upper rank of the interval, above `rank`. None, the default, is 1 - rank. With another one the
            interval may be anywhere, and the plan's `quantile` is the one to ask for. A narrower interval costs more
            blocks. It is for the binary search.
        mechanism: "binary_search", "exponential", "splitting" or "best". "best", the default, takes the better of the
            two private medians. Data splitting promises no privacy to a row, so you have to ask for it.
        refined: True by default. False is the same transfer bound with independent noise and a union bound over
            answers, for comparison. Sharing noise and counting shortfalls need about 40 % fewer blocks for a search.
            The latter alone needs 25 % fewer for the exponential mechanism.
        accounting: "optimal", the default, or "paper": Feldman and Steinke's Theorem 4.3 as it is, for rank 0.25 and
            the exponential mechanism.

    Raises:
        ArgumentError: for a number out of range, another `mechanism` or `accounting`, or arguments that do not go
            together. Also if the ranks leave no room for a private answer between them.
        TypeError: if an argument is not a number.

    >>> plan = plan_blocks(queries=100, grid_size=1001, failure_probability=0.05)
    >>> plan.mechanism, plan.blocks, plan.certified
    ('binary_search', 4383, True)
    """
    low = number("rank", rank, at_least=1e-12, below=0.5 if upper_rank is None else 1.0)
    plan = BlockPlan(
        mechanism="binary_search",
        queries=integer("queries", queries, at_least=1, at_most=10**9),
        grid_size=integer("grid_size", grid_size, at_least=2, at_most=1 << 1000),
        rank=low,
        failure_probability=number("failure_probability", failure_probability, at_least=1e-12, below=1.0),
        blocks=0,
        sample_rank=0.5,
        accuracy_failure=0.0,
    )
    if upper_rank is not None:
        upper = number("upper_rank", upper_rank, above=low, at_most=1.0 - 1e-12)
        if upper + low != 1.0:
            plan = replace(plan, upper_rank=upper)
    if accounting == "paper":
        if plan.interval != (0.25, 0.75) or mechanism not in ("best", "exponential"):
            raise ArgumentError("accounting='paper' is for rank 0.25 and the exponential mechanism")
        return paper_plan(plan.queries, plan.grid_size, plan.failure_probability)
    if accounting != "optimal":
        raise ArgumentError(f"accounting must be 'optimal' or 'paper', got {accounting!r}")
    if plan.upper_rank is not None and mechanism in ("exponential", "splitting"):
        raise ArgumentError("upper_rank is for the binary search; the other mechanisms answer medians")
    if mechanism == "splitting":
        each = splitting_blocks(plan.queries, plan.failure_probability, plan.rank)
        return replace(plan, mechanism="splitting", blocks=plan.queries * each)
    found: list[BlockPlan] = []
    if mechanism in ("best", "binary_search"):
        solve = _plan_search if plan.upper_rank is None else _plan_search_between
        found.append(solve(plan, refined=refined))
    if mechanism in ("best", "exponential") and plan.upper_rank is None:
        found.append(_plan_exponential(replace(plan, mechanism="exponential"), refined=refined))
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
    """Return how many rows certify `queries` adaptive questions, each as good as one run on `subsample_size` new rows.

    All answers are in the inter-quartile interval (or qi(rank, 1 - rank)) of their estimators except with probability
    `failure_probability`.

    Args:
        queries: how many questions may be asked, an integer in [1, 1e9].
        subsample_size: rows in a block, an integer of at least 1. The default is 1.
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-12 and below 1.
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        accounting: "optimal", the default, or "paper": the constants of Feldman and Steinke, Theorem 4.3, at the
            quartiles only.
        rank: the lower rank, at least 1e-12 and below 0.5. The default is 0.25, for the quartiles.

    Raises:
        ArgumentError: for a number out of range, another `accounting`, or "paper" with another rank than 0.25.
        TypeError: if an argument is not a number.

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
    mechanism: Literal["best", "binary_search", "exponential", "paper"] = "best",
    refined: bool = True,
) -> int:
    """Return a number of questions from which on asking the same data needs fewer blocks than splitting it.

    Splitting grows by whole blocks, so that near this number the comparison may change sides a few times. The search
    stops within 1/256 of the number.

    Args:
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-12 and below 1.
        rank: answers are in qi(rank, 1 - rank) of their estimators, at least 1e-12 and below 0.5. The default is 0.25.
        mechanism: how the same data are asked: "binary_search", "exponential", or "best" of both, the default.
            "paper" is Feldman and Steinke's Theorem 4.3, which is for the quartiles at any `rank`.
        refined: False for independent noise and a union bound over answers, for comparison. True by default.

    Raises:
        ArgumentError: for a number out of range, another `mechanism`, or if no number of questions favours asking the
            same data.
        TypeError: if an argument is not a number.
    """
    if mechanism not in (compared := ("best", "binary_search", "exponential", "paper")):
        said = f"mechanism must be one of {', '.join(map(repr, compared))}, got {mechanism!r}"
        raise ArgumentError(said + write_one_of("mechanism", mechanism, compared))
    public: dict[str, Any] = {"grid_size": grid_size, "failure_probability": failure_probability}

    def cheaper(k: int) -> bool:
        if mechanism == "paper":
            ours = paper_blocks(queries=k, **public)
        else:
            ours = plan_blocks(queries=k, rank=rank, mechanism=mechanism, refined=refined, **public).blocks
        return ours < k * splitting_blocks(k, failure_probability, rank)

    found = first_true(cheaper, 1, 1 << 40, start=1, relative=2.0**-8)
    if found is None:
        raise ArgumentError("no number of questions up to 2**40 favours asking the same data")
    return found
