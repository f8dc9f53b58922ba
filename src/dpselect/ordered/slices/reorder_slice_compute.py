"""Reorder-Slice-Compute (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022, Algorithm 1): slice after slice of one data set.

Each step orders the rows that are left, in a way that may depend on earlier answers. It then removes the first ones as
a slice and runs private computations on it, now or later. Removing one row shifts the border of every later slice. A
geometric number of extra rows in each slice stops that, so the price does not grow with the number of slices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import Columnar
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, flag, integer, number
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.slices.price import SlicePrice, failed_slice, plain_slicing_guarantee, swap_of
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, compose
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.paying import Payment
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["EachRow", "Kept", "Ordered", "ReorderSliceCompute", "RowMap", "Steps"]

Rows = Any
"""A list of rows, or an array whose first axis is the rows."""


class RowMap(Protocol):
    """An adjacency-preserving map: deterministic, and for inputs that differ by an inserted row its results are equal
    or differ by an inserted row (at any place).

    Safe are a fixed order of the rows, a fixed test of each row and a fixed function of each row, and any sequence of
    these. Not safe are ranks in place of values, standardising, removing all but the best row of a group, sampling and
    clustering. Filters with a cut that depends on the data and an order that is not the same each time are not safe
    either.
    """

    def __call__(self, rows: Rows) -> Rows: ...


@dataclass(frozen=True, eq=False)
class Ordered:
    """A map that sorts rows by a key.

    Equal rows keep their order, or have it reversed if `descending`. Give at most one of `key`, `column` and `values`.
    Without one, the rows themselves are compared.

    Args:
        key: a fixed function of one row that returns what is compared (you must ensure that it is fixed).
        column: the index of the column to compare, for rows that are sequences or a two-dimensional array.
        descending: largest first.
        values: the rows are an array of places in this array, and are sorted by its entries there.
    """

    key: Callable[[Any], Any] | None = None
    column: int | None = None
    descending: bool = False
    values: NDArray[Any] | None = field(default=None, repr=False)

    def __call__(self, rows: Rows) -> Rows:
        if isinstance(rows, np.ndarray):
            if self.key is not None:
                keys = np.array([self.key(row) for row in rows])
            elif self.values is not None:
                keys = self.values[rows]
            else:
                keys = rows if self.column is None else rows[:, self.column]
            order = np.argsort(keys, kind="stable") if len(rows) else np.zeros(0, dtype=np.intp)
            return rows[order[::-1] if self.descending else order]
        key = self.key if self.column is None else (lambda row: row[self.column])
        found = sorted(rows, key=key)
        # turned round rather than sorted in reverse: the same list as for an array
        return found[::-1] if self.descending else found


@dataclass(frozen=True)
class Kept:
    """A map that keeps the rows that pass a test. The others are gone for the rest of the session.

    Args:
        test: a fixed function of one row that returns whether it is kept. You must ensure that it looks at no other
            row.
    """

    test: Callable[[Any], bool]

    def __call__(self, rows: Rows) -> Rows:
        kept = [bool(self.test(row)) for row in rows]
        if isinstance(rows, np.ndarray):
            return rows[np.array(kept, dtype=bool)]
        return [row for row, passed in zip(rows, kept, strict=True) if passed]


@dataclass(frozen=True)
class EachRow:
    """A map that rewrites every row by a function of that row, and returns a list.

    Args:
        function: a fixed function of one row that returns the new row. You must ensure that it looks at no other row.
    """

    function: Callable[[Any], Any]

    def __call__(self, rows: Rows) -> Rows:
        return [self.function(row) for row in rows]


@dataclass(frozen=True)
class Steps:
    """A map that applies several maps, one after the other.

    Args:
        maps: the maps in their order, such as `Ordered`, `Kept` and `EachRow`. See `RowMap` for your own.
    """

    maps: tuple[RowMap, ...]

    def __call__(self, rows: Rows) -> Rows:
        for step in self.maps:
            rows = step(rows)
        return rows


def _grows(order: RowMap) -> bool:
    """Whether a map is one of those above, for which an added row can only add to the result."""
    if isinstance(order, Steps):
        return all(_grows(step) for step in order.maps)
    return type(order) in (Ordered, Kept, EachRow)


class ReorderSliceCompute(Session):
    """`applications` runs of at most `slices` slices each, with `computations` private computations on each slice.

    Args:
        rows: a list of rows or an array whose first axis is the rows.
        slice_epsilon: a slice of size m has m + G rows, P(G >= k) = exp(-slice_epsilon k); on average
            1/(exp(slice_epsilon) - 1) extra. None: no noise, and every slice is charged a swap.
        computation: what one computation on a slice promises under add_or_remove_one. It must hold for inputs of every
            size, the empty one among them (you must ensure this). `worst_of` them if they differ, `compose` if one
            does several things.
        swap: what it promises under replace_one; by group privacy from `computation` when None. Pass it if it is known.
        slices: how many slices at most in one application; None for any number, which needs `slice_epsilon`.
        computations: how many computations on each slice at most.
        applications: how many times the session may `restart` on all rows, the first time included.
        maps_grow: None takes maps of this module only (`Ordered`, `Kept`, `EachRow` and `Steps` of them), which only
            add to their result when a row is added. True: you promise that of your maps. False: any
            adjacency-preserving map, at a higher price. See `RowMap`.
        adjacency: which data sets are neighbours.
        spender, label: where the whole session is paid, before it begins, and its name in the record.

    `guarantee` is the price of the whole session, no matter what is done in it. It composes.

    Sizes, maps and computations may depend on earlier answers and on nothing else that is private (you must ensure
    this). The sizes of slices and their rows are never released. Computations see them, and must not let them out
    otherwise than through their guarantee. Nor should computations raise because of what they see. Running time is not
    covered.

    Raises `BudgetError` for more slices, computations on a slice, or applications than declared, and when the spender
    refuses. The object cannot be copied or pickled and refuses to work in a forked child.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> from dpselect.mechanisms import noisy_count
    >>> session = ReorderSliceCompute(
    ...     list(range(1000)), slice_epsilon=0.025, computation=pure_dp(epsilon=0.05), slices=20, random=keyed_source(1)
    ... )
    >>> lowest = session.slice(100, Ordered())
    >>> odd = session.compute(lowest, lambda rows: noisy_count(sum(row % 2 for row in rows), epsilon=0.05))
    >>> session.guarantee.epsilon(delta=1e-6) < 0.8
    True
    """

    def __init__(  # noqa: PLR0913
        self,
        rows: Sequence[Any],
        *,
        slice_epsilon: SupportsFloat | None,
        computation: Guarantee,
        swap: Guarantee | None = None,
        slices: int | None = None,
        computations: int = 1,
        applications: int = 1,
        maps_grow: bool | None = None,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
        spender: Spender | None = None,
        label: str = "reorder-slice-compute",
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        self._most = None if slices is None else integer("slices", slices, at_least=1, at_most=1 << 1000)
        self._computations = integer("computations", computations, at_least=1, at_most=1 << 20)
        self._applications = integer("applications", applications, at_least=1, at_most=1 << 20)
        self._adjacency = parse_adjacency(adjacency)
        self._maps_grow = None if maps_grow is None else flag("maps_grow", maps_grow)
        self._noise = (
            None
            if slice_epsilon is None
            else number("slice_epsilon", slice_epsilon, at_least=1e-5, at_most=2, rounding="down")
        )
        if self._noise is None and self._most is None:
            raise ArgumentError("slices must be given where slice_epsilon is None: plain slices are paid one by one")
        computation = promise("computation", computation)
        if computation.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
            raise AdjacencyError("computation must be a guarantee for add_or_remove_one")
        swap = swap_of(computation) if swap is None else promise("swap", swap)
        self._insertion = compose(*[computation] * self._computations)
        self._swap = compose(*[failed_slice(computation, swap)] * self._computations)
        source = resolve(random)
        self._draws, self._replayable = SecretDraws(source), source.replayable
        # list() of a frame or of a mapping would be its column names or keys
        if isinstance(rows, (str, bytes, Mapping, Columnar)):
            raise TypeError("rows must be a list of rows or an array; of a frame, pass .to_numpy() or its row tuples")
        self._payment = Payment.open(self.guarantee, spender=spender, label=label)
        self._data: Rows = rows if isinstance(rows, np.ndarray) else list(rows)
        self._rows = self._data
        self._slices: list[tuple[Rows, list[int]]] = []
        self._first, self._started = 0, 1

    @cached_property
    def guarantee(self) -> Guarantee:
        """The price of the whole session, from public parameters: the smallest that is proved."""
        runs: dict[str, Any] = {"applications": self._applications, "maps_grow": self._maps_grow is not False}
        if self._noise is None:
            assert self._most is not None
            return plain_slicing_guarantee(swap=self._swap, slices=self._most, adjacency=self._adjacency, **runs)
        parts: dict[str, Any] = {"insertion": self._insertion, "swap": self._swap}
        price = SlicePrice(slice_epsilon=self._noise, **parts, slices=self._most, **runs)
        return price.guarantee(adjacency=self._adjacency)

    @answers
    def slice(self, size: int, order: RowMap) -> int:
        """Take the first `size` rows (and a secret few more) of what `order` makes of those left as a slice.

        Returns the number that names the slice in `compute`. If fewer rows are left, the slice is all of them,
        silently. A `swap` that costs less than `computation` does not count then (`failed_slice`). Costs nothing beyond
        the session's price. Raises `BudgetError` after `slices` slices, `ArgumentError` for a map that `maps_grow` does
        not cover.
        """
        size = integer("size", size, at_least=0)
        if self._maps_grow is None and not _grows(order):
            raise ArgumentError(
                "order must be made of Ordered, Kept, EachRow and Steps; for a map of your own, which must preserve "
                "adjacency, declare maps_grow=False, or maps_grow=True if an added row only ever adds to its result"
            )
        if self._most is not None and len(self._slices) - self._first >= self._most:
            raise BudgetError(f"all {self._most} slices of this application are used up")
        place = len(self._slices)
        self._slices.append(((), [0]))  # counted first: a map that raises has looked
        taken = size + (0 if self._noise is None else self._draws.geometric(self._noise))
        rows = order(self._rows)
        # the rows that are left before the slice: an interrupt loses rows, and never puts one into two slices
        self._rows = rows[taken:]
        self._slices[place] = (rows[:taken], [0])
        return place

    @answers
    def compute(self, number_of_slice: int, mechanism: Callable[[Rows], Any]) -> Any:
        """Run a mechanism with the declared guarantee on a slice and return its answer, now or later.

        Raises `BudgetError` after the declared number of computations on this slice, `ArgumentError` for a slice that
        does not exist or belongs to an earlier application. An exception of `mechanism` passes through and may tell of
        the data. The computation is counted.
        """
        place = integer("number_of_slice", number_of_slice, at_least=0)
        if not self._first <= place < len(self._slices):
            raise ArgumentError("number_of_slice is not a slice of this application")
        rows, used = self._slices[place]
        if used[0] >= self._computations:
            raise BudgetError(f"all {self._computations} computations on this slice are used up")
        used[0] += 1  # before it runs: what fails half-way may have looked
        return mechanism(rows)

    def slice_and_compute(self, size: int, order: RowMap, mechanism: Callable[[Rows], Any]) -> Any:
        """`slice` and one `compute`."""
        return self.compute(self.slice(size, order), mechanism)

    @answers
    def restart(self) -> None:
        """Begin the next application: all rows again, slices numbered on, earlier slices closed (Theorem 2.3).

        Raises `BudgetError` after the declared number of applications.
        """
        if self._started >= self._applications:
            raise BudgetError(f"all {self._applications} applications of this session are used up")
        self._started += 1
        self._slices = [((), used) for _, used in self._slices]
        self._first, self._rows = len(self._slices), self._data

    @answers
    def release(self, value: Any) -> Release:
        """The value made of the answers, with the session's guarantee and receipt."""
        receipt = self._payment.close()
        return Release(value=value, guarantee=self.guarantee, receipt=receipt, replayable=self._replayable)

    def __repr__(self) -> str:
        return "<ReorderSliceCompute>"
