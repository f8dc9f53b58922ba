"""Archives of NumPy arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from dpselect.decoding.arrays import archive_headers, arrays_of
from dpselect.decoding.limits import TABLE
from dpselect.errors import ArgumentError, ContentError
from dpselect.tables.table import SOURCES, Origin, Table

__all__ = ["open_npz"]


@SOURCES.register(".npz", limited=True)
def open_npz(origin: Origin) -> Table:
    """Arrays of one length each, or a matrix `X` whose columns become x0, x1, ... beside the other vectors."""
    path, limits = origin.path, origin.limits or TABLE
    try:
        headers = archive_headers(path, limits, path.name)
    except ContentError:
        raise ContentError(f"{path.name} is not a readable .npz archive of plain arrays") from None
    named: list[tuple[str, tuple[str, int | None]]] = []
    for name, header in headers.items():
        matrix = name == "X" and len(header.shape) == 2
        named += [(f"x{i}", (name, i)) for i in range(header.shape[1])] if matrix else [(name, (name, None))]
    places = dict(named)

    def chunks(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[dict[str, Any]]:  # noqa: ARG001
        arrays = arrays_of(path, limits, path.name, names={places[name][0] for name in wanted})
        cells = {name: (arrays[places[name][0]], places[name][1]) for name in wanted}
        yield {name: array if place is None else array[:, place] for name, (array, place) in cells.items()}

    def empty(name: str) -> Any:
        array, place = places[name]
        if place is None and len(headers[array].shape) != 1:
            raise ArgumentError(f"column: {name!r} of {origin} has not one dimension: store its parts as vectors")
        return np.empty(0, dtype=headers[array].dtype)

    return Table(tuple(name for name, _ in named), chunks, empty=empty)
