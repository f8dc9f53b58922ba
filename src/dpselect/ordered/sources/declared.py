"""A column under public bounds, declared in full before its rows are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.ordered.domains import Categories, Domain, Grid
from dpselect.ordered.order_statistics.intervals import RankedColumn
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits, fine_codes
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.round_values import measure_of
from dpselect.ordered.sources.adapters import (
    DataColumn,
    SqlTable,
    TextColumn,
    categorical_column,
    read_values,
    text_source,
    unit_rows,
)
from dpselect.ordered.sources.columns import CountedColumn, counted_window
from dpselect.ordered.sources.persons import limited, limited_in_memory
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource
from dpselect.tables.column_cells import unmasked
from dpselect.tables.plain_lists import typed

__all__ = ["Column", "parse_rows_per_person", "person_terms"]

_WEIGHT_UNITS = 1024


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Column(PublicDomain):  # class-names: the published schema of studies names columns so too
    """Values and what is public of them: a column that may be paid for before it is read.

    With `persons`, private, and `rows_per_person`, public, answers protect persons with several rows. A hash of a
    person's own rows decides which of them take part. Rows without a person take no part. A column that `open_column`
    opened with `person=` takes `rows_per_person` alone. Persons need add_or_remove_one and values in memory, of a file
    or of a database.

    Attributes:
        values: see `read_values`: arrays, Arrow, pandas, polars, chunks, Parquet, SQL tables, DuckDB relations. Rows
            without a value (null, NaN, NaT) are not in the column; values beyond the bounds count as the bounds. A
            list, text and the categories of pandas hold doubles, read as in a CSV file: for whole answers give an
            array of an integer type, or a granularity. Unsorted
            arrays take about two passes and little memory, and are not sorted or changed.
        domain_size: answers are the integers 0 .. domain_size - 1. Or:
        lower, upper: public bounds of answers. Without them use `private_range` first, and compose. For timestamps a
            `numpy.datetime64`, a datetime, or text in ISO 8601; they are clipped to what the unit of the values holds.
        granularity: answers are multiples of it, and rows are rounded to the nearest one before they are compared: 1
            by default for integer types, 0.01, a `numpy.timedelta64`. Floats by default have a power of two,
            2**-48 to 2**-49 of the larger bound: 14 digits of it. "float64" makes every double an answer: for data of
            unknown magnitude. A coarse granularity finds frequent values with fewer rows.
        categories: an ordered list of values, in place of bounds; other values are missing. 1, 1.0, "1" and True are
            one category, blanks around a cell do not count, and text is compared in NFC.
        weights: a row counts as weights/largest_weight rows, clipped to [0, largest_weight] and rounded to multiples
            of largest_weight/1024. NaN contributes 0. Rates are divided by 1024 units accordingly.
        assume_sorted: the values are in increasing order, missing ones last (you must ensure this: no answer is
            private otherwise). Takes well under a millisecond for any number of rows.
        persons, rows_per_person: the person of each row, and how many rows of a person take part at most.
        domain: the domain that all this declares.

    Raises `ArgumentError` and `TypeError` for arguments that do not fit. Only the type of the rows is looked at, and
    with `weights` their number. For the type, the first chunk of a stream is read.

    >>> Column([1.5, 2.5], lower=0, upper=9, granularity=0.5).domain.size
    19
    """

    values: Any = field(kw_only=False)
    categories: Any = None
    weights: ArrayLike | None = None
    largest_weight: SupportsFloat = 1.0
    assume_sorted: bool = False
    persons: Any = None
    rows_per_person: SupportsIndex | None = None
    domain: Domain = field(init=False)
    _read: Callable[[], Any] = field(init=False)
    _source: Any = field(init=False)

    def __post_init__(self) -> None:
        domain: Domain
        values = self._values()
        if self.categories is not None:
            public = (self.domain_size, self.lower, self.upper, self.granularity, self.weights)
            if any(given is not None for given in public):
                raise ArgumentError(
                    "categories take the place of domain_size, lower, upper and granularity, and have no weights"
                )
            domain = named = Categories(tuple(self.categories))
            source: Any = self._limited(text_source(values))
            read: Callable[[], Any] = categorical_column(source, named)
        else:
            source = self._limited(read_values(values, assume_sorted=self.assume_sorted))
            domain = self.of_type(source.dtype)
            read = lambda: source.ranked(domain)  # noqa: E731
            if self.weights is not None:
                read = unit_rows(source, _weight_units(self.weights, self.largest_weight), domain)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_source", source)

    def _values(self) -> Any:
        """The values, of a file or table for persons those that take part."""
        opened = isinstance(self.values, (DataColumn, TextColumn, SqlTable)) and self.values.persons is not None
        if self.rows_per_person is None:
            if self.persons is not None:
                raise ArgumentError("rows_per_person: how many rows of a person count? Write rows_per_person=1")
            return self.values
        most = integer("rows_per_person", self.rows_per_person, at_least=1, at_most=10_000)
        object.__setattr__(self, "rows_per_person", most)
        if self.weights is not None or self.assume_sorted:
            raise ArgumentError("rows_per_person: not with weights or assume_sorted")
        if opened and self.persons is not None:
            raise ArgumentError("persons: the column was opened with person=..., so give rows_per_person alone")
        if not opened and self.persons is None:
            raise ArgumentError("persons: give each row's person, or open the file with open_column(..., person=...)")
        return limited(self.values, most) if opened else self.values

    def _limited(self, source: Any) -> Any:
        """In memory, the rows that take part."""
        if self.persons is None or self.rows_per_person is None:
            return source
        return limited_in_memory(source, self.values, self.persons, int(self.rows_per_person))

    @classmethod
    def of(cls, values: Any, options: dict[str, Any]) -> Column:
        """The values with those of the options that are a column's, which are taken out. A column itself takes none."""
        own = {name: options.pop(name) for name in cls.__dataclass_fields__ if name in options}
        if isinstance(values, Column):
            if own:
                raise ArgumentError(f"{', '.join(own)}: given with the column")
            return values
        return cls(values, **own)

    @property
    def source(self) -> Any:
        """The values as they will be read."""
        return self._source

    def rows_for(self, adjacency: Adjacency | str, declared: int | None = None) -> int | None:
        """How many rows one person has in it at most, or None if rows are protected.

        Raises `ArgumentError` for another adjacency than add_or_remove_one, or if another number was declared.
        """
        if declared is not None and declared != self.rows_per_person:
            raise ArgumentError(f"rows_per_person is {declared} here, but {self.rows_per_person} for the column")
        return parse_rows_per_person(self.rows_per_person, adjacency)

    @property
    def units(self) -> int:
        """A row counts at most so many units of rank."""
        return 1 if self.weights is None else _WEIGHT_UNITS

    def ranked(self) -> RankedColumn:
        """Reads the rows, or makes ready to."""
        found: RankedColumn = self._read() if self.weights is None else CountedColumn(counted_window(*self._read()))
        return found

    def fates(self) -> NDArray[np.int64]:
        """How many cells have each of `dpselect.tables.fates.FATES`: rows are counted, regardless of their weights."""
        if isinstance(self.domain, Categories):
            return np.asarray(self._source.category_fates(self.domain), dtype=np.int64)
        return np.asarray(self._source.fates(*self._ends), dtype=np.int64)

    @property
    def possible(self) -> tuple[bool, ...]:
        """For each of `FATES`, whether a cell can have it, by the declared domain and the column's type alone."""
        if isinstance(self.domain, Categories):
            return (True, False, False, True, True)
        return (True, True, True, True, not self._source.typed)

    @property
    def _ends(self) -> tuple[Any, Any]:
        """The declared bounds, as the source compares its values with them."""
        domain: Any = self.domain
        if not isinstance(domain, Grid):
            return domain.lower, domain.upper
        return (0.0, float(domain.last)) if self.domain_size is not None else (float(self.lower), float(self.upper))

    def scattered(self, random: RandomSource) -> RankedColumn:
        """The same with ties broken at random (`ScatteredColumn`): all units of a row at one place.

        Its codes are those of the points of `measure_of(domain)`, with `fine_bits` more.
        """
        measure, rows = measure_of(self.domain), self._read()
        bits = fine_bits(self.domain.size)
        if self.weights is None:
            return ScatteredColumn(rows, bits, random, measure)
        codes, units = rows
        fine = fine_codes(codes, np.ones(len(codes), dtype=np.int64), measure, bits, random)
        return CountedColumn(counted_window(fine, units))


def parse_rows_per_person(given: SupportsIndex | None, adjacency: Adjacency | str) -> int | None:
    """The most rows of a person, or None for rows."""
    if given is not None and parse_adjacency(adjacency) is not Adjacency.ADD_OR_REMOVE_ONE:
        raise ArgumentError(
            "rows_per_person needs add_or_remove_one: a person in another's place may have fewer rows, or more"
        )
    return None if given is None else integer("rows_per_person", given, at_least=1, at_most=10_000)


def person_terms(rows_per_person: int | None) -> dict[str, int]:
    """The part of the terms of a guarantee that says whether it is for persons."""
    return {} if rows_per_person is None else {"rows_per_person": rows_per_person}


def _weight_units(weights: ArrayLike, largest_weight: SupportsFloat) -> NDArray[np.int64]:
    """Whole multiples of the largest weight over the number of units."""
    largest = number("largest_weight", largest_weight, above=0.0)
    with np.errstate(over="ignore"):
        given = np.nan_to_num(np.asarray(unmasked(typed(weights, name="weights")), dtype=np.float64) / largest, nan=0.0)
    if given.ndim != 1:
        raise ArgumentError("weights must be one-dimensional")
    return np.asarray(np.rint(np.clip(given, 0.0, 1.0) * _WEIGHT_UNITS).astype(np.int64))
