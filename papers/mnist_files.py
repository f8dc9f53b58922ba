"""MNIST from the user's files: the four files that it is distributed as, or one .npz file with its arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.decoding.arrays import arrays_of
from dpselect.decoding.files import unpacked
from dpselect.decoding.limits import MODEL
from dpselect.errors import ArgumentError, ContentError

__all__ = ["Mnist", "read_mnist"]

Array = NDArray[Any]
Mnist = tuple[tuple[Array, Array], tuple[Array, Array]]
"""Training and test rows: pixels of shape (rows, height, width) from 0 to 255, and labels from 0 to 9."""

_ARRAYS: Final = ("x_train", "y_train", "x_test", "y_test")
_FILES: Final = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_mnist(path: str) -> Mnist:
    """Read a folder of the four IDX files, each as it is or with ".gz" behind its name, or an .npz file.

    Some copies have a dot before "idx" in the names, which is read as well. Raises `ArgumentError` if a file is not
    there or not in its format, and for images or labels that are not like MNIST's; no value of a row is in a message.
    """
    where = Path(path)
    x_train, y_train, x_test, y_test = _folder(where) if where.is_dir() else _npz(where)
    for x, y in ((x_train, y_train), (x_test, y_test)):
        if x.ndim != 3 or y.ndim != 1 or len(x) != len(y) or not x.size:
            raise ArgumentError(f"data: {path} must hold images of shape (rows, height, width) and a label for each")
        if not (_within(x, 255) and _within(y, 9) and np.array_equal(y, np.round(y))):
            raise ArgumentError(f"data: {path} must hold pixels from 0 to 255 and labels from 0 to 9")
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ArgumentError(f"data: {path} has test images of another size than its training images")
    return (x_train, y_train), (x_test, y_test)


def _within(values: Array, highest: int) -> bool:
    """Numbers, none missing."""
    return values.dtype.kind in "uif" and bool(np.all((values >= 0) & (values <= highest)))


def _npz(path: Path) -> list[Array]:
    try:
        arrays = arrays_of(path, MODEL, path.name, names=_ARRAYS)
        return [arrays[name] for name in _ARRAYS]
    except (OSError, ContentError, KeyError):
        raise ArgumentError(f"data: {path} must be an .npz file of the arrays {', '.join(_ARRAYS)}") from None


def _folder(folder: Path) -> list[Array]:
    return [_idx(_found(folder, name), dimensions) for name, dimensions in zip(_FILES, (3, 1, 3, 1), strict=True)]


def _found(folder: Path, name: str) -> Path:
    for spelled in (name, name.replace("-idx", ".idx")):
        for ending in ("", ".gz"):
            if (path := folder / (spelled + ending)).is_file():
                return path
    raise ArgumentError(f"data: {folder} has no file {name} or {name}.gz")


def _idx(path: Path, dimensions: int) -> Array:
    """Two zero bytes, the type (8: bytes), the number of dimensions, each of these in four bytes, high byte first."""
    try:
        with unpacked(path, MODEL) as file:
            content = file.read()
    except (OSError, ContentError):
        raise ArgumentError(f"data: {path} cannot be read") from None
    start = 4 + 4 * dimensions
    if content[:4] == bytes((0, 0, 8, dimensions)) and len(content) >= start:
        shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
        values = np.frombuffer(content, dtype=np.uint8, offset=start)
        if values.size == np.prod(shape, dtype=object):
            return values.reshape(shape)
    raise ArgumentError(f"data: {path} is not an IDX file of bytes with {dimensions} dimensions")
