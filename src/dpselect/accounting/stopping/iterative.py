"""Runs of many private steps that may stop early: each declared stopping point has its own price.

Hartmann, Bindschaedler, Bentkamp, West, "Privacy accounting economics" (2022), Algorithm 3, Lemma 11, Theorem 15.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsFloat, SupportsIndex

from dpselect.accounting.stopping.optimal_stopping import ApproximateStepsGame, StoppingGame
from dpselect.errors import ArgumentError, BudgetError, integer, number
from dpselect.numerics.logs import ROUND_UP, sum_up
from dpselect.numerics.search import last_true
from dpselect.privacy import Guarantee, OutputGuarantee, compose
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.promises import promise, promises, refusal

__all__ = ["StoppingPoint", "iterative"]

Steps = Callable[[int], Guarantee] | Sequence[Guarantee]

_STEPS = 1 << 12
_MOST_OPERATIONS = 10**9


@dataclass(frozen=True)
class StoppingPoint:
    """The declared stopping point at which a run of so many steps is charged: the first that is not before its end.

    A run may be interrupted between two points, by something that does not depend on secrets. It is then a run to the
    next point whose last steps are not shown.

    >>> StoppingPoint((10, 20))(13)
    20
    """

    stops: tuple[int, ...]

    def __call__(self, steps: SupportsIndex) -> int:
        """`steps` is the number of steps that ran. Raises `ArgumentError` past the last point."""
        done = integer("steps", steps, at_least=0, at_most=self.stops[-1])
        return self.stops[bisect.bisect_left(self.stops, done)]


@dataclass(frozen=True)
class _Stages:
    """The work up to each stopping point, and between two of them, step by step if it has a finite epsilon.

    `marks` are the numbers of `singles` after which a run may stop: checks are among them.
    """

    stops: tuple[int, ...]
    totals: tuple[Guarantee, ...]
    segments: tuple[Guarantee, ...]
    singles: tuple[Guarantee, ...]
    marks: tuple[int, ...]

    def upper(self, target: float, points: int) -> Callable[[Sequence[float]], float]:
        """A delta from prices: the smaller value of the games that can be played."""
        steps = self._step_game()
        few = all(len(g.pair_source()(64)[0].pessimistic.losses) <= 4 for g in set(self.singles))
        if steps is not None and few:  # of such steps nothing more is known
            return steps.upper
        segments = StoppingGame(self.segments, target=target, points=points)
        if steps is None:
            return segments.upper
        return lambda prices: min(steps.upper(prices), segments.upper(prices))

    def _step_game(self) -> ApproximateStepsGame | None:
        epsilons, deltas = [g.pure_epsilon for g in self.singles], [g.failure for g in self.singles]
        try:
            return ApproximateStepsGame(epsilons=epsilons, deltas=deltas, stops=self.marks, limit=_MOST_OPERATIONS)
        except ArgumentError:  # no steps with a finite epsilon, or epsilons without a common unit
            return None


def iterative(  # noqa: PLR0913
    steps: Steps,
    *,
    stops: Sequence[SupportsIndex],
    delta: SupportsFloat | None = None,
    prices: Sequence[SupportsFloat] | None = None,
    shares: Sequence[SupportsFloat] | None = None,
    worst_epsilon: SupportsFloat | None = None,
    check: Guarantee | None = None,
    bound: Literal["optimal", "sum"] = "optimal",
    points: int = 4096,
) -> OutputGuarantee:
    """The price of a run of private steps by where it stopped. The cell of an output is `StoppingPoint(stops)`.

    The run releases all its steps and stops at one of `stops`, the last at the latest, by a rule that sees released
    outputs only (you must ensure this: a loss on private rows without noise, or a gradient's norm, is no such
    thing). The place at which it stopped is part of the output. Charged to a ledger, a run that stops early pays less.
    delta is charged in full.

    Args:
        steps: the guarantee of each step, up to the last stop, or a function from a number of consecutive steps to
            their guarantee (the same wherever they start), such as `lambda n: dp_sgd(..., steps=n)`.
        stops: the numbers of steps after which a run may stop, increasing.
        delta: the one delta of the whole. The prices are then the smallest that this function finds: each is the
            epsilon of the work up to there at a share of delta.
        prices: instead of `delta`, one epsilon a stop. delta is then the smallest that is proved.
        shares: how delta is divided over the stops: positive numbers, equal by default.
        worst_epsilon: a price of the last stop, which then takes what it needs of delta. The others share the rest.
        check: the guarantee of a private look at each stop but the last (a noisy validation score). Its result is
            an output and may be released.
        bound: "sum" adds up the deltas of the stops, with any composition theorem: it would let all stops fail at once.
            "optimal" values the best stopping rule against a dominating pair of each segment (beyond
            the paper for other steps than approximately private ones). It is never above "sum".
        points: the fineness of the "optimal" bound.

    Raises `ArgumentError` for lists that do not fit and for a delta at which some stop has no finite epsilon. Raises
    `AdjacencyError` if steps or the look differ in adjacency (of a function: at any two numbers of steps), and
    `BudgetError` if `worst_epsilon` cannot be met. Source: Hartmann et al. 2022, Lemma 11 ("sum"); Hartmann et al.
    2022, Theorem 15 ("optimal").

    >>> from dpselect.privacy import gaussian
    >>> run = iterative(lambda n: gaussian(noise_multiplier=20 / n**0.5), stops=[25, 100], delta=1e-5)
    >>> {stop: round(price, 3) for stop, price in run.epsilons.items()}
    {25: 0.967, 100: 2.073}
    >>> run.observed(25).epsilon(delta=1e-5) == run.epsilons[25]
    True
    """
    if (delta is None) == (prices is None):
        raise ArgumentError("give exactly one of delta and prices")
    if bound not in ("optimal", "sum"):
        raise ArgumentError(f"bound must be 'optimal' or 'sum', got {bound!r}")
    stages = _stages(steps, _parsed_stops(stops), None if check is None else promise("check", check))
    if prices is not None:
        if shares is not None or worst_epsilon is not None:
            raise ArgumentError("shares and worst_epsilon go with delta, not with prices")
        return _at_prices(stages, prices, bound, points)
    total = number("delta", delta if delta is not None else 0.0, at_least=0.0, below=1.0, rounding="up")
    allotment = _allotment(stages, total, shares, worst_epsilon)
    found = allotment.prices(1.0)
    if bound == "optimal" and total > 0.0 and allotment.most > 1.0:
        found = _stretched(allotment, stages.upper(total, points), total, found)
    if worst_epsilon is not None and max(found) > found[-1]:
        raise BudgetError("worst_epsilon is too small: at what is left of delta an earlier stop would cost more")
    return _priced(stages, found, total)


def _parsed_stops(stops: Sequence[SupportsIndex]) -> tuple[int, ...]:
    parsed = tuple(integer("stops", k, at_least=1) for k in stops)
    if not parsed or any(b <= a for a, b in itertools.pairwise(parsed)):
        raise ArgumentError("stops must be strictly increasing numbers of steps, at least one")
    return parsed


def _stages(steps: Steps, stops: tuple[int, ...], check: Guarantee | None) -> _Stages:
    work = _work(steps, stops[-1])
    checks = [0 if check is None else min(k + 1, len(stops) - 1) for k in range(len(stops))]
    totals = tuple(_with(work(0, k), check, count) for k, count in zip(stops, checks, strict=True))
    plain = [work(a, b) for a, b in itertools.pairwise((0, *stops))]
    # the same object for equal segments, so that each is cut once
    made = {id(g): _with(g, check, 1) for g in plain[:-1]}
    segments = (*(made[id(g)] for g in plain[:-1]), plain[-1])
    singles: list[Guarantee] = []
    marks = []
    if math.isfinite(totals[-1].pure_epsilon):
        for k, (first, last) in enumerate(itertools.pairwise((0, *stops))):
            singles += [work(i, i + 1) for i in range(first, last)]
            singles += [check] if check is not None and k < len(stops) - 1 else []
            marks.append(len(singles))
    return _Stages(stops, totals, segments, tuple(singles), tuple(marks))


def _work(steps: Steps, count: int) -> Callable[[int, int], Guarantee]:
    """From two numbers of steps to the guarantee of those between them, asked once for each n if all are alike."""
    if callable(steps):
        make, made = steps, dict[int, Guarantee]()

        def repeated(first: int, last: int) -> Guarantee:
            n = last - first
            if n not in made:
                made[n] = promise("what steps returns", make(n))
                common_adjacency(each.adjacency for each in made.values())
            return made[n]

        return repeated
    if not isinstance(steps, Sequence):
        raise refusal("steps", steps, "a sequence of Guarantees, or a function from a number of steps to one")
    listed = promises("steps", steps)
    if len(listed) != count:
        raise ArgumentError("steps must have one guarantee for each step up to the last stop")
    common_adjacency(step.adjacency for step in listed)
    return lambda first, last: compose(*listed[first:last])


def _with(work: Guarantee, check: Guarantee | None, count: int) -> Guarantee:
    return work if check is None or not count else compose(work, *[check] * count)


def _at_prices(stages: _Stages, prices: Sequence[SupportsFloat], bound: str, points: int) -> OutputGuarantee:
    parsed = [number("prices", price, at_least=0.0) for price in prices]
    if len(parsed) != len(stages.stops):
        raise ArgumentError("prices must have one for each stop")
    proved = sum_up([total.delta(price) for total, price in zip(stages.totals, parsed, strict=True)])
    if bound == "optimal" and proved > 0.0 and len(parsed) > 1:
        proved = min(proved, stages.upper(min(proved, 1.0), points)(parsed))
    if not proved < 1.0:
        raise ArgumentError("prices are so low that nothing is proved: delta would be 1")
    return _priced(stages, parsed, proved)


def _priced(stages: _Stages, prices: Sequence[float], delta: float) -> OutputGuarantee:
    return OutputGuarantee(
        cell=StoppingPoint(stages.stops),
        epsilons=dict(zip(stages.stops, prices, strict=True)),
        delta=delta,
        adjacency=stages.totals[0].adjacency,
        interactive=True,
    )


@dataclass(frozen=True)
class _Allotment:
    """A delta for each stop. `fixed` is the price of the last one if it was chosen."""

    totals: tuple[Guarantee, ...]
    deltas: tuple[float, ...]
    limit: float
    fixed: float | None

    @property
    def most(self) -> float:
        """The factor at which the largest of the deltas would be the whole."""
        return self.limit / max(self.deltas, default=self.limit) if self.limit > 0.0 else 1.0

    def prices(self, factor: float) -> list[float]:
        """The epsilon of each stop at `factor` times its delta. Raises `ArgumentError` if none is finite."""
        found = [t.epsilon(min(d * factor, self.limit)) for t, d in zip(self.totals, self.deltas, strict=False)]
        if self.fixed is not None:
            found.append(self.fixed)
        if not all(map(math.isfinite, found)):
            raise ArgumentError("delta is too small: at its share of delta a stop has no finite epsilon")
        return found


def _allotment(
    stages: _Stages, delta: float, shares: Sequence[SupportsFloat] | None, worst_epsilon: SupportsFloat | None
) -> _Allotment:
    count = len(stages.stops)
    weights = [1.0] * count if shares is None else [number("shares", s, above=0.0) for s in shares]
    if len(weights) != count:
        raise ArgumentError("shares must have one for each stop")
    left, fixed = delta, None
    if worst_epsilon is not None:
        fixed = number("worst_epsilon", worst_epsilon, at_least=0.0, rounding="up")
        left = delta - stages.totals[-1].delta(fixed)
        weights = weights[:-1]
        if left < 0.0 or (weights and left == 0.0 < delta):
            raise BudgetError(f"worst_epsilon {fixed!r} is not met: all the steps need more at this delta")
    # divided so that the sum never exceeds delta
    whole = math.fsum(weights) * ROUND_UP if count > 1 else math.fsum(weights)
    return _Allotment(stages.totals, tuple(left * w / whole for w in weights), left, fixed)


def _stretched(
    allotment: _Allotment, upper: Callable[[Sequence[float]], float], delta: float, prices: list[float]
) -> list[float]:
    """The prices at the largest common factor of all deltas that is seen to keep the whole at `delta`."""

    def tried(step: int) -> list[float]:
        return allotment.prices(math.exp(math.log(allotment.most) * step / _STEPS))

    best = last_true(lambda step: upper(tried(step)) <= delta, 1, _STEPS - 1)
    return prices if best is None else tried(best)
