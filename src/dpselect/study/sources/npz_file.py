"""Archives of NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpselect.decoding import archive_headers, arrays_of
from dpselect.decoding.limits import TABLE
from dpselect.errors import ContentError, StudyError
from dpselect.study.sources.table import SOURCES, Origin, Table

__all__ = ["open_npz"]


@SOURCES.register(".npz")
def open_npz(origin: Origin) -> Table:
    """Arrays of one length each, or a matrix `X` whose columns become x0, x1, ... beside the other vectors."""
    path = origin.path
    try:
        shapes = {name: header.shape for name, header in archive_headers(path, TABLE, path.name).items()}
    except ContentError:
        raise StudyError(f"{origin.key} is not a readable .npz archive of plain arrays") from None
    names: list[str] = []
    for name, shape in shapes.items():
        names += [f"x{i}" for i in range(shape[1])] if name == "X" and len(shape) == 2 else [name]

    def read(wanted: Sequence[str]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, array in arrays_of(path, TABLE, path.name).items():
            matrix = name == "X" and array.ndim == 2
            columns |= {f"x{i}": array[:, i] for i in range(array.shape[1])} if matrix else {name: array}
        return {name: columns[name] for name in wanted}

    return Table(tuple(names), read)
