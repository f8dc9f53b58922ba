"""How far apart the two probabilities of one event can be: upper edges of a base guarantee's feasible region.

For a probability v of an event under one data set, a trade-off T gives T(v) >= v', its largest probability under the
neighbour. Every T here is non-decreasing and an upper bound, rounded up. Lemma 7 of Papernot and Steinke (2022) and
the hockey-stick bounds of Koskela, Redberg and Wang (2024) need nothing else of the base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee

__all__ = [
    "ExtremeTradeOff",
    "GaussianTradeOff",
    "LineTradeOff",
    "PureTradeOff",
    "TradeOff",
    "loss_range",
    "profile_trade_off",
    "renyi_trade_off",
    "symmetric_trade_off",
    "trade_offs",
]

Curve = Callable[[Array], Array]
TradeOff = Callable[[Array], Array]

_RANGE = np.concatenate(([0.0], np.geomspace(1e-6, 200.0, 160)))
_LINES = 1000
_REGION_ORDERS = 1.0 + np.geomspace(0.02, 3e4, 48)
_LARGEST_ORDER = 1e5
_LOGITS = np.linspace(-60.0, 6.0, 241)
_COARSER = 10
_BELOW_ONE = 1.0 - 1e-9


@dataclass(frozen=True)
class GaussianTradeOff:
    """N(0,1) against N(mu,1): T(v) = Phi(Phi^-1(v) + mu), exact (Dong, Roth, Su 2022). Not implied by zCDP."""

    mu: float

    def __call__(self, v: Array) -> Array:
        return np.minimum(ndtr(ndtri(v) + self.mu) * ROUND_UP, 1.0)


@dataclass(frozen=True)
class PureTradeOff:
    """(epsilon, 0)-privacy: min(exp(epsilon) v, 1 - exp(-epsilon) (1 - v))."""

    epsilon: float

    def __call__(self, v: Array) -> Array:
        small = np.exp(-self.epsilon)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            near = np.where(v > 0.0, np.divide(v, small), 0.0)
        far = -np.expm1(-self.epsilon) + small * v
        return np.minimum(np.minimum(near, far) * ROUND_UP, 1.0)


@dataclass(frozen=True)
class ExtremeTradeOff:
    """The pointwise minimum of trade-offs of one mechanism, or the maximum, which covers both directions at once."""

    parts: tuple[TradeOff, ...]
    largest: bool

    def __call__(self, v: Array) -> Array:
        extreme = np.max if self.largest else np.min
        return np.asarray(extreme([part(v) for part in self.parts], axis=0))


class LineTradeOff:
    """The lower envelope of lines v' <= slope v + intercept. Each line holds for every event."""

    def __init__(self, slopes: Array, intercepts: Array) -> None:
        """Any lines with positive slopes. Those above the envelope are dropped."""
        order = np.lexsort((intercepts, -slopes))
        self.slopes, self.intercepts, self.breaks = _envelope(slopes[order], intercepts[order])

    def __call__(self, v: Array) -> Array:
        line = np.searchsorted(self.breaks, v)
        return np.clip((self.slopes[line] * v + self.intercepts[line]) * ROUND_UP, 0.0, 1.0)

    def hockey_stick(self, factors: Array) -> Array:
        """sup over v of T(v) - factor v, at factors >= 1: attained where two lines meet, or where they end."""
        corners = np.clip(np.append(self.breaks, 1.0), 0.0, 1.0)
        # slopes fall: the last line steeper than the factor ends in the corner wanted
        steeper = np.searchsorted(-self.slopes, -factors, side="left")
        corner = corners[np.maximum(steeper - 1, 0)]
        left = np.maximum(self.intercepts[0], 0.0)
        return np.where(steeper > 0, np.maximum(self(corner) - factors * corner, left), left) * ROUND_UP


def _envelope(slopes: Array, intercepts: Array) -> tuple[Array, Array, Array]:
    """The lines on the lower envelope over v >= 0, steepest first, and where each hands over to the next.

    The choice of lines can only cost tightness: every one of them is a bound everywhere.
    """
    falls = np.append(True, slopes[1:] < np.minimum.accumulate(slopes)[:-1])
    slopes, intercepts = slopes[falls], intercepts[falls]
    while True:
        breaks = (intercepts[1:] - intercepts[:-1]) / (slopes[:-1] - slopes[1:])
        # a line that takes over no earlier than it hands over is above its neighbours
        above = np.append(0.0, breaks) >= np.append(breaks, np.inf)
        if not above.any():
            return slopes, intercepts, breaks
        slopes, intercepts = slopes[~above], intercepts[~above]


def loss_range(curve: Curve) -> float:
    """A loss beyond which a hockey-stick curve has (almost) stopped falling."""
    values = np.asarray(curve(_RANGE))
    floor = max(float(values[-1]) * (1.0 + 1e-9), 1e-20)
    return float(_RANGE[int(np.argmax(values <= floor))]) + 1e-6


def profile_trade_off(curve: Curve) -> LineTradeOff:
    """T(v) = min over real e of exp(e) v + H_{exp(e)}(P' || P), `curve` being that divergence at any real e.

    The dual form of the trade-off curve (Dong, Roth, Su 2022, Proposition 2.12) over finitely many e, all of them
    valid.
    """
    reach = loss_range(curve)
    losses = np.linspace(-reach, reach, 2 * _LINES + 1)
    slopes = np.append(np.exp(losses), 0.0)
    return LineTradeOff(slopes, np.append(curve(losses), 1.0))


def renyi_trade_off(orders: Array, epsilons: Array) -> LineTradeOff:
    """The events that Renyi bounds allow: D(Bernoulli(v') || Bernoulli(v)) <= epsilon, and the other way round.

    For one order the allowed pairs form a convex set, since the moment F(v, v') is jointly convex: the tangent of F
    at any outer point is a line that holds for every event. Points are found by Newton's method, which approaches a
    convex increasing function's root from above. Exchanging the event for its complement and the two data sets
    mirrors each line into another.
    """
    finite = np.isfinite(epsilons) & (orders <= _LARGEST_ORDER)
    if not np.any(finite):
        return LineTradeOff(np.zeros(1), np.ones(1))
    a, bound = orders[finite], epsilons[finite]
    # which order is best changes slowly with v: look at few v first, then only at the neighbours of their best orders
    coarse = _tangents(a[:, None], bound[:, None], _LOGITS[::_COARSER], steps=2)[2].argmin(axis=0)
    near = np.interp(_LOGITS, _LOGITS[::_COARSER], coarse).round().astype(int) + np.array([[-1], [0], [1]])
    near = np.clip(near, 0, a.size - 1)
    slope, intercept, height = _tangents(a[near], bound[near], _LOGITS, steps=4)
    pick = np.argmin(height, axis=0), np.arange(_LOGITS.size)
    good = np.isfinite(height[pick])
    best_slope, best_intercept = slope[pick][good], intercept[pick][good]
    return LineTradeOff(
        np.concatenate((best_slope, 1.0 / best_slope, [0.0])),
        np.concatenate((best_intercept, 1.0 - (1.0 - best_intercept) / best_slope, [1.0])),
    )


def _tangents(a: Array, bound: Array, t: Array, *, steps: int) -> tuple[Array, Array, Array]:
    """Slope and intercept of a line for each order (rows) and each v = 1/(1 + exp(-t)), and its height at v.

    Any number of Newton steps leaves an outer point, whose tangent is valid.
    """
    log_v, log_rest = -np.log1p(np.exp(-t)), -np.log1p(np.exp(t))
    v = np.exp(log_v)
    # the first term of the moment alone already bounds v'
    x = np.exp(np.minimum(((a - 1.0) / a) * (bound + log_v), -1e-9))
    below, below_rest = (a - 1.0) * (log_v + bound), (a - 1.0) * (log_rest + bound)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        one, two, slope_x = _moment(a, x, below, below_rest)
        for _ in range(steps):
            x = np.clip(x - np.maximum(np.where(slope_x > 0.0, (one + two - 1.0) / slope_x, 0.0), 0.0), v, _BELOW_ONE)
            one, two, slope_x = _moment(a, x, below, below_rest)
        slope_v = -(a - 1.0) * (one / v - two * np.exp(-log_rest))
        # F(v, x) + F_v (v1 - v) + F_x (x1 - x) <= 1 for every allowed (v1, x1)
        slope = -slope_v / slope_x
        intercept = (1.0 - one - two) / slope_x + x - slope * v
    usable = np.isfinite(slope) & np.isfinite(intercept) & (slope_x > 0.0) & (slope > 1e-6)
    # exponents of size order * log v are rounded absolutely
    intercept = np.where(usable, intercept + 1e-9 * (np.abs(intercept) + slope * v), np.inf)
    return slope, intercept, np.where(usable, slope * v + intercept, np.inf)


def _moment(a: Array, x: Array, below: Array, below_rest: Array) -> tuple[Array, Array, Array]:
    """The two terms of F, which is 1 on the edge of the region, and its slope in x."""
    one = np.exp(a * np.log(x) - below)
    two = np.exp(a * np.log1p(-x) - below_rest)
    return one, two, a * (one / x - two / (1.0 - x))


def trade_offs(
    base: Guarantee, *, loss_distributions: bool = True, nodes: tuple[Array, Array] | None = None
) -> tuple[TradeOff, TradeOff]:
    """The best trade-offs of a guarantee for (P, P') and (P', P), its failure mass included.

    With `loss_distributions` False a profile that would need a privacy-loss distribution is left out, and the Renyi
    curve is used instead: a Renyi answer should not wait for one. `nodes` are orders and the values of the Renyi curve
    there, if already known. Raises `ArgumentError` when nothing is known.
    """
    if base.gaussian_mu is not None:
        exact = GaussianTradeOff(base.gaussian_mu)
        return exact, exact
    pairs: list[tuple[TradeOff, TradeOff]] = []
    if base.profile is not None and (loss_distributions or base.loss is None):
        # an event's probability under P' exceeds the one under P by what (P', P) allows
        pairs.append((profile_trade_off(base.profile.add), profile_trade_off(base.profile.remove)))
    if base.failure == 0.0 and np.isfinite(base.pure_epsilon):
        pairs.append((PureTradeOff(base.pure_epsilon),) * 2)
    if not pairs and base.failure == 0.0 and base.renyi_curve is not None:
        orders = _REGION_ORDERS
        pairs.append((renyi_trade_off(*(nodes or (orders, np.asarray(base.renyi_curve(orders))))),) * 2)
    if not pairs:
        profile = base.best_profile()
        pairs.append((profile_trade_off(profile.add), profile_trade_off(profile.remove)))
    return _smallest([forward for forward, _ in pairs]), _smallest([backward for _, backward in pairs])


def _smallest(parts: list[TradeOff]) -> TradeOff:
    return parts[0] if len(parts) == 1 else ExtremeTradeOff(tuple(parts), largest=False)


def symmetric_trade_off(pair: tuple[TradeOff, TradeOff]) -> TradeOff:
    """One trade-off that covers both directions."""
    return pair[0] if pair[0] is pair[1] else ExtremeTradeOff(pair, largest=True)
