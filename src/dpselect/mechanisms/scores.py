"""Reading a vector of scores in chunks: arrays, memory maps, Arrow columns and parts that are read again.

This module decides, once, the meaning of a score that is not an ordinary number. It never raises an error for one,
which would tell something of the data. NaN ranks as -inf, +inf as the largest float64 (clipping that moves no two
scores apart), and integers beyond 2**53 are clipped there. In a list, and in an array of objects, each entry is read by
itself. An entry that is missing or not a number is NaN there, since one such entry makes the dtype of all. Everything
else that is wrong (the dtype of an array, a list of nothing but texts or complex numbers, the shape, no score at all)
is public and raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.capabilities import ArrowNumbers, Chunked, ToArrow
from dpselect.errors import ArgumentError, secret_number
from dpselect.numerics.search import Array

__all__ = [
    "CHUNK",
    "FEW",
    "ScoreChunks",
    "Scores",
    "as_doubles",
    "as_score",
    "as_vector",
    "declared_scores",
    "read_parts",
    "read_scores",
]

CHUNK = 1 << 15
"""Scores handled at a time: 256 kB of doubles, which stay in a core's cache."""

FEW = 32
"""Up to so many scores are drawn from in plain Python, which takes less time than the calls of NumPy."""

_LONG = 1 << 18
_WHOLE = 1 << 53
_NUMBERS = frozenset((float, int, np.float64))
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ScoreChunks:
    """Scores that come in parts, for those that do not fit in memory.

    For a Parquet file: `ScoreChunks(lambda: (b.column(0) for b in pq.ParquetFile(path).iter_batches(columns=["s"])))`.

    Args:
        read: private: a function without arguments that starts over and yields one-dimensional arrays of numbers. You
            must ensure that it yields the same ones each time.

    >>> import numpy as np
    >>> from dpselect.mechanisms import exponential_mechanism
    >>> parts = ScoreChunks(lambda: iter([np.zeros(3), np.array([900.0])]))
    >>> exponential_mechanism(parts, sensitivity=1.0, epsilon=10.0)
    3
    """

    read: Callable[[], Iterable[ArrayLike]]

    def iterchunks(self) -> Iterator[ArrayLike]:
        """The parts, from the first."""
        return iter(self.read())


@dataclass(frozen=True, repr=False)
class Scores:
    """The result of one pass over the scores, which stay in place.

    Attributes:
        count: how many there are.
        best: the largest; -inf when there is none above.
        clean: whether no score is NaN or +inf.
        few: all of them in order, if they are few, and else None.
    """

    parts: Callable[[], Iterator[Any]]
    count: int
    best: float
    clean: bool
    few: list[float] | None = None

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
    """Numbers as doubles, whole ones clipped at 2**53 so that no rounding drives neighbours apart."""
    if piece.dtype.kind in "iu":
        low = -_WHOLE if piece.dtype.kind == "i" else 0
        piece = np.clip(piece, low, _WHOLE) if piece.dtype.itemsize == 8 else piece
    return piece.astype(np.float64, copy=False)


def as_score(name: str, value: Any) -> float:
    """One number as `as_doubles` has it. Raises `TypeError` for what is not a number, without showing it."""
    if type(value) is float:
        return value
    if isinstance(value, (int, np.integer)):
        return float(min(max(int(value), -_WHOLE), _WHOLE))
    return secret_number(name, value)


def as_vector(name: str, numbers: ArrayLike) -> Array:
    """An array of numbers as doubles, the entries of a list one by one. Its shape stays. Raises `TypeError`."""
    if isinstance(numbers, (list, tuple)) and not any(isinstance(one, (list, tuple, np.ndarray)) for one in numbers):
        return as_doubles(_of_list(numbers, name))
    array = np.asarray(numbers)
    if array.dtype == object:
        return _of_objects(array.reshape(-1), name).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got dtype {array.dtype}")
    return as_doubles(array)


def _score_or_nan(value: Any) -> float:
    try:
        return as_score("score", value)
    except TypeError:
        return math.nan


def _tame(chunk: Array) -> Array:
    return np.minimum(np.fmax(chunk, -np.inf), _LARGEST)


def _part(part: ArrayLike, name: str) -> NDArray[Any]:
    if isinstance(part, ToArrow):  # NumPy would make doubles of integers if one is missing
        part = part.to_arrow()
    if isinstance(part, ArrowNumbers):
        return _of_arrow(part, name)
    if isinstance(part, (list, tuple)):
        return _of_list(part, name)
    if isinstance(part, Mapping):
        raise TypeError(f"{name} must be a list or an array, got {type(part).__name__}. Write list({name}.values())")
    array = np.asanyarray(part)
    if array.dtype == object and array.ndim == 1:
        return _of_objects(array, name)
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be doubles or integers, got dtype {array.dtype}")
    return array


def _of_list(part: Sequence[Any], name: str) -> NDArray[Any]:
    """The type that NumPy gives to a list depends on each of its entries. The result of this function does not."""
    if any(isinstance(entry, (list, tuple, np.ndarray)) for entry in part):
        raise ArgumentError(f"{name} must be one-dimensional")
    array = np.asarray(part)
    if array.dtype.kind in "iub" or (array.dtype.kind == "f" and not np.any(np.abs(array) > _WHOLE)):
        return array
    entries = np.empty(len(part), dtype=object)
    entries[:] = part
    return _of_objects(entries, name)


def _of_objects(entries: NDArray[Any], name: str) -> Array:
    """Read each entry by itself. A vector of texts only is a mistake that a single entry does not make."""
    if len(entries) and all(isinstance(entry, (str, bytes, complex)) for entry in entries):
        raise TypeError(f"{name} must be numbers")
    return np.array([_score_or_nan(entry) for entry in entries], dtype=np.float64)


def _of_arrow(part: Any, name: str) -> NDArray[Any]:
    """An Arrow array, whose integers become doubles where one is missing: they are clipped as all others are."""
    if any(word in str(part.type) for word in ("string", "binary", "date", "time", "list", "struct")):
        raise TypeError(f"{name} must be doubles or integers, got {part.type}")
    if not part.null_count:
        return _part(np.asarray(part), name)
    if str(part.type).startswith(("int", "uint")):
        doubles = np.array(as_doubles(np.asarray(part.fill_null(0))), dtype=np.float64)
        doubles[np.asarray(part.is_null())] = np.nan
        return doubles
    return _part(np.asarray(part), name)


def read_parts(numbers: ArrayLike | ScoreChunks, name: str) -> Callable[[], Iterator[NDArray[Any]]]:
    """A function that starts over and yields one-dimensional arrays of numbers: one, or a stream's parts.

    `numbers` is anything that NumPy reads as a one-dimensional array of numbers (a memory map is not copied), an Arrow
    chunked array, or `ScoreChunks`. Raises `TypeError` for another dtype and `ArgumentError` for another shape. For the
    parts of a stream it raises when they are read.
    """
    if isinstance(numbers, Chunked):
        return lambda: (_part(part, name) for part in numbers.iterchunks())
    whole = _part(numbers, name)
    return lambda: iter([whole])


def read_scores(scores: ArrayLike | ScoreChunks) -> Scores:
    """Read the scores once: their number and the largest. Errors are those of `declared_scores`."""
    return declared_scores(scores)()


def declared_scores(
    scores: ArrayLike | ScoreChunks, check_count: Callable[[int], None] | None = None, *, name: str = "scores"
) -> Callable[[], Scores]:
    """Return a function that reads the scores: their number and the largest.

    Type and shape are checked now, with the errors of `read_parts`. So is their number, by `check_count` and for being
    none at all (`ArgumentError`). Both are checked for a stream when it is read. The number of candidates is public.
    """

    def check(count: int) -> None:
        if not count:
            raise ArgumentError(f"{name} must not be empty")
        if check_count is not None:
            check_count(count)

    few = _few(scores)
    if few is not None:
        check(len(few))
        return lambda: _of_few(few)
    parts = read_parts(scores, name)
    if not isinstance(scores, Chunked):
        check(sum(map(len, parts())))

    def read() -> Scores:
        found = _counted(parts)
        check(found.count)
        return found

    return read


def _few(scores: Any) -> list[float] | None:
    """The scores as doubles if they are a few numbers, in a list or an array. Others are read by `read_parts`."""
    if isinstance(scores, np.ndarray):
        return scores.tolist() if scores.dtype == np.float64 and scores.ndim == 1 and 0 < len(scores) <= FEW else None
    if isinstance(scores, (list, tuple)) and 0 < len(scores) <= FEW and _NUMBERS.issuperset(map(type, scores)):
        return [float(score) if type(score) is not int else as_score("score", score) for score in scores]
    return None


def _of_few(scores: list[float]) -> Scores:
    if not all(map(math.isfinite, scores)):
        scores = [min(score, _LARGEST) if score > -math.inf else -math.inf for score in scores]
    return Scores(lambda: iter([np.array(scores)]), len(scores), max(scores), True, scores)


def _counted(parts: Callable[[], Iterator[NDArray[Any]]]) -> Scores:
    count, best, clean = 0, -math.inf, True
    for part in parts():
        count += len(part)
        for start in range(0, len(part), _LONG):
            piece = as_doubles(part[start : start + _LONG])
            largest = float(piece.max())
            if not largest < math.inf:
                clean, largest = False, float(_tame(piece).max())
            best = max(best, largest)
    return Scores(parts, count, best, clean)
