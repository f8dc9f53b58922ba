"""The size of a distribution of the number of runs, in a family of them: the smallest or the largest that will do."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

from dpselect.accounting.best_of_k.best_of import best_of
from dpselect.accounting.planning.calibrate import GuaranteePrice, ParameterSearch, steady
from dpselect.errors import ArgumentError, BudgetError
from dpselect.numerics.search import first_true, last_true
from dpselect.privacy import Guarantee
from dpselect.repetitions import Repetitions
from dpselect.repetitions.distribution import Family

__all__ = ["largest_law", "largest_within", "law_at", "smallest_law"]

_LARGEST_MEAN: Final = 1e5
_LARGEST_LIMIT: Final = 100_000
_ACCURACY: Final = 5e-3
"""Ratio of two means that are tried, less 1. Limits are all tried."""
_USUAL: Final = 10.0
"""The size at which the price is asked first."""


def law_at(family: Family, size: float) -> Repetitions | None:
    """The law of this size, or None if the family has none (a tiny gamma, an empty condition)."""
    try:
        return family.at(size)
    except ArgumentError:
        return None


def smallest_law(family: Family, reached: Callable[[Repetitions], bool]) -> Repetitions | None:
    """The smallest law with `reached`, nearly, or None if even the largest does not reach it."""

    def good(step: int) -> bool:
        law = law_at(family, _size(family, step))
        return law is not None and reached(law)

    step = first_true(good, 0, _last_step(family), start=0 if family.whole else None)
    return None if step is None else family.at(_size(family, step))


def largest_law(family: Family, allowed: Callable[[Repetitions], bool]) -> Repetitions | None:
    """The largest law that is allowed, which fails from some size on, or None if the smallest is not."""
    step = _largest_step(family, allowed)
    return None if step is None else family.at(_size(family, step))


def _largest_step(family: Family, allowed: Callable[[Repetitions], bool]) -> int | None:
    def good(step: int) -> bool:
        law = law_at(family, _size(family, step))
        return law is not None and allowed(law)

    return last_true(good, 0, _last_step(family), start=0 if family.whole else None)


def largest_within(
    base: Guarantee, family: Family, allowed: Callable[[Repetitions], bool], total: float, delta: float
) -> Repetitions | None:
    """About the largest law that is allowed and whose search costs at most (total, delta), or None if there is none.

    It is looked for by approximate prices, and made smaller until its price is seen to be within the total.
    """
    most = _largest_step(family, allowed)
    if most is None:
        return None

    @cache
    def near(step: int) -> float:
        law = law_at(family, _size(family, step))
        if law is None:
            return math.inf
        price = GuaranteePrice(best_of(base, law))
        found = price.approximate_delta(total) if delta > 0.0 else None
        return price.epsilon(delta) / total if found is None else steady(found) / steady(delta)

    def step_of(inverse: float) -> int:
        return min(max(_step(family, 1.0 / inverse), 0), most)

    # prices fall with the inverse of the size
    least = 1.0 / _size(family, most)
    search = ParameterSearch(1.0, least, 1.0, relative=0.25 * (least if family.whole else _ACCURACY))
    try:
        step = step_of(search.least(lambda inverse: near(step_of(inverse)), max(1.0 / _USUAL, least)))
    except BudgetError:
        step = 0
    return _seen_within(base, family, step, total, delta)


def _seen_within(base: Guarantee, family: Family, step: int, total: float, delta: float) -> Repetitions | None:
    """About the largest law up to a step whose price is seen to be within the total."""
    back = 1
    while True:
        law = law_at(family, _size(family, step))
        price = math.inf if law is None else best_of(base, law).epsilon(delta)
        if law is not None and price <= total:
            return law
        if step == 0:
            return None
        # an approximation is too large by little, and prices go about as the sixth root of the size
        nearer = step // 2 if math.isinf(price) else _step(family, _size(family, step) * (total / price) ** 6)
        step, back = max(min(nearer, step - back), 0), 2 * back  # searches: down from an approximation, each price slow


def _step(family: Family, size: float) -> int:
    """The last step whose size is not above this one."""
    if size < 1.0:
        return 0
    return math.floor(size * (1.0 + 1e-12)) - 1 if family.whole else math.floor(math.log(size) / math.log1p(_ACCURACY))


def _size(family: Family, step: int) -> float:
    """Limits are all tried, means 0.5 % apart."""
    return 1.0 + step if family.whole else min((1.0 + 1e-6) * (1.0 + _ACCURACY) ** step, _LARGEST_MEAN)


def _last_step(family: Family) -> int:
    return _LARGEST_LIMIT - 1 if family.whole else math.ceil(math.log(_LARGEST_MEAN) / math.log1p(_ACCURACY))
