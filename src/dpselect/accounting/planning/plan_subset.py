"""Choosing sampling rate, law and noise of tuning on a subset for a total. Data-independent, so it is free."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import SupportsFloat, Unpack

from dpselect.accounting.best_of_k.best_of import best_of
from dpselect.accounting.best_of_k.subset_tuning import ATOMS, FinalRows, tune_on_subset
from dpselect.accounting.planning.plan import Goal, GoalKeys, laws_for
from dpselect.errors import ArgumentError, BudgetError, number
from dpselect.numerics.search import first_true
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise, refusal
from dpselect.public_api import options_of
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law, families as known_families
from dpselect.repetitions.distribution import Family
from dpselect.steps import each_step

__all__ = ["SAMPLING_RATES", "SubsetOption", "plan_subset"]

SAMPLING_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)

_STEP = 1.02
_FEW_ATOMS = 160
"""Of the prices that tell where to look."""
_INDICES = (-500, 1000)
"""Noises are powers of 1.02, from 5e-5 to 4e8: prices of equal noises are then shared by all rates of a law."""


@dataclass(frozen=True)
class SubsetOption:
    """A rate, a law and a noise that meet the total. `sampling_rate` None: a search on all rows and no final run.

    `work` is the expected number of runs, each counted by the share of the rows that it is expected to see. `most_work`
    is the same with the number of runs at its limit, None if there is none.
    """

    family: str
    law: Repetitions
    sampling_rate: float | None
    noise: float
    epsilon: float
    utility: float
    work: float
    most_work: float | None


@options_of(Goal)
def plan_subset(
    *,
    base: Callable[[float], Guarantee],
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    repetitions: Repetitions | None = None,
    sampling_rates: Sequence[float] = SAMPLING_RATES,
    final_rows: FinalRows = "rest",
    families: Sequence[Family] | None = None,
    **goal: Unpack[GoalKeys],
) -> tuple[SubsetOption, ...]:
    """Return the least noise within (epsilon, delta) for every distribution and sampling rate, least noise first.

    Each distribution also gets the search on all rows without a final run, to compare the subsets with. Noises are
    rounded up to powers of 1.02. The search is priced by the quick bound "profile", so `tune_on_subset` with the
    default price of `best_of` costs the same or a little less. Options that no noise keeps within the total are left
    out.

    Args:
        base: a function from a noise to the guarantee of one run on the rows it is given. The runs of the search and
            the final run have the same noise.
        epsilon: the epsilon of search and final run together, above 0.
        delta: the delta of both together, in [0, 1).
        repetitions: the distribution of the number of runs. None, the default, takes in each family the smallest that
            reaches the goal (as in `plan`), or the largest within limits on the number of runs.
        sampling_rates: the probabilities that a row goes to the search, each in (0, 1); 0.05 to 0.5 unless given.
        final_rows: "rest", the default, for a final run on the rows that the search did not see; "all" for all rows.
        families: the families of distributions to weigh. None, the default, weighs a few that stand for all.
        goal: the utility and the limits on the number of runs, as keywords of the same names as in `plan`:
            `expected_quantile` or `success`, `mean_runs`, `runs_99` and `max_runs`.

    Returns:
        The options, each with its distribution, sampling rate (None for all rows), noise, epsilon, utility and work.

    Raises:
        ArgumentError: if no family reaches the goal, a number is out of range, `final_rows` is unknown, or you give
            `repetitions` and a goal. Also if `base` is not a function or does not return a `Guarantee`
            (`PromiseError`).
        AdjacencyError: if `final_rows` is "all" and the guarantees of `base` are under replace-one.
        BudgetError: if no noise meets the total.
        TypeError: if an argument that must be a number is not, or `repetitions` is not a distribution.

    >>> from dpselect.privacy import gaussian
    >>> from dpselect.repetitions import Harmonic
    >>> found = plan_subset(base=lambda noise: gaussian(noise_multiplier=noise), epsilon=1.0, delta=1e-6,
    ...                     repetitions=Harmonic(limit=20), sampling_rates=(0.2,))
    >>> [(option.sampling_rate, round(option.noise, 2), round(option.work, 2)) for option in found]
    [(0.2, 3.92, 1.91), (None, 5.71, 5.56)]
    """
    total = number("epsilon", epsilon, above=0.0, rounding="down")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="down")
    rates = [number("sampling_rates", rate, above=0.0, below=1.0) for rate in sampling_rates]
    if not rates:
        raise ArgumentError("sampling_rates must hold at least one rate")
    if final_rows not in ("rest", "all"):
        raise ArgumentError(f"final_rows must be 'rest' or 'all', got {final_rows!r}")
    if isinstance(base, Guarantee) or not callable(base):
        raise refusal("base", base, "a function from noise to a Guarantee: the noise is what is planned")
    wanted = Goal(**goal)
    if repetitions is None:
        weighed = [family for family in known_families() if family.representative] if families is None else families
        laws = laws_for([family.under(wanted.max_runs) for family in weighed], wanted)
    elif wanted != Goal():
        raise ArgumentError("give repetitions, or a goal and limits to choose the law by, not both")
    else:
        expect_law(repetitions)
        laws = [(str(repetitions.describe()["law"]), repetitions)]
    run = cache(lambda index: promise("what base returns", base(_STEP**index)))
    options = []
    for family, law in laws:

        @cache
        def search(index: int, law: Repetitions = law) -> Guarantee:
            return best_of(run(index), law, bound="profile")

        start = 0
        for place in each_step(f"sampling rates of {family}", len(rates) + 1):
            rate = (None, *rates)[place]

            @cache
            def price(
                index: int,
                atoms: int = ATOMS,
                rate: float | None = rate,
                search: Callable[[int], Guarantee] = search,
            ) -> float:
                if rate is None:
                    return search(index).epsilon(delta)
                return tune_on_subset(
                    search=search(index), final=run(index), sampling_rate=rate, final_rows=final_rows, atoms=atoms
                ).epsilon(delta)

            index = _first_within(price, total, start)
            if index is None:
                continue
            start = index
            share = 0.0 if rate is None else 1.0 if final_rows == "all" else 1.0 - rate
            seen = 1.0 if rate is None else rate
            options.append(
                SubsetOption(
                    family=family,
                    law=law,
                    sampling_rate=rate,
                    noise=_STEP**index,
                    epsilon=price(index),
                    utility=wanted.utility(law),
                    work=law.mean * seen + share,
                    most_work=None if law.limit is None else law.limit * seen + share,
                )
            )
    if not options:
        raise BudgetError(f"no noise keeps tuning on a subset within epsilon={total:g} at delta={delta:g}")
    return tuple(sorted(options, key=lambda option: option.noise))


def _first_within(price: Callable[..., float], total: float, start: int) -> int | None:
    """The first index whose price is within the total, or None. Prices of fewer atoms tell about where it is.

    Prices grow at least as fast as the noise falls, so that a price a step below the total shows that no smaller index
    would do.
    """
    near = partial(price, atoms=_FEW_ATOMS)
    low, high = _INDICES
    # a price goes about as the inverse of the noise
    found = near(start)
    if 0.0 < found < math.inf:
        start = min(max(start + math.floor(math.log(found / total) / math.log(_STEP)), low), high)
    index = first_true(lambda i: near(i) <= total, low, high, start=start, step=2)
    if index is None:
        index = high
    while index < high and price(index) > total:
        index += 1
    while index > low and price(index) * _STEP <= total and price(index - 1) <= total:
        index -= 1
    return index if price(index) <= total else None
