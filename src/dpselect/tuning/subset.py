"""The split of the rows for tuning on a subset."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import integer, number
from dpselect.randomness import RandomSource, resolve

__all__ = ["split_rows"]


def split_rows(
    count: int, *, sampling_rate: SupportsFloat, random: RandomSource | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the rows that a search may see, and those of the rest, each in order.

    Every row goes to the search with probability `sampling_rate` (up to 2**-64), independently, as
    `dpselect.accounting.tune_on_subset` assumes. A split of a fixed size, halves of a shuffle, or a hash that others
    can compute is another mechanism. The indices and their numbers are secret: release neither, nor anything that
    depends on them but through the search and the final run.

    Args:
        count: the number of rows, at least 0.
        sampling_rate: the probability that the search may see a row, above 0 and at most 1. Public.
        random: the source of the split, by default the operating system's.

    Raises:
        ArgumentError: for `count` or `sampling_rate` out of range.

    >>> from dpselect.randomness import keyed_source
    >>> tuning, rest = split_rows(10, sampling_rate=0.3, random=keyed_source(1))
    >>> sorted([*tuning, *rest]) == list(range(10))
    True
    """
    count = integer("count", count, at_least=0, at_most=1 << 40)
    rate = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0)
    chosen = resolve(random).bernoulli(rate, count)
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)
