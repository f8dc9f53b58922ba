"""How a sparse vector's budget is split between its threshold and its positives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import SupportsFloat

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee
from dpselect.mechanisms.sparse_vector_prices import session_game
from dpselect.numerics.digits import rounded, rounded_up
from dpselect.numerics.search import root_between

__all__ = ["SparseVectorPlan", "SparseVectorSplit", "plan_sparse_vector"]

_RATIOS = (0.0, 0.05, 0.1, 0.17, 0.25, 0.4, 0.6, 0.8, 1.2)
_MOST_POSITIVES = 1000
_WIDEST = 1e7


@dataclass(frozen=True, kw_only=True)
class SparseVectorSplit:
    """One split: what `SparseVector` takes, and what it costs and gives.

    Attributes:
        epsilon_threshold: for the noise on the threshold; None without any.
        epsilon_queries: for the positives together.
        ratio: scale of the threshold's noise over that of a query's.
        epsilon: an upper bound on the price at the plan's delta: the price itself where the split may be best.
        accuracy: standard deviation of the noise in one comparison, both noises together, in sensitivities.
    """

    epsilon_threshold: float | None
    epsilon_queries: float
    ratio: float
    epsilon: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class SparseVectorPlan:
    """The best split and all that were compared. As text, the table of them.

    `SparseVector(**plan.options)` runs it.
    """

    max_positives: int
    monotonic: bool
    delta: float
    best: SparseVectorSplit
    splits: tuple[SparseVectorSplit, ...]

    @property
    def options(self) -> dict[str, float | int | bool | None]:
        """The arguments of `SparseVector`."""
        return {
            "epsilon_threshold": self.best.epsilon_threshold,
            "epsilon_queries": self.best.epsilon_queries,
            "max_positives": self.max_positives,
            "monotonic": self.monotonic,
        }

    def __str__(self) -> str:
        lines = [f"{'threshold/query noise':>21}  {'epsilon':>9}  {'accuracy':>9}"]
        for split in self.splits:
            mark = " <" if split == self.best else ""
            ratio = "no noise" if split.epsilon_threshold is None else rounded(split.ratio)
            lines.append(f"{ratio:>21}  {rounded_up(split.epsilon):>9}  {rounded_up(split.accuracy):>9}{mark}")
        return "\n".join(lines)


def plan_sparse_vector(
    *,
    positives: int,
    delta: SupportsFloat,
    epsilon: SupportsFloat | None = None,
    accuracy: SupportsFloat | None = None,
    monotonic: bool = False,
) -> SparseVectorPlan:
    """Return the split of a sparse vector's budget that is best for an accuracy or for an epsilon.

    The best split between threshold and positives is the cheapest for an accuracy, and the most accurate for an
    epsilon. At a delta above 0 sessions are priced as by `SparseVector.guarantee.worst()`, and having no noise on the
    threshold is among the splits. At delta 0 they are priced by their pure price. An epsilon is met from below, to
    about a thousandth for the splits that may be best. The others are priced by their Renyi divergence alone.

    Args:
        positives: how many positive answers the session gives at most, an integer from 1 to 1000.
        delta: the delta at which the session is priced, at least 0 and below 1.
        epsilon: the price to spend, in [1e-3, 1e3]. Give this or `accuracy`.
        accuracy: the standard deviation of the noise in one comparison, in sensitivities, in [1e-3, 1e7]. It is sqrt(2
            (b^2 + d^2)) with b and d the scales of the two noises.
        monotonic: whether all queries of the session move in the same direction between neighbours. False by default.

    Raises:
        ArgumentError: unless exactly one of `epsilon` and `accuracy` is given, and for numbers out of range.
        TypeError: if an argument is not a number.

    >>> plan = plan_sparse_vector(positives=10, delta=1e-6, accuracy=70)
    >>> plan.best.ratio, round(plan.best.epsilon, 2)
    (0.25, 0.39)
    """
    positives = integer("positives", positives, at_least=1, at_most=_MOST_POSITIVES)
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="down")
    if (epsilon is None) == (accuracy is None):
        raise ArgumentError("give either epsilon or accuracy")
    balanced = (positives if monotonic else 2 * positives) ** (-1.0 / 3.0)
    others = [ratio for ratio in _RATIOS if abs(ratio - balanced) > 0.05 * balanced and (ratio > 0.0 or delta > 0.0)]
    ratios = sorted([*others, balanced])
    monotonic = bool(monotonic)
    split = partial(_split, positives=positives, delta=delta, monotonic=monotonic)
    if epsilon is None:
        assert accuracy is not None
        fixed = number("accuracy", accuracy, at_least=1e-3, at_most=_WIDEST)
        splits = tuple(split(ratio, fixed) for ratio in ratios)
        best = min(splits, key=lambda one: one.epsilon)
    else:
        target = number("epsilon", epsilon, at_least=1e-3, at_most=1e3, rounding="down")
        splits = _most_accurate(ratios, target, delta, split)
        best = min(splits, key=lambda one: one.accuracy)
    return SparseVectorPlan(max_positives=positives, monotonic=monotonic, delta=delta, best=best, splits=splits)


@lru_cache(maxsize=1024)
def _split(
    ratio: float, accuracy: float, *, positives: int, delta: float, monotonic: bool, game: bool = True
) -> SparseVectorSplit:
    """One split and its price. Without the `game` it comes from Renyi divergence, quickly and a little larger."""
    query_scale = accuracy / math.sqrt(2.0 * (1.0 + ratio * ratio))
    threshold = 1.0 / (ratio * query_scale) if ratio else None
    queries = positives * (1.0 if monotonic else 2.0) / query_scale
    promised = game_guarantee(session_game(threshold, queries, positives, monotonic=monotonic))
    return SparseVectorSplit(
        epsilon_threshold=threshold,
        epsilon_queries=queries,
        ratio=ratio,
        epsilon=(promised if game else replace(promised, profile=None)).epsilon(delta),
        accuracy=accuracy,
    )


def _most_accurate(
    ratios: list[float], epsilon: float, delta: float, split: Callable[..., SparseVectorSplit]
) -> tuple[SparseVectorSplit, ...]:
    """For each ratio little noise that keeps epsilon: by Renyi divergences, and for the likely ones by the game."""
    price = epsilon

    def enough(ratio: float, price: float, start: float, relative: float) -> float:
        def holds(accuracy: float) -> bool:
            return split(ratio, accuracy, game=False).epsilon <= price

        return root_between(holds, safe=_WIDEST, unsafe=1e-3, start=start, relative=relative)

    def least(ratio: float) -> SparseVectorSplit:
        """The game's price is nearly the same share of the Renyi price everywhere, so that two prices find it."""
        nonlocal price
        found = near[ratio]
        for _ in range(5):
            tried = split(ratio, enough(ratio, price, found.accuracy, 1e-4))
            if tried.epsilon <= epsilon and tried.accuracy <= found.accuracy:
                found = tried
            if epsilon * (1.0 - 1e-3) <= tried.epsilon <= epsilon:
                break
            price *= epsilon / tried.epsilon * (1.0 - 5e-4)
        return found

    near: dict[float, SparseVectorSplit] = {}
    start = 100.0
    for ratio in ratios:  # one after another they hardly differ
        start = enough(ratio, epsilon, start, 1e-3)
        near[ratio] = split(ratio, start, game=False)
    if delta > 0.0:
        best = sorted(ratios, key=lambda ratio: near[ratio].accuracy)[:2]
        near |= {ratio: least(ratio) for ratio in dict.fromkeys((*best, 0.0))}
    return tuple(near.values())
