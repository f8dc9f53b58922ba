"""What the private learners share: rows by name and shape, and copies that leave their source of noise behind.

Nothing here needs scikit-learn. `estimators` makes the public estimators of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.parameters import Parameterised
from dpselect.learners.rows import column_names, same_names, table_shape, unit_rows
from dpselect.privacy import Guarantee

__all__ = ["PrivateLearner"]

Array = NDArray[np.float64]


class PrivateLearner(Parameterised):
    """Released weights for rows in the unit ball.

    A pickled copy leaves its `random` source behind and draws from the system's entropy where it arrives: a source
    that repeated its draws in two places would break the guarantee.
    """

    row_norm: float
    weights_: tuple[Array, ...]
    guarantee_: Guarantee
    _intercept: float
    _column_names: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "random": None}

    def _unit_rows(self, X: Any) -> Array:
        """The rows of X as the weights take them."""
        table_shape(X)
        same_names(self._column_names, X)
        return unit_rows(X, self.row_norm, intercept=self._intercept)

    def _prepare(self, X: Any) -> tuple[int, int]:
        """Record the table's columns; returns its shape. Raises for a container that cannot be used."""
        shape = table_shape(X)
        self._column_names = column_names(X)
        return shape
