"""Means of bounded functions of a row: Gaussian noise on the whole sample, certified by the same idea.

For a mean over all rows the noise that makes k answers private is small already, and no block is needed. This beats the
median of block means whenever the bounds of the function are known. For heavy tails and for everything that is not a
mean, `AdaptiveAnalysis` is the tool.

The condition and its proof are Theorem 4 of docs/theory/generalisation.md, with trade-off bound h, eta the expected
shortfall and kappa = error - noise_error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
from scipy.special import ndtr, ndtri

from dpselect.adaptive.blocks import normal_loss
from dpselect.adaptive.subsamples import row_count, row_values
from dpselect.errors import ArgumentError, BudgetError, integer, number
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.numerics.search import root_between
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, gaussian, paid
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["AdaptiveMeans", "MeanPlan", "largest_excess", "plan_means"]

_BITS = 30
_ROUNDING = 2.0**-28
"""More than the fixed-point form of a value and the noise grid move a mean by, in units of the range."""


@dataclass(frozen=True, kw_only=True)
class MeanPlan:
    """`queries` means of functions into [0, 1] over `rows` rows, all within `error` of the population mean.

    Except with probability `failure_probability`. `deviation` is that of the noise on a mean.
    """

    queries: int
    rows: int
    failure_probability: float
    error: float
    noise_error: float
    deviation: float

    @property
    def answer_mu(self) -> float:
        """One answer is as private for a replaced row as N(0,1) against N(mu,1)."""
        return 1.0 / (self.rows * self.deviation) * (1.0 + 1e-12)

    @property
    def certified(self) -> bool:
        """Whether the inequalities of the theorem hold, evaluated once more."""
        mu, beta = math.sqrt(self.queries) * self.answer_mu, self.failure_probability
        x = (self.noise_error - _ROUNDING) / self.deviation
        shortfall = 2.0 * self.queries * self.deviation * float(normal_loss(max(x, 0.0)))
        kappa = self.error - self.noise_error
        return x >= 0.0 and kappa * beta - shortfall > largest_excess(mu, beta) * (1.0 + 1e-9)


def largest_excess(mu: float, beta: float) -> float:
    """An upper bound on the largest over q in [0, beta] of min(h(q) - q, (beta - q) - h^-1(beta - q)).

    Both are largest at their upper end while beta is below ndtr(-mu/2), where h(q) - q grows. So they cross once.
    """
    if beta > float(ndtr(-mu / 2.0)):
        return math.inf

    def crossed(q: float) -> bool:
        up = float(ndtr(ndtri(q) + mu)) - q
        rest = beta - q
        return up >= rest - float(ndtr(ndtri(rest) - mu))

    high = root_between(crossed, safe=beta, unsafe=0.0, relative=1e-11)
    return float(ndtr(ndtri(high) + mu)) - high


def _at(plan: MeanPlan, share: float, excess: float, x: float) -> MeanPlan:
    """The plan's error for a mu and a distance of x deviations for the noise. The rest is needed by the theorem.

    `excess` is the largest one at that mu.
    """
    deviation = math.sqrt(plan.queries) / (plan.rows * share) * (1.0 + 1e-9)
    noise_error = deviation * x * (1.0 + 1e-9) + _ROUNDING
    shortfall = 2.0 * plan.queries * deviation * float(normal_loss(x))
    beta = plan.failure_probability
    kappa = (excess * (1.0 + 1e-8) + shortfall) / beta * (1.0 + 1e-9)
    return replace(plan, error=kappa + noise_error, noise_error=noise_error, deviation=deviation)


def plan_means(
    *, queries: int, rows: int, failure_probability: SupportsFloat, largest_mu: SupportsFloat = 1.0
) -> MeanPlan:
    """The smallest error, nearly, that `rows` rows certify for `queries` adaptive means of functions into [0, 1].

    `largest_mu` limits what all answers together cost a row: no more than telling N(0,1) from N(largest_mu,1). Raises
    `ArgumentError` when even an error of one half is not certified.
    Source: docs/theory/generalisation.md, Theorem 4.

    >>> plan = plan_means(queries=100, rows=100_000, failure_probability=0.05)
    >>> round(plan.error, 3), plan.certified
    (0.042, True)
    """
    beta = number("failure_probability", failure_probability, at_least=1e-12, at_most=0.25)
    start = MeanPlan(
        queries=integer("queries", queries, at_least=1, at_most=1 << 60),
        rows=integer("rows", rows, at_least=1, at_most=1 << 30),
        failure_probability=beta,
        error=math.inf,
        noise_error=0.0,
        deviation=1.0,
    )
    most = math.log(number("largest_mu", largest_mu, at_least=1e-9, at_most=1.0))
    best, at, reach = start, (min(math.log(0.1), most), 4.5), (5.0, 4.0)
    for _ in range(9):
        for log_mu in np.linspace(at[0] - reach[0], min(at[0] + reach[0], most), 13):
            share = math.exp(log_mu)
            excess = largest_excess(share, beta)
            for x in np.linspace(max(at[1] - reach[1], 0.1), at[1] + reach[1], 13):
                found = _at(start, share, excess, float(x))
                if found.error < best.error:
                    best, at = found, (float(log_mu), float(x))
        reach = (reach[0] / 3.0, reach[1] / 3.0)
    if best.error > 0.5 or not best.certified:
        raise ArgumentError("rows are too few for this many queries: no error below one half is certified")
    return best


class AdaptiveMeans(Session):
    """Adaptive questions "what is the mean of this bounded function of a row?" with a certificate for all of them.

    `plan.error`, times the width of a question's bounds, is the certified distance from the population's mean. Privacy
    of a row (replace-one) is that of Gaussian noise, exactly.

    Args:
        data: private rows: a NumPy array, a list, a pandas or polars frame, or a tuple of such with equally many rows.
            You must ensure that the rows are independent draws from one population. Their number is public, and at most
            2**30.
        queries: how many means you may ask for, an integer in [1, 2**60].
        failure_probability: the probability, at most, that some answer is further off than `plan.error` says, all
            answers together, in [1e-12, 0.25].
        spender: the budget that pays for each answer when you ask. None, the default, charges nothing.
        label: the public name of the answers in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Raises:
        ArgumentError: for a parameter out of range, or if no error below one half is certified for so few rows.
        TypeError: if a parameter is not a number, or `random` is not a `RandomSource`.

    >>> from dpselect.randomness import keyed_source
    >>> rows = np.random.default_rng(0).normal(size=100_000)
    >>> means = AdaptiveMeans(rows, queries=100, failure_probability=0.05, random=keyed_source(1))
    >>> abs(means.mean(lambda x: x > 0, lower=0, upper=1).value - 0.5) < means.plan.error
    True
    """

    def __init__(
        self,
        data: Any,
        *,
        queries: int,
        failure_probability: SupportsFloat,
        spender: Spender | None = None,
        label: str = "adaptive-means",
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        self._random, self._spender, self._label = resolve(random), spender, label
        self._data = data
        self._plan = plan_means(queries=queries, rows=row_count(data), failure_probability=failure_probability)
        self._asked = 0

    @property
    def plan(self) -> MeanPlan:
        """The certified plan."""
        return self._plan

    @property
    def remaining(self) -> int:
        """How many means may still be asked for."""
        return self._plan.queries - self._asked

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one answer for a row."""
        return gaussian(noise_multiplier=1.0 / self._plan.answer_mu, adjacency=Adjacency.REPLACE_ONE)

    @answers
    def mean(self, function: Callable[[Any], Any], *, lower: SupportsFloat, upper: SupportsFloat) -> Release:
        """The noisy mean of `function(data)`, one value a row, clipped at the public bounds.

        Each value must depend on its own row only (you must ensure this). NaN counts as `lower`. Should the function
        raise, or give something else than one number a row, it gets the rows one at a time. Rows on which it fails
        count as `lower`, so one row never decides over the others.

        Raises `BudgetError` when no question is left or the spender refuses.
        """
        if not callable(function):
            raise TypeError("function must be callable")  # before anything is charged
        low, high = number("lower", lower), number("upper", upper)
        if not low < high:
            raise ArgumentError("lower must be below upper")
        guarantee = self.guarantee
        if self.remaining < 1:
            raise BudgetError(f"all {self._plan.queries} questions were asked")

        def run() -> float:
            self._asked += 1
            share = self._noisy_share(function, low, high)
            return min(max(low + share * (high - low), low), high)

        replayable = self._random.replayable
        return paid(run, guarantee, spender=self._spender, label=self._label, replayable=replayable)

    def _noisy_share(self, function: Callable[[Any], Any], low: float, high: float) -> float:
        """The mean of the values as shares of the range: a sum of integers with whole noise, so exact."""
        rows = self._plan.rows
        values = row_values(function, self._data, rows)
        shares = np.clip(np.nan_to_num((values - low) / (high - low), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        total = int(np.rint(shares * 2.0**_BITS).astype(np.int64).sum())
        noise = gaussian_steps(self._plan.deviation * rows * 2.0**_BITS, 1, self._random)[0]
        return float((total + int(noise)) / (rows << _BITS))

    def __repr__(self) -> str:
        return f"<AdaptiveMeans, {self.remaining} of {self._plan.queries} questions left>"
