"""Power sums with non-negative coefficients, fitted once by short polynomials so that evaluation costs O(1).

The derivatives of a finite law's generating function are sums g(v) of c_k (1 - v)**k over k, on 0 <= v <= 1.
[0, 1] is halved until a Chebyshev polynomial of degree 19 meets g to about 1e-14 of its *smallest* value on each
panel. So accuracy is relative everywhere (down to 1e-280 of g(0)). Values come from a second table, each panel cut into
32 parts that need only degree 7. Integrals over [v, v + m] are m times a mean, from divided differences of the part's
antiderivative: nothing cancels, however small m is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpselect.repetitions.distribution import FloatArray

__all__ = ["Panels", "power_sum"]

Index = NDArray[np.intp]

_DEGREE = 19
_TOLERANCE = 1e-14
_ROUNDING = 2.0**-52
_NARROWEST = 2.0**-40
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_FIT = np.polynomial.chebyshev.chebvander(_NODES, _DEGREE) * (2.0 / (_DEGREE + 1))
_FIT[:, 0] *= 0.5

# A coefficient below 1e-14 at degree 19 means a Bernstein ellipse that reaches 1.8 half-widths past the panel. On a
# 32nd of it the coefficients fall by 1 / 115 each, so that degree 7 leaves 3e-17.
_PARTS = 32
_SHORT = 7
_SHORT_NODES = np.cos(np.pi * (np.arange(_SHORT + 1) + 0.5) / (_SHORT + 1))
_PLACES = (2.0 * np.arange(_PARTS)[:, None] + 1.0 + _SHORT_NODES) / _PARTS - 1.0
_AT_PLACES = np.polynomial.chebyshev.chebvander(_PLACES.reshape(-1), _DEGREE).T
_TO_POWERS = np.linalg.inv(np.vander(_SHORT_NODES, increasing=True)).T


@dataclass(frozen=True, eq=False)
class Panels:
    """The fit of one power sum: `edges` of the panels in v, Chebyshev `coefficients` a row each."""

    edges: FloatArray
    coefficients: FloatArray

    @classmethod
    def fit(cls, coefficients: FloatArray) -> Panels:
        """Fit the sum of coefficients[k] (1 - v)**k."""
        top = float(coefficients.sum())
        left, rows = _fit_panels(coefficients / top) if top > 0.0 else (np.zeros(1), np.zeros((1, _DEGREE + 1)))
        return cls(edges=np.append(left, 1.0), coefficients=rows * top)

    def __call__(self, v: FloatArray) -> FloatArray:
        """g(v)."""
        part, t = self._place(v.reshape(-1))
        rows = self._powers
        value = rows[_SHORT].take(part)
        for n in range(_SHORT - 1, -1, -1):
            value *= t
            value += rows[n].take(part)
        return np.maximum(value, 0.0).reshape(v.shape)

    def _place(self, v: FloatArray) -> tuple[Index, FloatArray]:
        """The part that each v is in, and where in it, from -1 to 1."""
        panel = np.minimum(np.searchsorted(self.edges, v, side="right") - 1, self.edges.size - 2)
        place = (v - self.edges.take(panel)) * self._scales.take(panel)
        part = np.minimum(place.astype(np.intp), _PARTS - 1)
        return part + _PARTS * panel, 2.0 * (place - part) - 1.0

    @cached_property
    def _scales(self) -> FloatArray:
        """Parts per unit of v, for each panel."""
        return _PARTS / np.diff(self.edges)

    @cached_property
    def _powers(self) -> FloatArray:
        """For each degree a row with its coefficient in every part, as polynomials on [-1, 1]."""
        values = (self.coefficients @ _AT_PLACES).reshape(-1, _SHORT + 1)
        return np.ascontiguousarray((values @ _TO_POWERS).T)

    @cached_property
    def _means(self) -> FloatArray:
        """The coefficients of the antiderivative in every part, a row for each degree."""
        return np.ascontiguousarray(self._powers / np.arange(1.0, _SHORT + 2.0)[:, None])

    @cached_property
    def _part_edges(self) -> FloatArray:
        inside = self.edges[:-1, None] + np.diff(self.edges)[:, None] * (np.arange(_PARTS) / _PARTS)
        return np.append(inside.reshape(-1), self.edges[-1])

    @cached_property
    def _running(self) -> tuple[FloatArray, FloatArray]:
        """The integrals of g from 0 to the start of every part, and from there to 1."""
        # an odd power has the mean 0 over a part
        whole = np.repeat(np.diff(self.edges) / _PARTS, _PARTS) * np.sum(
            self._powers[::2] / np.arange(1.0, _SHORT + 2.0, 2.0)[:, None], axis=0
        )
        whole = np.maximum(whole, 0.0)
        return np.append(0.0, np.cumsum(whole)), np.append(np.cumsum(whole[::-1])[::-1], 0.0)

    def integral(self, start: FloatArray, length: FloatArray) -> FloatArray:
        """The integral of g over [start, start + length], to relative accuracy in `length`."""
        low, step = start.reshape(-1), length.reshape(-1)
        (first, a), (last, b) = self._place(low), self._place(np.minimum(low + step, 1.0))
        across = np.flatnonzero(last > first)
        if not across.size:
            return (self._mean(first, a, b) * step).reshape(start.shape)
        i, j = first[across], last[across]
        ahead = self._part_edges[i + 1] - low[across]
        here = step.copy()
        here[across] = ahead
        b_first = b.copy()
        b_first[across] = 1.0
        total = self._mean(first, a, b_first) * here
        # of the two ways to subtract running sums, the one whose terms are smaller
        before, after = self._running
        forward, backward = before[j] - before[i + 1], after[i + 1] - after[j]
        between = np.where(before[j] < after[i + 1], forward, backward)
        rest = np.maximum(step[across] - (self._part_edges[j] - low[across]), 0.0)
        total[across] += between + self._mean(j, np.full(j.size, -1.0), b[across]) * rest
        return total.reshape(start.shape)

    def _mean(self, part: Index, a: FloatArray, b: FloatArray) -> FloatArray:
        """The mean of g from the place a to the place b of a part: that of t**n is (b**(n+1) - a**(n+1)) / (b - a)."""
        rows = self._means
        power, slope = a.copy(), a + b
        total = rows[0].take(part) + rows[1].take(part) * slope
        for n in range(2, _SHORT + 1):
            power *= a
            slope *= b
            slope += power
            total += rows[n].take(part) * slope
        return np.maximum(total, 0.0)


def power_sum(coefficients: FloatArray, log_s: FloatArray) -> FloatArray:
    """Sum of coefficients[k] exp(k log_s), for log_s of shape (points,). log_s may be -inf.

    Powers are split as k = i + width j, so that one matrix product does the work and no power is a long product.
    """
    size = coefficients.size
    width = max(1, math.isqrt(size))
    rows = -(-size // width)
    table = np.zeros((rows, width))
    table.reshape(-1)[:size] = coefficients
    logs = np.maximum(log_s, -800.0)
    small, large = np.arange(width), np.arange(rows) * width
    result = np.empty(logs.size)
    chunk = max(1, 2_000_000 // (width + rows))
    for i in range(0, logs.size, chunk):
        at = logs[i : i + chunk, None]
        result[i : i + chunk] = np.sum((np.exp(at * small) @ table.T) * np.exp(at * large), axis=1)
    return result


def _fit_panels(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Left edges and Chebyshev rows, for coefficients that sum to one."""
    pending, width = np.zeros(1), 1.0
    done_left: list[FloatArray] = []
    done_rows: list[FloatArray] = []
    while pending.size:
        # the offset from the left edge is kept apart, so that 1 - v is accurate near v = 1
        offset = 0.5 * width * (_NODES + 1.0)
        v, s = pending[:, None] + offset, (1.0 - pending)[:, None] - offset
        logs = np.where(v < 0.5, np.log1p(-np.minimum(v, 0.5)), np.log(s))
        values = power_sum(coefficients, logs.reshape(-1)).reshape(v.shape)
        rows = values @ _FIT
        smallest, largest = values.min(axis=1), values.max(axis=1)
        # powers lose log(g(0) / g) roundings: asking for more than that would halve for ever
        allowed = (_TOLERANCE - 2.0 * _ROUNDING * np.log(np.maximum(smallest, 1e-300))) * smallest
        met = np.abs(rows[:, -3:]).max(axis=1) <= allowed
        narrow = width <= np.maximum(_NARROWEST, (1.0 - pending) / (2.0 * coefficients.size))
        good = met | narrow | (largest < 1e-280)
        done_left.append(pending[good])
        done_rows.append(rows[good])
        width *= 0.5  # searches: panels of an integral, halved until its error is small
        pending = (pending[~good][:, None] + np.array([0.0, width])).reshape(-1)
    left, fitted = np.concatenate(done_left), np.concatenate(done_rows)
    order = np.argsort(left)
    return left[order], fitted[order]
