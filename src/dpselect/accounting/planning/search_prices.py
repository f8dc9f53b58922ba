"""The cost of a search, from public settings alone. Prices are public facts, so what was computed once is remembered.

Everything that prices a search for a total asks here: `tune`, studies, `PrivateSearchCV`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Final, Literal

from dpselect.accounting.best_of_k.adaptive_proposals import adaptive_best_of
from dpselect.accounting.best_of_k.best_of import best_of, smallest_of
from dpselect.accounting.planning.calibrate import GuaranteePrice, least_parameter
from dpselect.caching import cache_key
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError
from dpselect.mechanisms import NoisyCount
from dpselect.numerics.digits import rounded_up
from dpselect.numerics.logs import fraction_up
from dpselect.numerics.search import last_true
from dpselect.privacy import Adjacency, Guarantee, compose, gaussian, worst_of
from dpselect.repetitions import Fixed, Harmonic, Repetitions

__all__ = ["SearchPrice", "least_last", "least_noise", "longest_within", "score_epsilon", "score_multiplier"]

Bound = Literal["smallest", "quick", "renyi", "pure"]
_KEPT_GUARANTEES: Final = 64
_KEPT_NUMBERS: Final = 4096
_FEW_ATOMS: Final = 500
"""Of the quick price, which is a per cent above the sharp one where losses are those of a few runs."""

_SPENT: Final = 5e-4
"""What of the total may be left by the noise of a last run."""


@dataclass(frozen=True)
class SearchPrice:
    """The cost of the best of a random number of runs for a row that takes part in one of `parts`.

    `parts` are the guarantees of one run, by what it does with a row (a row is in one part only, fixed row by row): the
    row pays the largest of the finished curves. `final` is what else is run on all rows, before or after, composed.
    `ratio` bounds how far proposals that learn may go (see `adaptive_best_of`).

    `bound` is one of four. "smallest" is the guaranteed one. "quick" is never below it, and made of fewer atoms in a
    third of the time. "renyi" is a Renyi curve. "pure" is exact for a pure part at delta 0.
    """

    parts: tuple[Guarantee, ...]
    law: Repetitions
    final: Guarantee | None = None
    ratio: tuple[float, float] | None = None
    bound: Bound = "smallest"

    @cached_property
    def guarantee(self) -> Guarantee:
        """The price as a curve."""
        return worst_of(*[_guarantee(asked) for asked in self._asked(self.bound)])

    def epsilon(self, delta: float) -> float:
        """The same as `guarantee.epsilon(delta)`."""
        asked = self._asked(self.bound)
        if len(asked) == 1:
            return _epsilon(asked[0], delta)
        if self.final is None:
            return self.guarantee.epsilon(delta)
        # most of the time is in the sharp curves: those of a part whose quick price is not the largest do not matter
        quick = [_epsilon(each, delta) for each in self._asked("quick")]
        found = 0.0
        for place in sorted(range(len(asked)), key=lambda i: -quick[i]):
            if quick[place] > found:
                found = max(found, _epsilon(asked[place], delta))
        return found

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether `epsilon(delta)` is at most `epsilon`. The sharp curves are computed only if it takes them."""
        several = self.final is not None and self.bound == "smallest"
        if several and max(_epsilon(each, delta) for each in self._asked("quick")) <= epsilon:
            return True
        return self.epsilon(delta) <= epsilon

    def by_renyi(self, delta: float) -> float:
        """Near `epsilon(delta)`, and quick if there is a Renyi curve."""
        several = self.final is not None and self.bound != "pure"
        curves = several and all(g.renyi_curve for g in (*self.parts, self.final) if g is not None)
        near = max(_epsilon(each, delta, by_renyi=True) for each in self._asked("renyi" if curves else self.bound))
        return near if near < math.inf else self.epsilon(delta)

    def approximate_delta(self, epsilon: float) -> float | None:
        """Near the delta at `epsilon` by what a search by itself attains."""
        if self.final is not None or self.bound not in ("smallest", "quick"):
            return None
        found = [_about(each, epsilon) for each in self._asked("smallest")]
        return None if None in found else max(each for each in found if each is not None)

    @property
    def has_profile(self) -> bool:
        """Whether there is more than a Renyi curve or a pure epsilon."""
        return self.bound != "pure" and self.guarantee.profile is not None

    def _asked(self, bound: Bound) -> list[_Asked]:
        if bound == "quick" and self.final is None:
            bound = "smallest"  # there is nothing quicker
        return [_Asked(part, self.law, self.final, self.ratio, bound) for part in self.parts]


@dataclass(frozen=True, eq=False)
class _Asked:
    """One part's price that is asked for. Two are equal if all that they depend on is."""

    part: Guarantee
    law: Repetitions
    final: Guarantee | None
    ratio: tuple[float, float] | None
    bound: Bound

    def work_out(self) -> Guarantee:
        if self.law.minimum == self.law.limit == 1:
            return self.part if self.final is None else compose(self.part, self.final)
        if self.ratio is not None:
            found = adaptive_best_of(self.part, self.law, lower_ratio=self.ratio[0], upper_ratio=self.ratio[1])
            return found if self.final is None else compose(found, self.final)
        if self.final is None:
            return best_of(self.part, self.law, bound="pure" if self.bound == "pure" else None)
        if self.bound in ("renyi", "pure"):
            return compose(best_of(self.part, self.law, bound=self.bound), self.final)
        # a Renyi curve tells how wide the mesh may be
        few = [best_of(self.part, self.law, bound="optimal", atoms=_FEW_ATOMS)]
        if self.part.renyi_curve is not None:
            few.append(best_of(self.part, self.law, bound="renyi"))
        quick = compose(smallest_of(*few), self.final)
        if self.bound == "quick":
            return quick
        sharp = compose(best_of(self.part, self.law), self.final)
        return replace(smallest_of(quick, sharp), terms=sharp.terms)

    @cached_property
    def _cache_key(self) -> bytes | int:
        return cache_key((self.part, self.law, self.final, self.ratio, self.bound)) or id(self)

    def __hash__(self) -> int:
        return hash(self._cache_key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._cache_key == other._cache_key


@lru_cache(maxsize=_KEPT_GUARANTEES)
def _guarantee(asked: _Asked) -> Guarantee:
    return asked.work_out()


@lru_cache(maxsize=_KEPT_NUMBERS)
def _about(asked: _Asked, epsilon: float) -> float | None:
    return GuaranteePrice(_guarantee(asked)).approximate_delta(epsilon)


@lru_cache(maxsize=_KEPT_NUMBERS)
def _epsilon(asked: _Asked, delta: float, *, by_renyi: bool = False) -> float:
    found = _guarantee(asked)
    return GuaranteePrice(found).by_renyi(delta) if by_renyi else found.epsilon(delta)


def least_noise(
    what: str,
    price: Callable[[float], SearchPrice],
    *,
    epsilon: float,
    delta: float,
    relative: float = 1e-4,
    unspent: float = 1e-4,
) -> float:
    """Close above the least noise parameter whose search meets the total. `what` names the noise.

    A price that leaves at most the share `unspent` of epsilon is close enough: each one more that is computed takes
    longer than any other part of a plan.

    A noise that is too small for the learner costs too much, so a large total gives the least noise that it takes.

    Raises `BudgetError` if none does, and `AdjacencyError` for a price of guarantees that do not go together.
    """
    known: list[float] = []

    def within(noise: float) -> SearchPrice:
        try:
            found = price(noise)
        except AdjacencyError:
            raise
        except ArgumentError:
            if not known:
                raise
            return SearchPrice((gaussian(noise_multiplier=1e-9),), Fixed(count=1))  # costs more than any total
        known.append(noise)
        return found

    if delta == 0.0:
        _refuse_without_delta(price, what, epsilon)
    try:
        return least_parameter(within, epsilon=epsilon, delta=delta, relative=relative, unspent=unspent)
    except AdjacencyError:
        raise
    except (BudgetError, ArgumentError) as error:  # parameters have limits of their own
        raise BudgetError(f"no noise of {what} meets epsilon {epsilon:g} at delta {delta:g}: {error}") from None


def _refuse_without_delta(price: Callable[[float], SearchPrice], what: str, epsilon: float) -> None:
    """Raise `BudgetError` if no epsilon holds at delta 0, which a search for the noise would find after minutes."""
    try:
        without = math.isinf(price(1.0).epsilon(0.0))
    except ArgumentError:
        return  # of this noise alone
    if without:
        raise BudgetError(
            f"no noise of {what} meets epsilon {epsilon:g} at delta 0, as it is Gaussian. Write delta = 1e-6"
        )


def least_last(
    make: Callable[[float], Guarantee],
    first: Sequence[Guarantee],
    *,
    epsilon: float,
    delta: float,
) -> float:
    """The least noise of a last run that meets the total with each of `first`. `make` gives its guarantee."""
    noise = 0.0
    for each in first:
        # the noise of one part mostly does for the others
        if noise and _with_last(each, make, noise).epsilon(delta) <= epsilon:
            continue
        found = partial(_with_last, each, make)
        noise = max(noise, least_noise("the second stage", found, epsilon=epsilon, delta=delta, unspent=_SPENT))
    return noise


def _with_last(first: Guarantee, make: Callable[[float], Guarantee], noise: float) -> SearchPrice:
    return SearchPrice((compose(first, make(noise)),), Fixed(count=1))


def score_epsilon(
    law: Repetitions, adjacency: Adjacency, *, epsilon: float, delta: float, final: Guarantee | None = None
) -> float:
    """The epsilon of one noisy count, the score of a run, with which the best of K such runs meets a total.

    `final` is what else the rows pay for, composed.
    """

    def price(scale: float) -> SearchPrice:
        # the pure bound is exact, and all that a pure score needs
        return SearchPrice((NoisyCount(epsilon=1.0 / scale, adjacency=adjacency).guarantee,), law, final, bound="pure")

    return 1.0 / least_noise("the score", price, epsilon=epsilon, delta=delta)


def score_multiplier(
    training: Guarantee,
    law: Repetitions,
    *,
    epsilon: float,
    delta: float,
    final: Guarantee | None = None,
) -> tuple[float, bool]:
    """The noise multiplier of a Gaussian score of held-out rows, and whether training's guarantee covers it.

    If training is as private as a Gaussian mechanism, the score is as well, by the same parameter. A held-out row then
    has the guarantee of a row that trains at every epsilon. Otherwise the best of K such runs meets the total with the
    least noise. `final` is what else the rows pay for, composed.
    """
    if training.gaussian_mu is not None:
        return fraction_up(1 / Fraction(training.gaussian_mu)), True

    def price(noise: float) -> SearchPrice:
        return SearchPrice((gaussian(noise_multiplier=noise, adjacency=training.adjacency),), law, final)

    return least_noise("the score", price, epsilon=epsilon, delta=delta), False


def longest_within(
    price: Callable[[Repetitions], SearchPrice], *, epsilon: float, delta: float, max_runs: int
) -> SearchPrice:
    """The price of the harmonic law with the largest limit, up to `max_runs`, that the total pays for.

    The price is taken to grow with the limit. Were it not to, the answer would be shorter, never too expensive.
    Raises `BudgetError` if one run alone is too expensive.
    """

    def offer(limit: int) -> SearchPrice:
        return price(Harmonic(limit=limit))

    def affordable(limit: int) -> bool:
        return offer(limit).epsilon(delta) <= epsilon

    # the largest limit is often affordable, so it is asked first
    longest = max_runs if affordable(max_runs) else last_true(affordable, 1, max_runs)
    if longest is None:
        raise BudgetError(
            f"one run alone costs epsilon {rounded_up(offer(1).epsilon(delta))} at delta {delta:g}, "
            f"above the total {epsilon:g}"
        )
    return offer(longest)
