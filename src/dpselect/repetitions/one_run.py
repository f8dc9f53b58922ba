"""One run of a private mechanism, as the closed forms of a law of K see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array as FloatArray

__all__ = ["FloatArray", "OneRun", "RenyiForm", "orders_above_one"]

RenyiForm = Callable[[FloatArray, FloatArray], FloatArray]
"""A bound on the Renyi divergence of the best of K runs: (orders, the divergences of one run there) to divergences."""


class OneRun(Protocol):
    """The known bounds on one run, both directions together, outside of any failure mass."""

    @property
    def orders(self) -> FloatArray:
        """Fixed orders above 1, ascending."""

    @property
    def epsilons(self) -> FloatArray:
        """Bounds on the Renyi divergence at these orders."""

    @property
    def pure_epsilon(self) -> float:
        """The pure epsilon, or infinity."""

    @property
    def hockey_stick(self) -> Callable[[FloatArray], FloatArray]:
        """A bound on the hockey-stick divergence, as a function of losses >= 0."""

    def smallest(self, form: RenyiForm, at_nodes: FloatArray, *, zooms: int) -> tuple[float, float]:
        """(order, value) where `form`, known at the fixed orders, is smallest, after some refinement around it."""


def orders_above_one(order: ArrayLike) -> FloatArray:
    """Renyi orders as an array. Raises `ArgumentError` for one that is not above 1."""
    orders = np.asarray(order, dtype=np.float64)
    if not np.all(orders > 1.0):
        raise ArgumentError("order must be above 1")
    return orders
