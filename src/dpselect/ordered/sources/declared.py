"""A column under public bounds, declared in full before its rows are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, number
from dpselect.ordered.domains import Categories, Domain
from dpselect.ordered.order_statistics.intervals import RankedColumn
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits, scattered_units
from dpselect.ordered.public_domain import declare_domain
from dpselect.ordered.sources.adapters import (
    ColumnSource,
    categorical_column,
    counted_column,
    read_values,
    unit_rows,
)
from dpselect.ordered.sources.plain_lists import typed
from dpselect.randomness import RandomSource

__all__ = ["WEIGHT_UNITS", "DeclaredColumn", "declare_column"]

WEIGHT_UNITS = 1024
"""Weights are whole multiples of the largest weight over this."""


@dataclass(frozen=True, repr=False)
class DeclaredColumn:
    """A column that may be paid for before it is read. A row counts at most `units` units of rank."""

    domain: Domain
    units: int
    ranked: Callable[[], RankedColumn]
    """Reads the rows, or makes ready to."""

    scattered: Callable[[RandomSource], RankedColumn]
    """The same with ties broken at random (`ScatteredColumn`): all units of a row at one place."""


def declare_column(
    values: Any,
    *,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    categories: Any = None,
    weights: ArrayLike | None = None,
    largest_weight: SupportsFloat = 1.0,
    assume_sorted: bool = False,
) -> DeclaredColumn:
    """What the public arguments of a quantile and the type of the values declare.

    Raises `ArgumentError` and `TypeError` for arguments that do not fit; of the rows only their type is looked at, for
    which the first chunk of a stream is read, and with `weights` their number.
    """
    if categories is not None:
        if any(given is not None for given in (domain_size, lower, upper, granularity, weights)):
            raise ArgumentError(
                "categories take the place of domain_size, lower, upper and granularity, and have no weights"
            )
        named = Categories(tuple(categories))
        return _plain(named, categorical_column(values, named))
    source = read_values(values, assume_sorted=assume_sorted)
    domain = declare_domain(source.dtype, domain_size=domain_size, lower=lower, upper=upper, granularity=granularity)
    if weights is None:
        return _plain(domain, lambda: source.ranked(domain))
    return _weighted(source, _weight_units(weights, largest_weight), domain)


def _plain(domain: Domain, ranked: Callable[[], RankedColumn]) -> DeclaredColumn:
    bits = fine_bits(domain.size)
    return DeclaredColumn(domain, 1, ranked, lambda random: ScatteredColumn(ranked(), bits, random))


def _weighted(source: ColumnSource, units: NDArray[np.int64], domain: Domain) -> DeclaredColumn:
    rows = unit_rows(source, units, domain)
    bits = fine_bits(domain.size)
    return DeclaredColumn(
        domain,
        WEIGHT_UNITS,
        lambda: counted_column(*rows()),
        lambda random: scattered_units(*rows(), bits, random),
    )


def _weight_units(weights: ArrayLike, largest_weight: SupportsFloat) -> NDArray[np.int64]:
    largest = number("largest_weight", largest_weight, above=0.0)
    with np.errstate(over="ignore"):
        given = np.nan_to_num(np.asarray(typed(weights, name="weights"), dtype=np.float64) / largest, nan=0.0)
    if given.ndim != 1:
        raise ArgumentError("weights must be one-dimensional")
    return np.asarray(np.rint(np.clip(given, 0.0, 1.0) * WEIGHT_UNITS).astype(np.int64))
