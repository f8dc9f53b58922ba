"""Reading a vector of scores in chunks: arrays, memory maps, Arrow columns and parts that are read again.

What a score that is not an ordinary number means is decided here, once, and never by an error, which would tell
something of the data: NaN ranks as -inf, +inf as the largest double (a cut-off that moves no two scores apart), and
whole numbers beyond 2**53 are cut off there. Everything else that is wrong (the dtype, the shape, no score at all)
is public and raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError

__all__ = ["CHUNK", "ScoreChunks", "Scores", "as_doubles", "read_parts", "read_scores"]

Array = NDArray[np.float64]
CHUNK = 1 << 15
"""Scores handled at a time: 256 kB of doubles, which stay in a core's cache."""

_LONG = 1 << 18
_WHOLE = 1 << 53
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ScoreChunks:
    """Scores that come in parts: `read()` starts over and yields one-dimensional arrays, the same ones each time.

    >>> import numpy as np
    >>> from dpselect.mechanisms import exponential_mechanism
    >>> parts = ScoreChunks(lambda: iter([np.zeros(3), np.array([900.0])]))
    >>> exponential_mechanism(parts, sensitivity=1.0, epsilon=10.0)
    3

    For a Parquet file: `ScoreChunks(lambda: (b.column(0) for b in pq.ParquetFile(path).iter_batches(columns=["s"])))`.
    """

    read: Callable[[], Iterable[ArrayLike]]

    def iterchunks(self) -> Iterator[ArrayLike]:
        """The parts, from the first."""
        return iter(self.read())


@dataclass(frozen=True, repr=False)
class Scores:
    """What one pass over the scores found; the scores stay where they are.

    Attributes:
        count: how many there are.
        best: the largest; -inf when there is none above.
        clean: whether no score is NaN or +inf.
    """

    parts: Callable[[], Iterator[Any]]
    count: int
    best: float
    clean: bool

    def vector(self) -> Array:
        """A copy of all scores as doubles."""
        return np.concatenate([chunk.copy() for chunk in self.chunks()])

    def chunks(self) -> Iterator[Array]:
        """The scores as doubles, `CHUNK` at a time, in order."""
        for part in self.parts():
            for start in range(0, len(part), CHUNK):
                chunk = as_doubles(part[start : start + CHUNK])
                yield chunk if self.clean else _tame(chunk)


def as_doubles(piece: NDArray[Any]) -> Array:
    """Numbers as doubles, whole ones cut off at 2**53 so that no rounding drives neighbours apart."""
    if piece.dtype.kind in "iu":
        low = -_WHOLE if piece.dtype.kind == "i" else 0
        piece = np.clip(piece, low, _WHOLE) if piece.dtype.itemsize == 8 else piece
    return piece.astype(np.float64, copy=False)


def _tame(chunk: Array) -> Array:
    return np.minimum(np.fmax(chunk, -np.inf), _LARGEST)


def _part(part: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asanyarray(part)
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be doubles or whole numbers, got dtype {array.dtype}")
    return array


def read_parts(numbers: ArrayLike | ScoreChunks, name: str) -> Callable[[], Iterator[NDArray[Any]]]:
    """A function that starts over and yields one-dimensional arrays of numbers: one, or a stream's parts.

    `numbers` is anything that NumPy reads as a one-dimensional array of numbers (a memory map is not copied), an Arrow
    chunked array, or `ScoreChunks`. Raises `TypeError` for another dtype and `ArgumentError` for another shape; for
    the parts of a stream when they are read.
    """
    iterchunks = getattr(numbers, "iterchunks", None)  # pyarrow.ChunkedArray has it too
    if iterchunks:
        return lambda: (_part(part, name) for part in iterchunks())
    whole = _part(numbers, name)  # type: ignore[arg-type]
    return lambda: iter([whole])


def read_scores(scores: ArrayLike | ScoreChunks) -> Scores:
    """One pass: how many scores there are and the largest.

    `scores` and errors are those of `read_parts`; `ArgumentError` for an empty vector as well. The number of candidates
    is public.
    """
    parts = read_parts(scores, "scores")
    count, best, clean = 0, -math.inf, True
    for part in parts():
        count += len(part)
        for start in range(0, len(part), _LONG):
            piece = as_doubles(part[start : start + _LONG])
            largest = float(piece.max())
            if not largest < math.inf:
                clean, largest = False, float(_tame(piece).max())
            best = max(best, largest)
    if not count:
        raise ArgumentError("scores must not be empty")
    return Scores(parts, count, best, clean)
