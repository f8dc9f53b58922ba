"""CSV files, plain or compressed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dpselect.errors import ContentError
from dpselect.tables.blocks import csv_blocks
from dpselect.tables.csv_text import csv_header
from dpselect.tables.numbers import restated
from dpselect.tables.table import SOURCES, Origin, Table
from dpselect.tables.written import CSV_ENDS, csv_form, has_tabs

__all__ = ["open_csv"]

_TEXT: Final[Any] = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object
"""As NumPy 2 holds text: in a quarter of the room that Python's take."""


def open_csv(origin: Origin) -> Table:
    """A file with a header. Blanks around cells are stripped. The delimiter of `.tsv` is a tab."""
    form = csv_form(origin.form, named=origin.option, tabs=has_tabs(origin.source))
    names = tuple(csv_header(origin.path, form, limits=origin.limits))
    if not names:
        raise ContentError(f"{origin.path.name} is empty: the first line must hold the names of the columns")

    def pieces(wanted: Sequence[str], numbers: Collection[str], width: int | None) -> Iterator[dict[str, Any]]:
        kinds = [[name for name in wanted if (name in numbers) is kind] for kind in (True, False)]
        places = ([names.index(name) for name in kind] for kind in kinds)
        yield {name: np.array([], dtype=float if name in numbers else _TEXT) for name in wanted}
        for values, cells in csv_blocks(origin.path, form, *places, width=width, limits=origin.limits):
            texts = (np.array(text, dtype=_TEXT) for text in cells)
            yield dict(zip([*kinds[0], *kinds[1]], [*values, *texts], strict=True))

    def restate(cells: Any, strict: bool) -> Any:
        return np.array(restated(cells, form.decimal, form.thousands, strict=strict), dtype=_TEXT)

    plain = form.decimal == "." and not form.thousands
    chunks, even = partial(pieces, width=None), partial(pieces, width=len(names))
    return Table(names, chunks, restated=None if plain else restate, is_text=True, even=even)


for _end in CSV_ENDS:
    SOURCES.register(_end, limited=True, form=("delimiter", "encoding", "decimal", "thousands", "skip_rows"))(open_csv)
