"""The exponential mechanism over private candidates with dummies: a fixed number of runs (Liu, Talwar 2019, App. C).

N independent draws of a private proposal have weights w in [0, 1], functions of their scores. One draw, or a dummy of
weight W = 1 + 1/gamma, is released with probability proportional to its weight. Write S for the sum of the others'
weights: a draw is released with density N q w E[1 / (w + W + S)]. Between neighbours q moves by what the base allows
and the expectation, in which W stands, by a factor exp(shift).

The shift is at most epsilon_1, so the price is at most 2 epsilon_1 for any weights, any number of draws and any W >= 1:
the theorem's extra term in gamma is not needed. Proof. Let t = exp(-epsilon_1), o >= 1. As one law is at least t times
the other, S is at least the sum of those w'_i whose coin of probability t lands heads, in distribution. Given the w',
1/(o + .) of that sum has the mean

    int_0^inf exp(-o y) prod_i (1 - t + t exp(-w'_i y)) dy <= int_0^inf exp(-o y) (1 - t + t exp(-y))^n dy,  n = S',

for log(1 - t + t exp(-w y)) is convex in w and 0 at w = 0. Put exp(-x) = 1 - t + t exp(-y), hence exp(-y) <= exp(-x):
the right side is at most int_0^inf exp(-(n + o) x) dx / t = exp(epsilon_1) / (o + S'). QED
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from dpselect.accounting.best_of_k.feasible_region import PureTradeOff, TradeOff, symmetric_trade_off, trade_offs
from dpselect.errors import BoundUnavailableError, integer, number
from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, pure_dp
from dpselect.privacy.profile import PrivacyProfile
from dpselect.privacy.promises import promise

__all__ = [
    "dummy_runs_needed",
    "reciprocal_shift",
    "select_among_dummies",
    "theorem_c_1",
]


_CELLS = 100
_QUADRATURE = 1e-9


def theorem_c_1(base: Guarantee, *, gamma: SupportsFloat, sharpened: bool = True) -> Guarantee:
    """2 epsilon_1 + log(1 + 3 gamma / (1 - gamma)), or + 8 gamma as printed, for any number of runs and any weights.

    gamma in (0, 1/4), and the base must be pure. The sharper form is the last but one line of the printed proof.
    `select_among_dummies` needs no such term.
    Source: Liu, Talwar 2019, Theorem C.1.

    >>> from dpselect.privacy import pure_dp
    >>> round(theorem_c_1(pure_dp(epsilon=1.0), gamma=0.1).epsilon(delta=0), 8)
    2.28768207
    """
    base = promise("base", base)
    gamma = number("gamma", gamma, above=0.0, below=0.25)
    if base.failure > 0.0 or not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError("Theorem C.1 needs a base with pure privacy")
    extra = math.log1p(3.0 * gamma / (1.0 - gamma)) if sharpened else 8.0 * gamma
    return pure_dp(epsilon=(2.0 * base.pure_epsilon + extra) * ROUND_UP, adjacency=base.adjacency)


def dummy_runs_needed(*, gamma: SupportsFloat, mean_weight: SupportsFloat, dummy_probability: SupportsFloat) -> int:
    """The number N of runs at which nothing but a dummy is released with probability beta at most.

    That probability is at most (gamma + 1) / (N p gamma + 1), p the mean weight of a draw. Source: Liu, Talwar 2019,
    Theorem C.1.

    >>> dummy_runs_needed(gamma=0.1, mean_weight=1 / 20, dummy_probability=0.05)
    4200
    """
    gamma = number("gamma", gamma, at_least=1e-12, below=0.25)
    p = number("mean_weight", mean_weight, at_least=1e-12, at_most=1.0)
    beta = number("dummy_probability", dummy_probability, above=0.0, below=1.0)
    return max(math.ceil(((1.0 + gamma) / beta - 1.0) / (p * gamma) * (1.0 - 1e-12)), 1)


def reciprocal_shift(*, runs: int, offset: float, trade_off: TradeOff, coins: bool, most: float = math.inf) -> float:
    """The largest log of E[1 / (offset + S)] over E[1 / (offset + S')], rounded up, with S, S' sums of `runs` weights.

    Weights are independent, in [0, 1], with means m and m' <= trade_off(m): the mean weight is the probability of a
    randomised event. `coins`: weights are 0 or 1, so S is binomial and the result is exact up to its cells. Otherwise
    E[1 / (offset + S)] <= that of a binomial sum with the same mean (1/x is convex) and >= 1 / (offset + N m')
    (Jensen), which bounds the ratio for all weights. `most` is a bound that is known already.
    """
    if runs == 0:
        return 0.0
    inner = np.geomspace(1e-3 / runs, 0.5, _CELLS)
    edges = np.concatenate(([0.0], inner, 1.0 - inner[-2::-1], [1.0]))

    def shifts(near: Array, far: Array) -> Array:
        least = _reciprocal(runs, offset, far) if coins else 1.0 / (offset + runs * far)
        return np.asarray(np.log(_reciprocal(runs, offset, near) / least))

    def measure(cells: Array, settled: float) -> tuple[Array, Array]:  # noqa: ARG001
        low, high = cells
        return shifts(low, np.minimum(trade_off(high), 1.0)), shifts(low, np.minimum(trade_off(low), 1.0))

    cells, stop = np.array([edges[:-1], edges[1:]]), (most - 1e-9) / (1.0 + 1e-4)
    found = supremum_over_cells(measure, cells, relative=1e-4, absolute=1e-9, stop=stop)
    return most if found.attained >= stop else min(found.bound + _QUADRATURE, most)


def _reciprocal(runs: int, offset: float, probability: Array) -> Array:
    """E[1 / (offset + Bin(runs, p))], the integral over y > 0 of exp(-offset y) (1 - p (1 - exp(-y)))^runs.

    Gauss-Legendre nodes on panels that double from the shortest scale, 1 / (offset + runs), to where exp(-offset y)
    is below 1e-26. Accurate to about 1e-13 of itself.
    """
    first = 1.0 / (offset + runs)
    panels = math.ceil(math.log2(60.0 / (offset * first))) + 1
    ends = np.concatenate(([0.0], first * 2.0 ** np.arange(panels)))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(ends)[:, None]
    y = (ends[:-1, None] + half * (nodes + 1.0)).ravel()
    with np.errstate(under="ignore", divide="ignore"):
        shared = np.exp(-offset * y) * (half * weights).ravel()
        # no more than a few hundred thousand numbers at once
        parts = np.array_split(probability, max(probability.size // 1000, 1))
        gone = -np.expm1(-y)
        return np.concatenate([np.exp(runs * np.log1p(-p[:, None] * gone)) @ shared for p in parts])


@dataclass(frozen=True)
class DummyProfile(PrivacyProfile):
    """The privacy profile: N / (1 + W) H(e - shift) of the base for draws, and (1 - exp(e - shift))_+ for the dummy.

    A draw's density is N w q A with A = E[1 / (w + W + S)] <= 1 / (w + W), and A' >= exp(-shift) A.
    """

    profile: PrivacyProfile
    factor: float
    shift: float
    dummy_shift: float
    theorem: str = "exponential mechanism with dummies, hockey-stick bound"

    def _direction(self, epsilons: Array, values: Array) -> Array:
        dummy = -np.expm1(np.minimum(epsilons - self.dummy_shift, 0.0))
        return np.minimum((self.factor * values + dummy) * ROUND_UP, 1.0)

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(A || A')."""
        asked = np.asarray(epsilons, dtype=np.float64)
        return self._direction(asked, self.profile.remove(asked - self.shift))

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(A' || A)."""
        asked = np.asarray(epsilons, dtype=np.float64)
        return self._direction(asked, self.profile.add(asked - self.shift))


def select_among_dummies(
    base: Guarantee, *, runs: int, gamma: SupportsFloat, sharpness: SupportsFloat = math.inf
) -> Guarantee:
    """The guarantee of releasing one of `runs` draws, or a dummy, by weight.

    A draw of score q has weight exp(sharpness (min(threshold, q) - threshold)); at sharpness inf, 1 if it reaches the
    threshold and 0 otherwise. A pure base costs at most 2 epsilon_1 (see the module), and what the numbers of runs and
    dummies take off that is bounded numerically: exactly for sharpness inf. Bases with a failure mass: outside
    1 - (1 - failure)^runs, which is the same event on all data sets. Any other base has a profile. `gamma` is in
    [1e-12, 1/4). Same adjacency, rounded up. Source: Liu, Talwar 2019, Theorem C.1.

    >>> from dpselect.privacy import pure_dp
    >>> round(select_among_dummies(pure_dp(epsilon=1.0), runs=100, gamma=0.1).epsilon(delta=0), 3)
    1.792
    """
    base = promise("base", base)
    runs = integer("runs", runs, at_least=1, at_most=10**9)
    gamma = number("gamma", gamma, at_least=1e-12, below=0.25)
    sharp = number("sharpness", sharpness, above=0.0, finite=False)
    weight, coins = 1.0 + 1.0 / gamma, math.isinf(sharp)
    # the ratio falls with the winner's own weight: at least 0, and 1 where weights are coins
    own = weight + 1.0 if coins else weight

    def draw_shift(trade_off: TradeOff, most: float) -> float:
        return reciprocal_shift(runs=runs - 1, offset=own, trade_off=trade_off, coins=coins, most=most)

    pure, theorem = math.inf, "exponential mechanism with dummies (Liu, Talwar 2019, Theorem C.1, numeric)"
    if math.isfinite(base.pure_epsilon):
        # a draw costs the base and its shift; a dummy costs a shift alone, which is no more than the base does
        pure = (base.pure_epsilon + draw_shift(PureTradeOff(base.pure_epsilon), base.pure_epsilon)) * ROUND_UP
        if coins:
            theorem = "exponential mechanism with dummies, exact for a threshold (after Liu, Talwar 2019, Theorem C.1)"
    most = base.pure_epsilon if base.failure == 0.0 else math.inf
    region = symmetric_trade_off(trade_offs(base))
    shift = draw_shift(region, most)
    dummy = reciprocal_shift(runs=runs, offset=weight, trade_off=region, coins=coins, most=most)
    failure = (0.0 - math.expm1(runs * math.log1p(-base.failure))) * ROUND_UP if base.failure < 1.0 else 1.0
    return Guarantee(
        adjacency=base.adjacency,
        theorem=theorem,
        terms={
            "mechanism": "dummies",
            "base": dict(base.terms),
            "runs": runs,
            "gamma": gamma,
            "sharpness": sharp,
        },
        failure=min(failure, 1.0),
        pure_epsilon=pure if failure < 1.0 else math.inf,
        profile=DummyProfile(base.best_profile(), runs / (1.0 + weight), shift, dummy),
    )
