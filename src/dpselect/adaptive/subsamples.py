"""Cutting data into blocks of rows once, and an estimator's value on every block.

A failed block stays private: it has no value (NaN) and stays a block, and nothing reveals which one it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dpselect.capabilities import PandasRows
from dpselect.errors import ArgumentError, ContentError, integer
from dpselect.privacy.boundary import run_confined
from dpselect.randomness import RandomSource

__all__ = ["Blocks", "cut_into_blocks", "evaluate", "row_count", "row_values"]

_Found = TypeVar("_Found")
Estimator = Callable[..., Any]


def row_count(data: Any) -> int:
    """Rows of an array, a list, a pandas or polars frame, or a tuple of those with equally many rows."""
    if isinstance(data, tuple):
        counts = {row_count(part) for part in data}
        if len(counts) != 1:
            raise ArgumentError("data must be a tuple of parts with equally many rows")
        return counts.pop()
    return len(data)


def _take(data: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(data, tuple):
        return tuple(_take(part, rows) for part in data)
    if isinstance(data, list):
        return [data[row] for row in rows.tolist()]
    return data.iloc[rows] if isinstance(data, PandasRows) else data[rows]


@dataclass(frozen=True, repr=False)
class Blocks:
    """`count` disjoint blocks of `size` rows each, assigned without looking at the rows. Secret."""

    data: Any
    rows: NDArray[np.intp]

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        return self.rows.shape[1]

    def __getitem__(self, block: int) -> Any:
        return _take(self.data, self.rows[block])

    def part(self, start: int, stop: int) -> Blocks:
        """Some of the blocks."""
        return Blocks(self.data, self.rows[start:stop])

    @cached_property
    def stacked(self) -> Any:
        """The blocks along a new first axis: an array of shape (count, size, ...), or a tuple of such. Read-only.

        Kept, so that asking many questions copies the rows once.
        """
        return _stack(self.data, self.rows)


def _stack(data: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(data, tuple):
        return tuple(_stack(part, rows) for part in data)
    if not isinstance(data, np.ndarray):
        raise ArgumentError("axis=True needs NumPy arrays; frames are given to the estimator block by block")
    found = data[rows]
    found.setflags(write=False)  # an estimator that worked in place would change what the next question sees
    return found


def cut_into_blocks(
    data: Any, *, subsample_size: int, order: Literal["random", "given"], random: RandomSource
) -> Blocks:
    """As many blocks as there are. Rows left over are left out, no matter what they hold.

    `order="random"` permutes the rows first. "given" keeps them, for rows in an order without meaning. Rows that belong
    together (of one person, of one day) make a valid analysis only when a block holds whole groups.
    """
    size = integer("subsample_size", subsample_size, at_least=1)
    rows = row_count(data)
    if rows < size:
        raise ContentError("data must have at least subsample_size rows")
    if order not in ("random", "given"):
        raise ArgumentError(f"order must be 'random' or 'given', got {order!r}")
    count = rows // size
    places = random.permutation(rows) if order == "random" else np.arange(rows)
    return Blocks(data, places[: count * size].reshape(count, size))


def evaluate(estimator: Estimator, blocks: Blocks, *, axis: bool = False, jobs: int | None = 1) -> NDArray[np.float64]:
    """The estimator's value on every block, NaN where it raised or gave no number.

    `axis=True`: the estimator takes an array of shape (blocks, rows, ...) and `axis=1` and returns a value for each
    block. Each must depend on its own block only, and an estimator must keep no state between blocks (you must ensure
    this). Should it raise or give another shape, the blocks are given to it one at a time. `jobs`: joblib processes
    over the blocks, -1 for all cores.
    """
    if axis:
        stacked = blocks.stacked
        found = _quietly(lambda: np.asarray(estimator(stacked, axis=1), dtype=np.float64))
        if isinstance(found, np.ndarray) and found.shape == (blocks.count,):
            return found
        # one block must not decide over the others: not by an exception, not by a shape
        ones = (_single(stacked, block) for block in range(blocks.count))
        return np.array([_value(lambda block: estimator(block, axis=1), one) for one in ones])
    if jobs in (None, 1):
        return np.array([_value(estimator, blocks[block]) for block in range(blocks.count)])
    tasks = (delayed(_value)(estimator, blocks[block]) for block in range(blocks.count))
    return np.array(Parallel(n_jobs=jobs, batch_size=-(-blocks.count // 64))(tasks))


def row_values(function: Estimator, data: Any, rows: int) -> NDArray[np.float64]:
    """One value a row from a function of all rows, NaN if it fails, row by row if it fails on all together."""
    found = _quietly(lambda: np.asarray(function(data), dtype=np.float64))
    if isinstance(found, np.ndarray) and found.shape == (rows,):
        return found
    return np.array([_value(function, _take(data, np.array([row]))) for row in range(rows)])


def _single(stacked: Any, block: int) -> Any:
    """One block as an array of blocks, copied: an estimator may work in place here."""
    if isinstance(stacked, tuple):
        return tuple(_single(part, block) for part in stacked)
    return stacked[block : block + 1].copy()


def _value(estimator: Estimator, block: Any) -> float:
    found = _quietly(lambda: float(np.asarray(estimator(block), dtype=np.float64).reshape(())))
    return float("nan") if found is None else found


def _quietly(compute: Callable[[], _Found]) -> _Found | None:
    """None for an exception, whose text may hold rows. Warnings would reveal single blocks too.

    This includes SystemExit, by which one block could end the process. Only the keyboard interrupts.
    """
    with np.errstate(all="ignore"):
        return run_confined(compute, None)
