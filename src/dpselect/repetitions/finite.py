"""Laws given by a finite table of probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpselect.repetitions.distribution import LAWS, FloatArray, Repetitions
from dpselect.repetitions.panels import Panels, power_sum

__all__ = ["LARGEST_TABLE", "FiniteLaw", "WeightedLaw"]

LARGEST_TABLE = 1 << 20
"""The largest `limit` of a law that is computed from a table."""


class FiniteLaw(Repetitions):
    """A law on 0 .. limit that gives the logarithms of its probabilities up to a common constant.

    Everything else follows from the table, held in memory and computed on first use. The derivatives of the
    generating function are fitted once by short polynomials (`panels`), so pricing does not slow down with the limit.
    """

    if TYPE_CHECKING:  # as in `Repetitions`

        @property
        @abstractmethod
        def limit(self) -> int:
            """The largest possible K."""

    @abstractmethod
    def _log_weights(self) -> FloatArray:
        """log P(K = k) plus a constant, for k = 0 .. limit."""

    @cached_property
    def _table(self) -> FloatArray:
        logs = self._log_weights()
        weights = np.exp(logs - logs.max())
        table: FloatArray = weights / weights.sum()
        table.setflags(write=False)
        return table

    @cached_property
    def _tails(self) -> FloatArray:
        """P(K > k) for k = 0 .. limit, summed from the top."""
        return _sums_beyond(self._table)

    @cached_property
    def _biased_tails(self) -> FloatArray:
        return _sums_beyond(self._table * np.arange(self._table.size)) / self.mean

    @cached_property
    def _panels(self) -> dict[int, Panels]:
        return {}

    def _derivative(self, order: int) -> Panels:
        """The derivative of the generating function of this order, as a function of v = 1 - s."""
        if order not in self._panels:
            coefficients = self._table
            for _ in range(order):
                coefficients = (coefficients * np.arange(coefficients.size))[1:]
            self._panels[order] = Panels.fit(np.append(coefficients, 0.0))
        return self._panels[order]

    @cached_property
    def mean(self) -> float:
        """E[K], summed over the table."""
        return float(np.sum(self._table * np.arange(self._table.size)))

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        inside = (k >= 0) & (k < self._table.size)
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(self._table[np.where(inside, k, 0).astype(np.intp)]), -np.inf)

    def _survival(self, k: FloatArray) -> FloatArray:
        return self._tails[np.minimum(k, self._table.size - 1).astype(np.intp)]

    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        return self._biased_tails[np.minimum(m, self._table.size - 1).astype(np.intp)]

    def _pgf(self, s: FloatArray) -> FloatArray:
        # beyond s = 1 the largest power is taken out, so that only a truly huge value overflows
        logs = np.log(s.reshape(-1))
        out = np.maximum(logs, 0.0) * (self._table.size - 1)
        beyond = logs > 0.0
        values = np.empty_like(logs)
        values[~beyond] = power_sum(self._table, logs[~beyond])
        values[beyond] = np.exp(out[beyond] + np.log(power_sum(self._table[::-1], -logs[beyond])))
        return values.reshape(s.shape)

    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        return self._derivative(1).integral(complement, mass)

    def _log_derivative(self, v: FloatArray) -> FloatArray:
        return np.log(self._derivative(1)(v))

    def _second_derivative(self, v: FloatArray) -> FloatArray:
        return self._derivative(2)(v)

    def _third_derivative(self, v: FloatArray) -> FloatArray:
        return self._derivative(3)(v)

    def expected_quantile(self) -> float:
        """E[K / (K + 1)], summed over the table."""
        k = np.arange(self._table.size)
        return float(np.sum(self._table * (k / (k + 1.0))))

    def _tilted(self, s: float) -> Repetitions:
        tilted: Repetitions = LAWS["tilted"](law=self, factor=s)
        return tilted


def _sums_beyond(terms: FloatArray) -> FloatArray:
    return np.append(np.cumsum(terms[:0:-1])[::-1], 0.0)


class WeightedLaw(FiniteLaw):
    """A finite law that gives integers in proportion to its probabilities, from which its draws follow."""

    @abstractmethod
    def _exact_weights(self) -> tuple[int, list[int]]:
        """`bits` as for `_exact_pmf`, which follows from it, and integers in proportion to the probabilities."""

    @cached_property
    def _exact_table(self) -> tuple[int, list[int]]:
        bits, weights = self._exact_weights()
        total = sum(weights)
        return bits, [(weight << bits) // total for weight in weights]

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, weights = self._exact_table
        return bits, iter(weights)
