"""Scales from a number within its public bounds to features within [-1, 1], and the registry that a study names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpselect.numerics.search import Array
from dpselect.registry import Registry

__all__ = ["SCALES", "Scale"]

_MOST_BINS: Final = 4096


@dataclass(frozen=True)
class Scale:
    """A map of numbers, one at a time, by public facts alone.

    `features(values, low, high, size)` gives an array of shape (rows, width) from values between the bounds. For a
    scale `with_size` the width is `size`, which a study writes behind the name (`name:SIZE`). Otherwise the width is 1
    and the size 0. `refused(low, size)` says what is wrong with a lower bound or a size, or nothing.
    """

    features: Callable[[Array, float, float, int], Array]
    with_size: bool = False
    refused: Callable[[float, int], str] = lambda low, size: ""  # noqa: ARG005


SCALES: Final = Registry[Scale]("scale", room="dpselect.study.columns")
"""The scales by the name that a study gives them: `SCALES.register("name")(Scale(...))`."""


def _share(values: Array, low: float, high: float) -> Array:
    """The way from the lower bound to the upper one, from 0 to 1. By halves: the width of the bounds may overflow."""
    return np.clip((values / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0)


def _linear(values: Array, low: float, high: float, size: int) -> Array:  # noqa: ARG001
    """The middle of the bounds becomes 0."""
    return (2 * _share(values, low, high) - 1)[:, None]


def _log(values: Array, low: float, high: float, size: int) -> Array:
    """Of logarithms, or where the lower bound is 0 of logarithms of 1 more."""
    logarithm = np.log if low > 0 else np.log1p
    return _linear(np.asarray(logarithm(values)), float(logarithm(low)), float(logarithm(high)), size)


def _not_negative(low: float, size: int) -> str:  # noqa: ARG001
    return "" if low >= 0 else "scale log needs bounds not below 0"


def _bins(values: Array, low: float, high: float, size: int) -> Array:
    """Indicators of `size` intervals of one width. The upper bound belongs to the last."""
    place = np.minimum(np.floor(_share(values, low, high) * size), size - 1)
    return np.asarray(place[:, None] == np.arange(size), dtype=np.float64)


def _some(low: float, size: int) -> str:  # noqa: ARG001
    return "" if 2 <= size <= _MOST_BINS else f"scale bins:SIZE needs a size from 2 to {_MOST_BINS}"


SCALES.register("linear")(Scale(_linear))
SCALES.register("log")(Scale(_log, refused=_not_negative))
SCALES.register("bins")(Scale(_bins, with_size=True, refused=_some))
