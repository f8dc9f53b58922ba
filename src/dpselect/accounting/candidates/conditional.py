"""Sampling a private mechanism until its output is acceptable (Papernot, Steinke 2022, Appendix C).

Without a lower bound on the probability of acceptance no Renyi or approximate guarantee follows. Tossing a coin before
each round and stopping with probability `floor` provides one: the release is then a draw of (1-floor) Q + floor BOT
conditioned on "acceptable or BOT", an event of probability at least `floor` on every data set. The number of rounds
depends on the data: never release it, nor the time it took.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import SupportsFloat

import numpy as np

from dpselect.accounting.best_of_k.bounds.profile import Part, PartedProfile, TabulatedCurve
from dpselect.accounting.best_of_k.bounds.renyi import NodedCurve, renyi_curve_of
from dpselect.accounting.best_of_k.cells import Cells, partition
from dpselect.accounting.best_of_k.feasible_region import Curve, TradeOff, symmetric_trade_off
from dpselect.accounting.best_of_k.theorems import supremum
from dpselect.accounting.optimal.first_acceptable import first_acceptable
from dpselect.caching import CopiedByFields
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise
from dpselect.privacy.renyi import RenyiCurve
from dpselect.repetitions import Geometric, Logarithmic

__all__ = ["conditional_sampling", "corollary_16", "proposition_15"]


def proposition_15(
    *,
    order: SupportsFloat,
    p_inverse: SupportsFloat,
    q_inverse: SupportsFloat,
    divergence: RenyiCurve,
    pure_epsilon: float = math.inf,
    acceptance: SupportsFloat,
) -> float:
    """D(Q_S || Q'_S) for Q conditioned on acceptance, with 1/p + 1/q + 1/r = 1. `acceptance` bounds every Q(S).

    (l - 1/p - 1/r)/(l-1) D_{r(l-1/p)}(Q || Q') + (l + 1/q - 2)/(l-1) D_{l+1/q-1}(Q' || Q)
    + (1/r + 1)/(l-1) log(1/Q(S)), l the order. `divergence` and `pure_epsilon` (for infinite orders) bound both
    directions. The last step of the proof needs l + 1/q >= 2: smaller orders raise `ArgumentError` (the printed
    statement is false there).
    Source: Papernot, Steinke 2022, Proposition 15.
    """
    order = number("order", order, above=1.0)
    p_inverse = number("p_inverse", p_inverse, at_least=0.0, at_most=1.0)
    q_inverse = number("q_inverse", q_inverse, at_least=0.0, at_most=1.0 - p_inverse)
    acceptance = number("acceptance", acceptance, above=0.0, at_most=1.0)
    if order + q_inverse < 2.0:
        raise ArgumentError(f"order must be at least {2.0 - q_inverse:g} here: the bound is false below, got {order!r}")
    r_inverse = max(0.0, 1.0 - p_inverse - q_inverse)

    def at(wanted: float) -> float:
        return pure_epsilon if math.isinf(wanted) else min(float(divergence(np.array([wanted]))[0]), pure_epsilon)

    first = order - p_inverse - r_inverse
    second = order + q_inverse - 2.0
    total = first * at((order - p_inverse) / r_inverse if r_inverse > 0.0 else math.inf)
    total += second * at(order + q_inverse - 1.0) if second > 0.0 else 0.0
    return (total + (r_inverse + 1.0) * math.log(1.0 / acceptance)) / (order - 1.0)


def corollary_16(
    *,
    inequality: int,
    order: SupportsFloat,
    divergence: RenyiCurve,
    pure_epsilon: float = math.inf,
    acceptance: SupportsFloat,
    r: SupportsFloat = 1.0,
) -> float:
    """The five inequalities of Papernot, Steinke 2022, Corollary 16, by number. Inequality 5 takes `r` >= 1.

    1: 2 epsilon (pure). 2: r = 1. 3: p = 1. 4: q = 1. 5: the general r. Inequalities 2, 3 and 5 raise `ArgumentError`
    for orders below 2, where they are false as printed: Q = (.7, .3), Q' = (.4, .6), all accepted, order 1.5.
    Source: Papernot, Steinke 2022, Corollary 16.
    """
    inequality = integer("inequality", inequality, at_least=1, at_most=5)
    if inequality == 1:
        return 2.0 * pure_epsilon
    r_inverse = 1.0 / number("r", r, at_least=1.0)
    p_inverse, q_inverse = {2: (0.0, 0.0), 3: (1.0, 0.0), 4: (0.0, 1.0), 5: (1.0 - r_inverse, 0.0)}[inequality]
    return proposition_15(
        order=order,
        p_inverse=p_inverse,
        q_inverse=q_inverse,
        divergence=divergence,
        pure_epsilon=pure_epsilon,
        acceptance=acceptance,
    )


@dataclass(frozen=True)
class ConditionalRenyi(CopiedByFields):
    """The Renyi curve of conditional sampling with a floor coin.

    The smaller of Corollary 16 (2) and D + sup over events of log(v'/v) + log(1/v) / (order - 1), where v and v' are
    the probabilities of "acceptable or BOT", at least `floor`. The result is closed monotonically. The coin also
    averages the moment: exp((order-1) D) becomes floor + (1 - floor) exp((order-1) D).
    """

    base: Guarantee
    floor: float
    points: int = 2048
    theorem: str = "conditional sampling (Papernot, Steinke 2022, Proposition 15 and Corollary 16, numeric)"

    @cached_property
    def _noded(self) -> NodedCurve:
        return NodedCurve(self.base)

    @cached_property
    def _cells(self) -> Cells:
        return _floor_cells(symmetric_trade_off(self._noded.trade_offs), self.floor, self.points)

    def _unclosed(self, orders: Array, epsilons: Array) -> Array:
        excess = orders - 1.0
        log_floor = math.log(self.floor)
        with np.errstate(over="ignore"):
            inside = np.logaddexp(log_floor, math.log1p(-self.floor) + excess * epsilons) / excess
        numeric = inside + supremum(self._cells.records, excess) / excess
        printed = np.full(orders.shape, np.inf)
        valid = orders > 2.0
        if np.any(valid):
            high, more = orders[valid], excess[valid]
            earlier = np.asarray(self._noded.curve(high - 1.0))
            printed[valid] = epsilons[valid] + (high - 2.0) / more * earlier - 2.0 / more * log_floor
        return np.minimum(numeric, printed) * ROUND_UP + 1e-14 / excess

    def __call__(self, orders: Array) -> Array:
        flat = np.asarray(orders, dtype=np.float64).reshape(-1)
        return self._noded.closed(self._unclosed, flat)[1].reshape(np.shape(orders))


def _floor_cells(trade_off: TradeOff, floor: float, points: int) -> Cells:
    """Cells of w in [0, 1] with weight -log v and shift log(v'/v), v = floor + (1 - floor) w.

    They are those of the logarithmic law with gamma = floor, whose phi' is proportional to 1 / v.
    """
    law = Logarithmic(gamma=floor)
    cells = partition(law, trade_off, points=points)
    offset = math.log(law.mean) + math.log(floor)
    return Cells(edges=cells.edges, log_weights=cells.log_weights - offset, shifts=cells.shifts)


@dataclass(frozen=True)
class ConditionalProfile(PartedProfile):
    """The privacy profile of conditional sampling: sup over events of H_{e - log(v'/v)} / v, cell by cell."""

    floor: float
    points: int = 4096
    theorem: str = "conditional sampling, hockey-stick bound"

    def _part(self, trade_off: TradeOff, curve: Curve) -> Part:
        return _floor_cells(trade_off, self.floor, self.points), TabulatedCurve(curve)

    def _direction(self, part: Part, epsilons: Array) -> Array:
        cells, curve = part
        inverse, shifts = np.exp(cells.records[0]), cells.records[1]
        flat = np.ravel(epsilons)
        values = np.empty(flat.size)
        for i in range(0, flat.size, 32):
            losses = flat[i : i + 32, None] - shifts
            coin = -np.expm1(np.minimum(losses, 0.0))
            values[i : i + 32] = np.max(inverse * (self.floor * coin + (1.0 - self.floor) * curve(losses)), axis=1)
        return np.minimum(values * ROUND_UP, 1.0).reshape(np.shape(epsilons))


def conditional_sampling(base: Guarantee, *, floor: SupportsFloat, bound: str | None = None) -> Guarantee:
    """Return the guarantee of running a mechanism until its output is acceptable, with a stop coin before every round.

    Each round stops with probability `floor` and releases "none". Otherwise it runs the base, and releases the output
    if it is in a set fixed without the data. The number of rounds must stay secret (you must ensure this).

    Pure bases cost epsilon + log((exp(epsilon) + floor) / (1 + floor exp(epsilon))), below the 2 epsilon of Corollary
    16 (1).

    Args:
        base: the guarantee of one round.
        floor: the probability to stop before a round, from 1e-100 to below 1, public. The expected number of rounds is
            at most its inverse.
        bound: the name of one bound, or None, the default, for the optimal bound, with the Renyi curve too if
            there is one.

            - "optimal": the supremum over all mechanisms that `base` allows and all acceptable sets, enclosed
              numerically. `epsilon_bracket` gives both sides. The process is, with probability 1 - floor, a search that
              tosses the coin after each failure (`threshold_stopping`), else "none".
            - "published": a Renyi curve and hockey-stick bounds over the same region (quicker and looser).

    Returns:
        A guarantee with the base's adjacency, rounded up.

    Raises:
        BoundUnavailableError: if `bound` is another name.
        ArgumentError: if `floor` is out of range, or `base` is not a `Guarantee` (`PromiseError`).
        TypeError: if `floor` is not a number.

    Source: Papernot, Steinke 2022, Corollary 16 (Appendix C); docs/theory/optimal-selection.md, Theorem 2 ("optimal").

    >>> from dpselect.privacy import gaussian
    >>> total = conditional_sampling(gaussian(noise_multiplier=0.2 ** -0.5), floor=0.1)
    >>> round(total.epsilon(delta=1e-6), 2)
    2.53
    """
    base = promise("base", base)
    floor = number("floor", floor, at_least=1e-100, below=1.0)
    if bound not in (None, "optimal", "published"):
        raise BoundUnavailableError(f"bound must be 'optimal' or 'published', got {bound!r}")
    found = _published(base, floor) if bound == "published" else _optimal(base, floor)
    curved = bound != "optimal" and base.failure == 0.0 and renyi_curve_of(base) is not None
    terms = {
        "mechanism": "conditional-sampling",
        "base": dict(base.terms),
        "floor": floor,
        "bound": bound or "smallest",
    }
    return replace(found, terms=terms, renyi_curve=ConditionalRenyi(base, floor) if curved else None)


def _optimal(base: Guarantee, floor: float) -> Guarantee:
    """The coin before the first round, then a coin after each failure."""
    found = first_acceptable(base, Geometric(gamma=floor), chance=1.0 - floor)
    return replace(found, theorem="optimal accounting of conditional sampling")


def _published(base: Guarantee, floor: float) -> Guarantee:
    """Bounds over the region of the probabilities of acceptance. The profile alone prices a failure mass."""
    pure = math.inf
    if base.failure == 0.0 and math.isfinite(base.pure_epsilon):
        small = math.exp(-base.pure_epsilon)
        pure = (base.pure_epsilon + math.log1p(floor * small) - math.log(small + floor)) * ROUND_UP
    return Guarantee(
        adjacency=base.adjacency,
        theorem="conditional sampling (Papernot, Steinke 2022, Appendix C)",
        pure_epsilon=pure,
        profile=ConditionalProfile(base, floor),
    )
