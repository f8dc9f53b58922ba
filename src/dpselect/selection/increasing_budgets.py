"""Candidates at increasing budgets: release the cheapest that is good enough, and pay for that one.

Ghazi, Kamath, Knop, Kumar, Manurangsi, Zhang, "Private hyperparameter tuning with ex-post guarantee" (2025): for any
sequence of private estimators the released one costs at most twice its own budget. The form that is proved and priced
here, more sharply and for any law of the number of runs: docs/theory/increasing-budgets.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from dpselect.accounting.best_of_k.bounds.pure import pure_shift
from dpselect.accounting.optimal.first_acceptable import first_acceptable
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import Mechanism
from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.logs import ROUND_UP, sum_up
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, OutputGuarantee, Release
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promises
from dpselect.randomness import RandomSource
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law
from dpselect.selection.candidates import Candidate, PrivateCandidate, check_candidate, or_nothing, run_once
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["SelectIncreasing", "released_level"]

NOTHING = "nothing"
"""The cell of a search that released nothing."""

_ROUNDING = 1e-12
"""What the difference of two logarithms may be off."""


def released_level(value: tuple[int, Any] | None) -> Hashable:
    """The cell of what `SelectIncreasing` releases: the level, or "nothing".

    >>> released_level((2, "a model")), released_level(None)
    (2, 'nothing')
    """
    return NOTHING if value is None else value[0]


@dataclass(frozen=True, kw_only=True)
class SelectIncreasing(Mechanism):
    """Draw a number of runs, spread them over the levels at random, and release the first that clears a threshold.

    Each of the K runs falls to a level by a public coin. The cheapest level's runs come first. The first run whose
    score is at least the threshold ends the search: the value is (level, output). If none does, it is None. A run that
    raises or scores NaN clears no threshold. K, the failed runs and their number are not released. The time that the
    search takes can be seen, and is not covered. To try several hyperparameters at one budget, make a `private_mixture`
    of them.

    `guarantee`, by the level released: level i costs its own epsilon plus the largest
    log phi'(1 - u) - log phi'(1 - u') that the budgets of levels 0 .. i allow: with a truncated negative binomial
    number of runs at most (2 + eta) times its own epsilon, no matter what the later levels cost. "nothing" costs what
    the level with the largest price does. A fixed number of runs has no coin to cover its failures and costs what
    composition does, or nothing finite with a `delta` and several levels. One level alone costs what the first
    acceptable of K runs does at the delta of the whole, which is exact (docs/theory/optimal-selection.md, Theorem 2).

    Args:
        levels: the guarantee of one run at each level, its score and failure included (you must ensure this), in
            the order in which they are tried.
        repetitions: the law of the number of runs, over all levels together.
        weights: positive integers: how often a run falls to each level, in proportion. Equal by default.
        delta: at which each level's guarantee is read, for levels without a pure epsilon. The delta of the whole is
            E[K] times this, common to all cells, rounded up.

    Raises `ArgumentError` unless the epsilons at `delta` are finite and do not decrease, or when no price is finite or
    the total delta reaches 1; `AdjacencyError` for mixed adjacencies. Source: docs/theory/increasing-budgets.md,
    Theorem 1.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> from dpselect.repetitions import Logarithmic
    >>> budgets = (0.25, 0.5, 1.0)
    >>> select = SelectIncreasing(
    ...     levels=[pure_dp(epsilon=e) for e in budgets], repetitions=Logarithmic.with_mean(mean=10))
    >>> {cell: round(epsilon, 3) for cell, epsilon in select.guarantee.epsilons.items()}
    {0: 0.464, 1: 0.926, 2: 1.839, 'nothing': 1.839}
    >>> def candidate(epsilon):
    ...     return lambda random: (90.0 + float(random.laplace(1)[0]) / epsilon, "a model")
    >>> release = select([candidate(epsilon) for epsilon in budgets], threshold=50, random=keyed_source(1))
    >>> release.value, round(release.realised.price, 3)
    ((0, 'a model'), 0.464)
    """

    levels: Sequence[Guarantee]
    repetitions: Repetitions
    weights: Sequence[SupportsIndex] | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", promises("levels", self.levels))
        if not self.levels:
            raise ArgumentError("levels must hold at least one guarantee")
        object.__setattr__(self, "delta", number("delta", self.delta, at_least=0.0, below=1.0, rounding="down"))
        expect_law(self.repetitions)
        common_adjacency(level.adjacency for level in self.levels)
        self._parts()

    @cached_property
    def guarantee(self) -> OutputGuarantee:
        """The price by the level released, and of "nothing". A spender reserves it."""
        base, law = self.delta, self.repetitions
        epsilons = [number("levels", g.epsilon(delta=base), at_least=0.0) for g in self.levels]
        if any(later < earlier for earlier, later in pairwise(epsilons)):
            raise ArgumentError("levels must be in the order of their budgets: an epsilon is below the one before")
        total = number("delta", sum_up([base * law.mean * ROUND_UP]), below=1.0, rounding="down") if base > 0.0 else 0.0
        parts = self._parts()
        shares = [part / sum(parts) for part in parts]
        prices: dict[Hashable, float] = {}
        for level, epsilon in enumerate(epsilons):
            shift = _largest_shift(law, _Reach.of(epsilons[: level + 1], shares[: level + 1], base))
            if base == 0.0:
                shift = min(shift, pure_shift(law, epsilon))  # as if all levels had this one's budget
            prices[level] = (epsilon + shift + _ROUNDING) * ROUND_UP
        if len(prices) == 1:
            prices[0] = min(prices[0], first_acceptable(self.levels[0], law).epsilon(total))
        if math.isinf(max(prices.values())):
            raise ArgumentError("repetitions: this law gives no finite price; it must allow for a single run")
        prices[NOTHING] = max(prices.values())
        return OutputGuarantee(cell=released_level, epsilons=prices, delta=total, adjacency=self.levels[0].adjacency)

    def prepared(
        self, candidates: Sequence[Candidate], *, threshold: SupportsFloat, rehearse: Rehearsal = True
    ) -> Callable[[RandomSource], tuple[int, Any] | None]:
        """The search among candidates, one for each level. `threshold` is fixed without the data.

        A `PrivateCandidate` must promise its level's guarantee, the same object. `rehearse`: as in `select_best`, for
        every level.
        """
        if len(candidates) != len(self.levels):
            raise ArgumentError(f"candidates must be as many as there are levels, {len(self.levels)}")
        for candidate, level in zip(candidates, self.levels, strict=True):
            if isinstance(candidate, PrivateCandidate) and candidate.guarantee is not level:
                raise ArgumentError("candidates must promise what the levels say, each the one at its place")
            check_candidate(candidate, rehearse)
        bar = number("threshold", threshold, finite=False)
        return lambda random: self._first_that_clears(candidates, bar, random)

    def _first_that_clears(
        self, candidates: Sequence[Candidate], bar: float, random: RandomSource
    ) -> tuple[int, Any] | None:
        last = np.cumsum(self._parts())
        runs = [0] * len(last)
        for _ in range(self.repetitions.sample(random)):
            runs[int(np.searchsorted(last, random.below(int(last[-1])), side="right"))] += 1
        with silence():
            for level, candidate in enumerate(candidates):
                for _ in range(runs[level]):
                    outcome = run_once(candidate, random)
                    if outcome is not None and outcome.score >= bar:
                        return level, outcome.output
        return None

    def _parts(self) -> list[int]:
        if self.weights is None:
            return [1] * len(self.levels)
        if len(self.weights) != len(self.levels):
            raise ArgumentError("weights must be as many as there are levels")
        return [integer("weights", weight, at_least=1, at_most=10**6) for weight in self.weights]

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """A release, with a warning when it holds nothing."""
        return or_nothing(Release, self.repetitions.zero_probability)


@dataclass(frozen=True, eq=False)
class _Reach:
    """How likely "something better" may be on the neighbour: T(u), concave and piecewise linear, at its breakpoints.

    `masses` rise from 0 to the share of all levels that can be better, and `far` is T there.
    """

    masses: Array
    far: Array

    @classmethod
    def of(cls, epsilons: Sequence[float], shares: Sequence[float], delta: float) -> _Reach:
        """The best split of u over the levels, steepest first.

        At one level t(u) = min(exp(epsilon) u + delta, 1 - exp(-epsilon) (1 - delta - u), 1), with a kink at
        (1 - delta)/(1 + exp(epsilon)).
        """
        pieces = []
        for epsilon, share in zip(epsilons, shares, strict=True):
            kink = (1.0 - delta) / (1.0 + math.exp(epsilon))
            pieces.append((math.exp(epsilon), share * kink))
            pieces.append((math.exp(-epsilon), share * (1.0 - delta - kink)))
            pieces.append((0.0, share * delta))
        pieces.sort(reverse=True)
        slopes, widths = np.array(pieces).T
        masses = np.concatenate(([0.0], np.cumsum(widths)))
        start = delta * math.fsum(shares)
        far = np.concatenate(([start], start + np.cumsum(slopes * widths)))
        # an upper bound on T: the sums are off by a few roundings
        return cls(np.minimum(masses, 1.0), np.minimum(far * ROUND_UP, 1.0))

    def __call__(self, masses: Array) -> Array:
        """T at these masses, rounded up."""
        return np.minimum(np.interp(masses, self.masses, self.far) * ROUND_UP, 1.0)


def _largest_shift(law: Repetitions, reach: _Reach) -> float:
    """An upper bound on the largest log phi'(1 - u) - log phi'(1 - T(u)), close to it."""
    end = min(float(reach.masses[-1]) * ROUND_UP, 1.0)
    grid = np.unique(np.concatenate(([0.0, end], reach.masses, end * np.exp(-np.linspace(60.0, 0.0, 601)))))
    return supremum_over_cells(lambda cells, _: _cell_shifts(law, reach, *cells), np.array([grid[:-1], grid[1:]])).bound


def _cell_shifts(law: Repetitions, reach: _Reach, left: Array, right: Array) -> tuple[Array, Array]:
    """Upper bounds on the shift in cells [left, right], where T is linear, and its values at the right ends.

    phi' and phi'' fall as u grows. So the shift is at most its first term at the left end less its second at the right
    end; and at most its value at the left end plus its largest rise, with r = phi''/phi' at the arguments that make
    the slope r(T(u)) T' - r(u) largest.
    """
    far_left, far_right = reach(left), reach(right)
    near_left, near_right = law.log_derivative(left), law.log_derivative(right)
    log_far_left, log_far_right = law.log_derivative(far_left), law.log_derivative(far_right)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        simple = near_left - log_far_right
        rising = (far_right - far_left) * law.second_derivative(far_left) / np.exp(log_far_right)
        falling = (right - left) * law.second_derivative(right) / np.exp(near_left)
        refined = near_left - log_far_left + np.maximum(rising - falling, 0.0)
        # T is clipped at 1, inside a cell
        refined = np.where(far_right < 1.0, refined, math.inf)
        attained = near_right - log_far_right
    bounds = np.nan_to_num(np.fmin(simple, refined), nan=math.inf, posinf=math.inf)
    return np.maximum(bounds, 0.0), np.maximum(np.nan_to_num(attained, nan=0.0, posinf=0.0), 0.0)
