"""The closed Renyi curve of Reorder-Slice-Compute (Cohen et al. 2022, Lemma 2.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.ordered.slices.synchronisation import Synchronisation
from dpselect.privacy import Guarantee, pure_dp
from dpselect.privacy.renyi import RenyiCurve

__all__ = ["RepeatedRenyi", "SliceRenyi", "SmallestRenyi", "curve_of"]


@dataclass(frozen=True)
class SliceRenyi:
    """The closed Renyi curve of one application, for any number of slices, outside the components' failure.

    Source: Cohen et al. 2022, Lemma 2.5; docs/theory/reorder-slice-compute.md, Theorem B.

    A run is (failed query, swap) then the same again, or (synchronised, insertion) then nothing. So the moment M solves
    M = S R1 + Phi R2 M, direction by direction. It is inf where Phi R2 reaches one. With maps that may turn an
    insertion round (`maps_grow` False) the worse direction is taken in each step. `failure` is the mass of all leaks:
    without them both laws keep the same weight on each path, and conditioning on that adds its logarithm.
    """

    sync: Synchronisation
    insertion: RenyiCurve
    swap: RenyiCurve
    failure: float
    maps_grow: bool
    theorem: str = "Reorder-Slice-Compute, Renyi divergence of the holder's transcript (Cohen et al. 2022, Lemma 2.5)"

    def __call__(self, orders: Array) -> Array:
        a = np.asarray(orders, dtype=np.float64)
        sync = self.sync
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inserted, swapped = (a - 1.0) * self.insertion(a), (a - 1.0) * self.swap(a)
            stop = [np.log(sync.moment(b)) + inserted for b in (a, 1.0 - a)]
            again = [math.log(sync.fail_lower) + b * sync.epsilon + swapped for b in (a, 1.0 - a)]
            if not self.maps_grow:
                stop, again = [np.maximum(*stop)] * 2, [np.maximum(*again)] * 2
            rounded = 1e-13
            moments = [
                np.where(g < -rounded, s - np.log(-np.expm1(np.minimum(g + rounded, -1e-300))), np.inf)
                for s, g in zip(stop, again, strict=True)
            ]
            moment = np.maximum(*moments) + rounded
            moment = np.where(np.isfinite(inserted) & np.isfinite(swapped), moment, np.inf)
            curve = moment / (a - 1.0) - a / (a - 1.0) * math.log1p(-self.failure)
        return np.asarray(np.maximum(curve, 0.0) * ROUND_UP)


@dataclass(frozen=True)
class SmallestRenyi:
    """The pointwise minimum of curves that bound the same mechanism."""

    curves: tuple[RenyiCurve, ...]

    def __call__(self, orders: Array) -> Array:
        return np.asarray(np.min([curve(orders) for curve in self.curves], axis=0))


def curve_of(guarantee: Guarantee) -> RenyiCurve | None:
    """The smallest Renyi curve that a guarantee states, outside its failure, or None if it states none."""
    curves = [guarantee.renyi_curve] if guarantee.renyi_curve is not None else []
    if math.isfinite(guarantee.pure_epsilon):
        pure = pure_dp(epsilon=guarantee.pure_epsilon).renyi_curve
        assert pure is not None
        curves.append(pure)
    return SmallestRenyi(tuple(curves)) if curves else None


@dataclass(frozen=True)
class RepeatedRenyi:
    """The curve of several runs."""

    curve: Callable[[Array], Array]
    count: int

    def __call__(self, orders: Array) -> Array:
        return self.count * self.curve(orders)
