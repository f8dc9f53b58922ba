"""How far apart two estimates of one passing probability can be when each counts its own draws.

A private candidate passes a threshold with probability p on one data set and p' on a neighbour. From N fresh draws, of
which X (or Y) pass, a smoothed statistic of the count is compared with a noisy threshold. The sparse vector needs that
the statistic moves by at most `sensitivity` between neighbours. It does, outside a small probability. That probability
is bounded in two ways: by the theorem of the paper, which holds for every N, and by exact binomial tails for this N.

Source: Liu, Talwar 2019, Section 4.2 and 4.3, Lemma 4.3.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsFloat

import numpy as np
from scipy.special import betainc, betaincc

from dpselect.accounting.best_of_k.feasible_region import TradeOff
from dpselect.accounting.candidates.quantile_coupling import apart_by_quantiles, blocks, tail_error
from dpselect.errors import integer, number
from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array

__all__ = [
    "PassCount",
    "SmoothedCount",
    "SmoothedOdds",
    "concentration_smoothing",
    "far_apart_probability",
    "lemma_4_3",
    "lemma_4_3_smoothing",
]


_SPREAD = np.linspace(0.0, 14.0, 57)
"""Where to look for the best split of the two tails: about so many standard deviations below the smaller mean."""

_CELLS = 200
_FINE = 193


@dataclass(frozen=True, kw_only=True)
class PassCount(ABC):
    """A statistic of how many of `samples` draws passed, smoothed, and by how much it may move."""

    samples: int
    smoothing: float
    sensitivity: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", integer("samples", self.samples, at_least=1, at_most=10**9))
        object.__setattr__(self, "smoothing", number("smoothing", self.smoothing, above=0.0))
        object.__setattr__(
            self, "sensitivity", number("sensitivity", self.sensitivity, above=0.0, at_most=500.0, rounding="up")
        )

    @abstractmethod
    def largest_close(self, counts: Array) -> Array:
        """The largest (real) count whose statistic exceeds that of `counts` by at most the sensitivity."""


@dataclass(frozen=True, kw_only=True)
class SmoothedOdds(PassCount):
    """log(X + smoothing) - log(N - X + smoothing): both tails of the percentile count (Section 4.2, Algorithm A4)."""

    def statistic(self, count: float) -> float:
        """The statistic at a count, or at N p for a target p."""
        return math.log(count + self.smoothing) - math.log(self.samples - count + self.smoothing)

    def largest_close(self, counts: Array) -> Array:
        """See `PassCount`."""
        log_ratio = self.sensitivity + np.log(counts + self.smoothing) - np.log(self.samples - counts + self.smoothing)
        share = 1.0 / (1.0 + np.exp(-log_ratio))
        whole = self.samples + 2.0 * self.smoothing
        # rounded down: a smaller count is close too
        return np.asarray(share * whole - self.smoothing - 1e-14 * whole)

    def probability(self, statistic: float) -> float:
        """The passing probability, clipped to [0, 1], whose expected count has this statistic."""
        share = 1.0 / (1.0 + math.exp(-min(max(statistic, -700.0), 700.0)))
        count = share * (self.samples + 2.0 * self.smoothing) - self.smoothing
        return min(max(count / self.samples, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class SmoothedCount(PassCount):
    """log(X + smoothing): the lower tail alone (Section 4.3, Algorithm A5)."""

    def statistic(self, count: float) -> float:
        """The statistic at a count, or at N p for a target p."""
        return math.log(count + self.smoothing)

    def largest_close(self, counts: Array) -> Array:
        """See `PassCount`."""
        return np.asarray(math.exp(self.sensitivity) * (counts + self.smoothing) - self.smoothing)


def _lemma_constant(epsilon: float, slack: float) -> float:
    """epsilon_0 (exp(epsilon_0 + epsilon_1) - 1) / C with C = 2 (exp(epsilon_0 + epsilon_1) + 1 + exp(epsilon_0/2))."""
    near = slack + epsilon
    # over exp(near), so that nothing overflows
    return slack * -math.expm1(-near) / (2.0 * (1.0 + math.exp(-near) + math.exp(0.5 * slack - near)))


def lemma_4_3(*, epsilon: SupportsFloat, slack: SupportsFloat, smoothing: SupportsFloat) -> float:
    """A bound on P(X + smoothing >= exp(epsilon + slack) (Y + smoothing)) for independent X and Y, rounded up.

    X and Y are sums of N independent coins, E X <= exp(epsilon) E Y. N does not matter. Raises `ArgumentError` unless
    slack is in (0, 1). Source: Liu, Talwar 2019, Lemma 4.3 (their A.3), solved for delta_0.

    >>> round(lemma_4_3(epsilon=0.5, slack=0.5, smoothing=88.5117885), 9)
    0.001
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    slack = number("slack", slack, above=0.0, below=1.0)
    smoothing = number("smoothing", smoothing, above=0.0)
    return min(2.0 * math.exp(-_lemma_constant(epsilon, slack) * smoothing) * ROUND_UP, 1.0)


def lemma_4_3_smoothing(*, epsilon: SupportsFloat, slack: SupportsFloat, failure: SupportsFloat) -> float:
    """The smoothing at which `lemma_4_3` gives `failure`: more is private too. Rounded up.

    >>> round(lemma_4_3_smoothing(epsilon=0.5, slack=0.5, failure=1e-3), 7)
    88.5117885
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    slack = number("slack", slack, above=0.0, below=1.0)
    failure = number("failure", failure, above=0.0, below=1.0)
    return math.log(2.0 / failure) / _lemma_constant(epsilon, slack) * ROUND_UP


def concentration_smoothing(*, slack: SupportsFloat, failure: SupportsFloat) -> float:
    """(exp(s/2) + 1) / (exp(s/2) - 1)^2 log(1/failure): needed by the utility claims, not by privacy.

    With less, P(X + smoothing > exp(s/2) (E X + smoothing)) may exceed `failure`: the constant that the paper uses for
    privacy is too small for its utility statements when the base epsilon is well above the slack.
    Source: Liu, Talwar 2019, Lemma A.4, with its own constant.

    >>> round(concentration_smoothing(slack=0.1, failure=5e-5), 5)
    7727.9804
    """
    slack = number("slack", slack, above=0.0, below=1.0)
    failure = number("failure", failure, above=0.0, below=1.0)
    growth = math.expm1(0.5 * slack)
    return (growth + 2.0) / growth**2 * math.log(1.0 / failure) * ROUND_UP


@lru_cache(maxsize=128)
def far_apart_probability(
    statistic: PassCount, trade_off: TradeOff, *, coupled: bool = False, enough: float = 0.0
) -> float:
    """The largest P(statistic(Y) - statistic(X) > sensitivity) for X, Y binomial with p' <= trade_off(p), rounded up.

    Regardless of the coupling of X and Y: for any count x the event needs X < x, or Y above the largest count close
    to x. The smallest sum of these two exact tails is taken. `coupled`: for the one coupling by quantiles, which a
    query with draws of its own allows (`dpselect.accounting.candidates.quantile_coupling` has the proof). The smaller
    of both.

    p runs over cells: all of these fall with p and rise with p', so a cell is bounded by its ends. Cells are halved
    where the bound is largest until it is within 2 % of a value that is met (by quantiles of many draws, a
    quarter). With `enough` cells are not followed below it, and the answer is 1 as soon as a larger value is met.
    """
    bound, near = (_coupled, 1.02 if statistic.samples < _FINE else 1.25) if coupled else (_any_coupling, 1.02)
    ends = np.geomspace(1e-6 / statistic.samples, 0.5, _CELLS)
    edges = np.concatenate(([0.0], ends, 1.0 - ends[-2::-1], [1.0]))

    def met(low: Array) -> Array:
        return bound(statistic, low, np.asarray(trade_off(low)), 0.0)

    def measure(cells: Array, settled: float) -> tuple[Array, Array]:
        low, high = cells
        bounds = bound(statistic, low, np.asarray(trade_off(high)), max(settled, near * first))
        values, worst = np.full(low.size, first), np.argsort(bounds)[-16:]
        values[worst] = met(low[worst])
        return bounds, values

    first = float(np.max(met(edges[:-1:8])))
    stop = math.nextafter(enough, 1.0) if enough > 0.0 else math.inf
    if first >= stop:
        return 1.0
    found = supremum_over_cells(
        measure, np.array([edges[:-1], edges[1:]]), relative=near - 1.0, enough=enough, stop=stop
    )
    return 1.0 if found.attained >= stop else min(found.bound, 1.0)


def _any_coupling(statistic: PassCount, low: Array, far: Array, least: float) -> Array:  # noqa: ARG001
    return _tails(statistic, low, far)


def _coupled(statistic: PassCount, low: Array, far: Array, least: float) -> Array:
    """By the quantiles, with few blocks of counts first: what is above `least` then is worth many."""
    found = _by_quantiles(statistic, low, far, 33)
    loose = found > least
    if np.any(loose):
        fine = _by_quantiles(statistic, low[loose], far[loose], _FINE)
        found[loose] = np.minimum(np.minimum(fine, found[loose]), _tails(statistic, low[loose], far[loose]))
    return found


def _by_quantiles(statistic: PassCount, low: Array, far: Array, count: int) -> Array:
    breaks = blocks(statistic.samples, low, count)
    # a smaller count than the one that is close makes the event larger, so rounding down is safe
    close = statistic.largest_close(breaks[:, :-1]) * (1.0 - 1e-12)
    return apart_by_quantiles(close, breaks, statistic.samples, low, far)


def _tails(statistic: PassCount, low: Array, far: Array) -> Array:
    """The smallest sum of P(X < x) at p = low and of P(Y above what is close to x) at p' = far."""
    n = statistic.samples
    deviation = np.sqrt(n * low * (1.0 - low))
    # by Bernstein's inequality a rare failure is found this far down, the mean being near N or not
    down = np.outer(deviation, _SPREAD) + 0.5 * _SPREAD**2
    x = np.floor(np.clip(n * low[:, None] - down, 0.0, n))
    x[:, -1] = 0.0
    y = np.floor(np.clip(statistic.largest_close(x) * (1.0 - 1e-12), 0.0, n))
    with np.errstate(under="ignore"):
        below = np.where(x > 0.0, betaincc(np.maximum(x, 1.0), n - np.maximum(x, 1.0) + 1.0, low[:, None]), 0.0)
        top = np.minimum(y, n - 1.0)
        above = np.where(y < n, betainc(top + 1.0, n - top, np.clip(far, 0.0, 1.0)[:, None]), 0.0)
    return np.asarray(np.min(np.nan_to_num(below + above, nan=2.0), axis=1) * (1.0 + tail_error(n)))
