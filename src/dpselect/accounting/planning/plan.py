"""Choosing the law of the number of runs, and the noise of one run, for a stated goal.

Everything here is public: the plan is made before the data are seen, from guarantees and laws alone, so choosing costs
nothing. The best law depends on the goal and the budget (Papernot, Steinke 2022, Figures 5 and 6), so the planner
weighs families of laws with a size each (a mean or a hard limit) instead of following a rule of thumb.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsFloat, TypedDict, TypeVar, Unpack

from dpselect.accounting.best_of_k.best_of import best_of
from dpselect.accounting.planning.calibrate import calibrate
from dpselect.accounting.planning.sizes import largest_law, largest_within, law_at, smallest_law
from dpselect.errors import ArgumentError, BudgetError, expect, integer, number
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Guarantee
from dpselect.privacy.notebook import bound, grid
from dpselect.privacy.promises import promise, promise_or_function
from dpselect.public_api import options_of
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import families as known_families
from dpselect.repetitions.distribution import Family
from dpselect.steps import each_step

__all__ = ["Goal", "GoalKeys", "LawOption", "LawPlan", "laws_for", "plan", "trade_off_curve"]

Weighed = TypeVar("Weighed")


class GoalKeys(TypedDict, total=False):
    """The fields of `Goal` as keyword arguments."""

    expected_quantile: float | None
    success: tuple[float, float] | None
    mean_runs: float | None
    runs_99: int | None
    max_runs: int | None


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The purpose of a search, and how many runs it may take.

    Attributes:
        expected_quantile: the wanted expected quantile of the winner among all runs, in (0, 1).
        success: a pair (p, wanted), both in (0, 1): the wanted chance that at least one run lands in an event of chance
            p.
        mean_runs: the largest mean number of runs, at least 1. None, the default, sets no limit, here and below.
        runs_99: the largest 99th percentile of the number of runs, at least 1.
        max_runs: the largest number of runs, at least 1. Distributions without a limit are conditioned on it.
    """

    expected_quantile: float | None = None
    success: tuple[float, float] | None = None
    mean_runs: float | None = None
    runs_99: int | None = None
    max_runs: int | None = None

    def __post_init__(self) -> None:
        if self.expected_quantile is not None:
            number("expected_quantile", self.expected_quantile, above=0.0, below=1.0)
        if self.success is not None:
            if self.expected_quantile is not None:
                raise ArgumentError("give one of expected_quantile and success")
            if len(self.success) != 2:
                raise ArgumentError("success must be a pair: the chance of one run and the wanted chance")
            number("success", self.success[0], above=0.0, below=1.0)
            number("success", self.success[1], above=0.0, below=1.0)
        if self.mean_runs is not None:
            number("mean_runs", self.mean_runs, at_least=1.0)
        for name, given in (("runs_99", self.runs_99), ("max_runs", self.max_runs)):
            if given is not None:
                integer(name, given, at_least=1)

    @property
    def wanted(self) -> bool:
        """Whether a utility is asked for, and not only limits."""
        return self.expected_quantile is not None or self.success is not None

    def reached(self, law: Repetitions) -> bool:
        """Whether the law has the utility asked for."""
        if self.expected_quantile is not None:
            return law.expected_quantile() >= self.expected_quantile
        return self.success is None or law.success_probability(self.success[0]) >= self.success[1]

    def utility(self, law: Repetitions) -> float:
        """The number that is asked for: the expected quantile unless `success` is given."""
        return law.expected_quantile() if self.success is None else law.success_probability(self.success[0])

    def allowed(self, law: Repetitions) -> bool:
        """Whether the law keeps the limits."""
        return (
            (self.mean_runs is None or law.mean <= self.mean_runs * (1.0 + 1e-9))
            and (self.runs_99 is None or law.quantile(0.99) <= self.runs_99)
            and (self.max_runs is None or (law.limit is not None and law.limit <= self.max_runs))
        )


@dataclass(frozen=True)
class LawOption:
    """One law that the plan weighed, priced. `noise` is None when the base was fixed."""

    family: str
    law: Repetitions
    noise: float | None
    epsilon: float
    utility: float

    @property
    def runs(self) -> tuple[float, int, int | None]:
        """Mean, 99th percentile and hard limit of the number of runs."""
        return self.law.mean, self.law.quantile(0.99), self.law.limit


@dataclass(frozen=True)
class LawPlan:
    """The best option and all that were weighed, best first."""

    options: tuple[LawOption, ...]
    delta: float

    @property
    def best(self) -> LawOption:
        """The option that serves the goal best."""
        return self.options[0]

    def _repr_html_(self) -> str:
        head = ("distribution", "noise", f"epsilon at delta {self.delta:g}", "utility", "mean runs", "99 %", "limit")
        rows = [
            (
                option.family,
                "fixed" if option.noise is None else rounded_up(option.noise),
                bound(option.epsilon),
                option.utility,
                *option.runs,
            )
            for option in self.options
        ]
        return grid("Plan, the best option first", head, rows)


@options_of(Goal)
def plan(
    *,
    base: Guarantee | Callable[[float], Guarantee],
    delta: SupportsFloat,
    epsilon: SupportsFloat | None = None,
    families: Sequence[Family] | None = None,
    **goal: Unpack[GoalKeys],
) -> LawPlan:
    """Return the distributions of the number of runs, and the noise, that serve a goal, best first.

    The choice is data-independent, so it is free. The arguments decide among three questions:

    - `base` is a `Guarantee` and you give a utility (`expected_quantile` or `success`): the smallest total epsilon at
      `delta`.
    - `base` is a `Guarantee` and you give `epsilon`: the best utility within (epsilon, delta).
    - `base` is a function of the noise and you give `epsilon`: the least noise within (epsilon, delta) for a utility.
      With limits only, it is the least noise for as many runs as they allow, in families whose utility does not
      saturate.

    Args:
        base: the guarantee of one run, or a function from a noise to it. Prices are those of `best_of`.
        delta: the delta of the whole search, in [0, 1).
        epsilon: the epsilon of the whole search, above 0. None, the default, minimises it.
        families: the families of distributions to weigh. None, the default, weighs all that dpselect knows.
        goal: the utility and the limits on the number of runs, as keywords. `expected_quantile` is the wanted expected
            quantile of the winner among all runs, in (0, 1). Leave it out if `base` is a `Guarantee` and you give
            `epsilon`. `success` is a pair (p, wanted), both in (0, 1): the wanted chance that at least one run lands in
            an event of chance p. If `base` is a `Guarantee` and you give `epsilon`, this chance is maximised and
            `wanted` is not used. `mean_runs` limits the mean number of runs, `runs_99` its 99th percentile and
            `max_runs` every outcome, each at least 1. Distributions without a limit are conditioned on `max_runs`.

    Returns:
        A `LawPlan`: its options with the best first, and delta.

    Raises:
        ArgumentError: if goals contradict each other, no family reaches the goal within the limits, or a number is out
            of range.
        BudgetError: if nothing fits the total.
        TypeError: if an argument that must be a number is not or a family is not a `Family`.

    >>> from dpselect.privacy import pure_dp
    >>> found = plan(base=pure_dp(epsilon=1.0), delta=0.0, expected_quantile=0.8, max_runs=100)
    >>> found.best.law.limit <= 100 and found.best.law.expected_quantile() >= 0.8
    True
    """
    wanted = Goal(**goal)
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="down")
    total = None if epsilon is None else number("epsilon", epsilon, above=0.0, rounding="down")
    weighed = known_families() if families is None else families
    for family in weighed:
        expect("families", family, Family)
    limited = [family.under(wanted.max_runs) for family in weighed]
    if not limited:
        raise ArgumentError("families must hold at least one family")
    base = promise_or_function("base", base, "from noise to one")
    if isinstance(base, Guarantee):
        if total is not None and wanted.wanted and wanted.success is None:
            raise ArgumentError("with base and epsilon fixed, leave expected_quantile out: it is what is planned")
        if total is None:
            return _cheapest(base, wanted, limited, delta)
        return _most_useful(base, wanted, limited, total, delta)
    if total is None:
        raise ArgumentError("epsilon is needed when base is a function of the noise")
    return _quietest(base, wanted, limited, total, delta)


def _cheapest(base: Guarantee, goal: Goal, families: Sequence[Family], delta: float) -> LawPlan:
    if not goal.wanted:
        raise ArgumentError("give expected_quantile or success, or epsilon. Write expected_quantile=0.7")
    options = [
        LawOption(family.name, law, None, best_of(base, law).epsilon(delta), goal.utility(law))
        for family, law in _counted(_smallest_laws(families, goal))
    ]
    options.sort(key=lambda option: option.epsilon)
    if math.isinf(options[0].epsilon):
        raise BudgetError(f"nothing is guaranteed at delta={delta:g} for any law that reaches the goal")
    return LawPlan(tuple(options), delta)


def _most_useful(base: Guarantee, goal: Goal, families: Sequence[Family], total: float, delta: float) -> LawPlan:
    options = []
    for family in _counted(families):
        law = largest_within(base, family, goal.allowed, total, delta)
        if law is not None:
            options.append(LawOption(family.name, law, None, best_of(base, law).epsilon(delta), goal.utility(law)))
    if not options:
        raise BudgetError(f"no law keeps the search within epsilon={total:g} at delta={delta:g}: one run costs more")
    options.sort(key=lambda option: -option.utility)
    return LawPlan(tuple(options), delta)


def _quietest(
    make: Callable[[float], Guarantee], goal: Goal, families: Sequence[Family], total: float, delta: float
) -> LawPlan:
    options = []
    for name, law in _counted(laws_for(families, goal)):
        try:
            noise = calibrate(lambda value, law=law: best_of(make(value), law), epsilon=total, delta=delta)  # type: ignore[misc]
        except BudgetError:
            continue
        options.append(LawOption(name, law, noise, best_of(make(noise), law).epsilon(delta), goal.utility(law)))
    if not options:
        raise BudgetError(f"no noise keeps the search within epsilon={total:g} at delta={delta:g}")
    options.sort(key=lambda option: option.noise or 0.0)
    return LawPlan(tuple(options), delta)


def _counted(weighed: Sequence[Weighed]) -> Iterator[Weighed]:
    """Each of them, counted for a person who watches: they are public."""
    return (weighed[place] for place in each_step("families", len(weighed)))


def laws_for(families: Sequence[Family], goal: Goal) -> list[tuple[str, Repetitions]]:
    """Laws to plan the noise for: in each family the smallest that reaches the goal, or the largest within the limits.

    Raises `ArgumentError` when there is neither a utility nor a limit, or no family reaches the goal.
    """
    if goal.wanted:
        return [(family.name, law) for family, law in _smallest_laws(families, goal)]
    if goal == Goal():
        raise ArgumentError("give expected_quantile, success, or a limit on the number of runs")
    largest = [(f, largest_law(f, goal.allowed)) for f in families if not f.saturates]
    return [(family.name, law) for family, law in largest if law is not None]


def _smallest_laws(families: Sequence[Family], goal: Goal) -> list[tuple[Family, Repetitions]]:
    """In each family the smallest law that reaches the goal, where it keeps the limits."""
    found = []
    for family in families:
        law = smallest_law(family, goal.reached)
        if law is not None and goal.allowed(law):
            found.append((family, law))
    if not found:
        raise ArgumentError("no family reaches the goal within the limits on the number of runs")
    return found


def trade_off_curve(
    base: Guarantee, family: Family, *, delta: SupportsFloat, sizes: Sequence[float], goal: Goal | None = None
) -> list[tuple[float, float]]:
    """(epsilon, utility) of the family's laws at these sizes: what a plot of the trade-off shows."""
    base = promise("base", base)
    goal = Goal() if goal is None else goal
    laws = [law for size in sizes if (law := law_at(family, size)) is not None]
    return [(best_of(base, law).epsilon(delta), goal.utility(law)) for law in laws]
