"""Archives of NumPy arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpselect.errors import StudyError
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_npz"]


@SOURCES.register(".npz")
def open_npz(origin: Origin) -> Table:
    """Arrays of one length each, or a matrix `X` whose columns become x0, x1, ... beside the other vectors."""
    path = origin.path
    try:
        with zipfile.ZipFile(path) as archive:
            shapes = {name.removesuffix(".npy"): _shape(archive, name) for name in archive.namelist()}
    except (ValueError, zipfile.BadZipFile):
        raise StudyError(f"{origin.key} is not a readable .npz archive of plain arrays") from None
    names: list[str] = []
    for name, shape in shapes.items():
        names += [f"x{i}" for i in range(shape[1])] if name == "X" and len(shape) == 2 else [name]

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name]
                matrix = name == "X" and array.ndim == 2
                columns |= {f"x{i}": array[:, i] for i in range(array.shape[1])} if matrix else {name: array}
        return {name: columns[name] for name in wanted}

    return Table(tuple(names), read)


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    """The shape of an array, from its header alone."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return read(file)[0]
