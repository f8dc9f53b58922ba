"""The Renyi curve of the best of K runs: the smallest of every bound that is known, closed monotonically.

Each bound maps (orders, the base's epsilons there) to epsilons and is valid at every order by itself, so searches over
orders can only lose tightness. The law gives the closed forms that exist (`Repetitions.renyi_forms`).
The numeric Lemma 7 and the composition bound serve every law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpselect.accounting.best_of_k.feasible_region import TradeOff, renyi_trade_off, trade_offs
from dpselect.accounting.best_of_k.search_bound import search_bound
from dpselect.accounting.best_of_k.theorems import (
    best_records,
    composition_bound,
    lemma_20,
    supremum,
    with_empty_outcome,
)
from dpselect.caching import CopiedByFields
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.profile import both_directions
from dpselect.privacy.renyi import SEARCH_ORDERS, RenyiCurve, theorem_of
from dpselect.repetitions import Repetitions
from dpselect.repetitions.one_run import RenyiForm

__all__ = ["BestOfRenyi", "MinimumRenyi", "NodedCurve", "outside_failure", "published", "renyi", "renyi_curve_of"]


_NODES = SEARCH_ORDERS
_LOG_EXCESS = np.log(_NODES - 1.0)
_ZOOM = np.linspace(0.0, 1.0, 33)


@dataclass(frozen=True)
class MinimumRenyi:
    """The pointwise minimum of curves that all bound the same mechanism."""

    curves: tuple[RenyiCurve, ...]

    def __call__(self, orders: Array) -> Array:
        return np.asarray(np.min([curve(orders) for curve in self.curves], axis=0))

    @property
    def theorem(self) -> str:
        """The sources of all of them."""
        return "; ".join(dict.fromkeys(theorem_of(c) or "Renyi curve" for c in self.curves))


def renyi_curve_of(guarantee: Guarantee) -> RenyiCurve | None:
    """The Renyi curve outside the failure mass, that of randomised response where a pure epsilon is known."""
    curves = [] if guarantee.renyi_curve is None else [guarantee.renyi_curve]
    if np.isfinite(guarantee.pure_epsilon):
        implied = RandomizedResponseRenyi(guarantee.pure_epsilon)
        curves += [] if implied in curves else [implied]
    if not curves:
        return None
    return curves[0] if len(curves) == 1 else MinimumRenyi(tuple(curves))


class NodedCurve:
    """A base without failure mass: its Renyi curve, that curve at fixed nodes, and what it allows of events.

    Profiles that need a privacy-loss distribution are left aside: a Renyi answer should not wait for one, and the
    hockey-stick bounds use it.
    """

    def __init__(self, base: Guarantee) -> None:
        """`base` has a Renyi curve, or a pure epsilon that implies one (you must ensure this)."""
        curve = renyi_curve_of(base)
        assert curve is not None
        self.base, self.curve, self.orders = base, curve, _NODES
        self._epsilons: Array | None = None
        self._later: tuple[Array, Array] | None = None

    @property
    def epsilons(self) -> Array:
        """The curve at the nodes."""
        if self._epsilons is None:
            self._epsilons = np.asarray(self.curve(self.orders))
        return self._epsilons

    def _at(self, orders: Array) -> Array:
        """The curve at `orders`, and at the nodes by the way: one call costs less than two."""
        if np.array_equal(orders, self.orders):  # a conversion to epsilon begins with them
            return self.epsilons
        if self._epsilons is not None:
            return np.asarray(self.curve(orders))
        both = np.asarray(self.curve(np.concatenate((self.orders, orders))))
        self._epsilons = both[: self.orders.size]
        return both[self.orders.size :]

    def smallest(self, form: RenyiForm, at_nodes: Array, *, zooms: int) -> tuple[float, float]:
        """(order, value) where `form` is smallest: the best node, or the best point found around it."""
        i = int(at_nodes.argmin())
        order, value = float(_NODES[i]), float(at_nodes[i])
        low, high = float(_LOG_EXCESS[max(i - 1, 0)]), float(_LOG_EXCESS[min(i + 1, _NODES.size - 1)])
        for _ in range(zooms):
            logs = low + (high - low) * _ZOOM
            orders = 1.0 + np.exp(logs)
            values = form(orders, np.asarray(self.curve(orders)))
            j = int(values.argmin())
            if values[j] < value:
                order, value = float(orders[j]), float(values[j])
            low, high = float(logs[max(j - 1, 0)]), float(logs[min(j + 1, logs.size - 1)])
        return order, value

    def closed(self, form: RenyiForm, orders: Array) -> tuple[Array, Array]:
        """The base's epsilons at a vector of orders, and the smallest value of `form` at each order or a later one.

        Divergences do not decrease with the order. The nodes and the place where `form` is smallest represent the later
        orders. They are computed on the first call.
        """
        epsilons = self._at(orders)
        if self._later is None:
            both = form(np.concatenate((self.orders, orders)), np.concatenate((self.epsilons, epsilons)))
            at_nodes, own = both[: self.orders.size], both[self.orders.size :]
            order, value = self.smallest(form, at_nodes, zooms=1)
            place = int(self.orders.searchsorted(order))
            known = np.concatenate((self.orders[:place], [order], self.orders[place:]))
            values = np.concatenate((at_nodes[:place], [value], at_nodes[place:], [np.inf]))
            self._later = known, np.minimum.accumulate(values[::-1])[::-1]
        else:
            own = form(orders, epsilons)
        known, later = self._later
        return epsilons, np.minimum(own, later[known.searchsorted(orders)])

    @property
    def pure_epsilon(self) -> float:
        """The base's pure epsilon, or infinity."""
        return self.base.pure_epsilon

    @cached_property
    def trade_offs(self) -> tuple[TradeOff, TradeOff]:
        """The largest v' for each v, in each direction."""
        return trade_offs(self.base, loss_distributions=False, nodes=(self.orders, self.epsilons))

    @cached_property
    def hockey_stick(self) -> Callable[[Array], Array]:
        """The larger hockey-stick divergence of the two directions, as a function of losses >= 0."""
        profile = self.base.profile
        if profile is not None and self.base.loss is None:
            symmetric = type(profile).add is type(profile).remove
            return profile.remove if symmetric else lambda losses: both_directions(profile, losses)
        region = renyi_trade_off(self.orders, self.epsilons)
        return lambda losses: region.hockey_stick(np.exp(losses))


@dataclass(frozen=True)
class BestOfRenyi(CopiedByFields):
    """The Renyi curve of the best of K runs of a base without failure mass (outside it: see `lemma_20`).

    At each order the smallest of the law's closed forms (Theorem 2, its refinement, Theorem 6, Lemma 22), the numeric
    Lemma 7, and the composition bound. Then the smallest over all larger orders (a Renyi divergence does not decrease
    with its order). Not `numeric`: the closed forms alone, if the law has any. Both directions, rounded up.
    Source: Papernot, Steinke 2022, Theorems 2 and 6; Papernot, Steinke 2022, Lemmas 7 and 22.
    """

    base: Guarantee
    law: Repetitions
    numeric: bool = True
    theorem: str = "Renyi bounds for the best of K runs (Papernot, Steinke 2022, Theorems 2 and 6, Lemmas 7 and 22)"

    @cached_property
    def _noded(self) -> NodedCurve:
        return NodedCurve(self.base)

    @cached_property
    def _forms(self) -> tuple[RenyiForm, ...]:
        return self.law.renyi_forms(self._noded)

    @cached_property
    def _records(self) -> Array:
        return best_records(self.law, self._noded.trade_offs)

    @cached_property
    def _empty(self) -> float:
        return self.law.zero_probability

    def _unclosed(self, orders: Array, epsilons: Array) -> Array:
        excess = orders - 1.0
        found = [form(orders, epsilons) for form in self._forms]
        if self.numeric or not found:
            found.append(epsilons + supremum(self._records, excess) / excess)
        best = with_empty_outcome(np.minimum.reduce(found), orders, self._empty)
        # a divergence is not negative; the sums above are rounded absolutely as well
        return np.maximum(best * ROUND_UP + 1e-14 / excess, 0.0)

    def __call__(self, orders: Array) -> Array:
        flat = np.asarray(orders, dtype=np.float64).reshape(-1)
        epsilons, best = self._noded.closed(self._unclosed, flat)
        # composition costs at least E[K] epsilon, by Jensen's inequality; it grows with the order by itself
        composed = self.law.mean * epsilons < best
        if self.numeric and composed.any():
            best[composed] = np.minimum(
                best[composed], composition_bound(law=self.law, order=flat[composed], epsilon=epsilons[composed])
            )
        # a base that is zero up to rounding may be given as less
        return np.maximum(best, 0.0).reshape(np.shape(orders))


@search_bound("renyi", by_default=True)
def renyi(base: Guarantee, law: Repetitions, *, numeric: bool = True) -> Guarantee | None:
    """A Renyi curve outside the failure mass (Papernot, Steinke 2022)."""
    inside = outside_failure(base)
    if renyi_curve_of(inside) is None:
        return None
    tilted, failure = lemma_20(law=law, failure=base.failure)
    if failure >= 1.0:
        return None
    curve = BestOfRenyi(inside, tilted, numeric)
    return Guarantee(adjacency=base.adjacency, theorem=curve.theorem, failure=failure, renyi_curve=curve)


@search_bound("published")
def published(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """The closed forms of the Renyi curve alone: what other libraries compute, in a tenth of a millisecond."""
    return renyi(base, law, numeric=False)


def outside_failure(base: Guarantee) -> Guarantee:
    """The guarantee outside the failure mass. It has no profile, because the profile counts that mass."""
    if base.failure == 0.0:
        return base
    return replace(base, failure=0.0, profile=None, lower_profile=None, loss=None, gaussian_mu=None)
