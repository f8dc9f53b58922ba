"""Exact laws of the private medians on small grids, by enumeration; independent of the code under test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]


def badness(values: tuple[int, ...], size: int) -> NDArray[np.int64]:
    """max(#{x < v}, #{x > v}) for v = 0 .. size-1."""
    data, points = np.array(values)[:, None], np.arange(size)[None, :]
    return np.maximum((data < points).sum(0), (data > points).sum(0))


def exponential_law(values: tuple[int, ...], size: int, epsilon: float) -> Array:
    weights = np.exp(-epsilon / 2.0 * badness(values, size))
    return weights / weights.sum()


@cache
def _nodes(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def search_law(values: tuple[int, ...], size: int, fresh: float, shared: float) -> Array:
    """The law of the one-sided binary search, by quadrature over the shared noise."""
    nodes, weights = _nodes(60 if shared else 1)
    data = np.array(values)
    law = np.zeros(size)

    def descend(low: int, high: int, mass: Array) -> None:
        if low == high:
            law[low] += float(np.sum(weights * mass))
            return
        middle = (low + high) // 2
        left = ndtr((np.count_nonzero(data <= middle) + shared * nodes - len(data) / 2.0) / fresh)
        descend(low, middle, mass * left)
        descend(middle + 1, high, mass * (1.0 - left))

    descend(0, size - 1, np.ones(len(nodes)))
    return law


def data_sets(size: int, blocks: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations_with_replacement(range(size), blocks)


def neighbours(values: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    for place, new in itertools.product(range(len(values)), range(size)):
        yield tuple(sorted((*values[:place], new, *values[place + 1 :])))


def worst_losses(size: int, blocks: int, epsilon: float) -> tuple[float, float]:
    """The largest privacy loss and the largest range of losses of the exponential median over all neighbours."""
    laws = {values: np.log(exponential_law(values, size, epsilon)) for values in data_sets(size, blocks)}
    loss = spread = -math.inf
    for values, law in laws.items():
        for other in neighbours(values, size):
            ratio = law - laws[other]
            loss, spread = max(loss, float(ratio.max())), max(spread, float(np.ptp(ratio)))
    return loss, spread


def worst_failure(size: int, blocks: int, epsilon: float, accuracy: float) -> float:
    worst = 0.0
    for values in data_sets(size, blocks):
        bad = badness(values, size) >= (1.0 + accuracy) * blocks / 2.0 - 1e-9
        worst = max(worst, float(exponential_law(values, size, epsilon)[bad].sum()))
    return worst
