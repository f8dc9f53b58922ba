"""CSV files, plain or compressed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from dpselect.errors import ContentError
from dpselect.tables.blocks import csv_blocks
from dpselect.tables.csv_text import csv_header, csv_rows
from dpselect.tables.numbers import restated
from dpselect.tables.plain_lists import hardly_any
from dpselect.tables.table import SOURCES, Origin, Table
from dpselect.tables.written import CSV_ENDS, csv_form, has_tabs

__all__ = ["open_csv"]

_TEXT: Final[Any] = np.dtypes.StringDType() if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else object
"""As NumPy 2 holds text: in a quarter of the room that Python's take."""

_LOOKED_AT: Final = 1000


def open_csv(origin: Origin) -> Table:
    """A file with a header. Blanks around cells are stripped. The delimiter of `.tsv` is a tab.

    Reading raises `ContentError` for a file whose first rows have more cells than the header has names, as files of R
    do: each cell would count for another column. No row of a file whose rows fit, with a row to spare, decides that.
    """
    form = csv_form(origin.form, named=origin.option, tabs=has_tabs(origin.source))
    names = tuple(csv_header(origin.path, form, limits=origin.limits))
    if not names:
        raise ContentError(f"{origin.path.name} is empty: the first line must hold the names of the columns")

    def pieces(wanted: Sequence[str], numbers: Collection[str], width: int | None) -> Iterator[dict[str, Any]]:
        if origin.limits is None:  # rows of others are refused one by one
            refuse_shifted()
        kinds = [[name for name in wanted if (name in numbers) is kind] for kind in (True, False)]
        places = ([names.index(name) for name in kind] for kind in kinds)
        yield {name: np.array([], dtype=float if name in numbers else _TEXT) for name in wanted}
        for values, cells in csv_blocks(origin.path, form, *places, width=width, limits=origin.limits):
            texts = (np.array(text, dtype=_TEXT) for text in cells)
            yield dict(zip([*kinds[0], *kinds[1]], [*values, *texts], strict=True))

    def refuse_shifted() -> None:
        rows = [row for row in islice(csv_rows(origin.path, form, limits=origin.limits), _LOOKED_AT) if row]
        wider = sum(any(cell.strip() for cell in row[len(names) :]) for row in rows)
        if hardly_any(len(rows) - wider, wider):
            raise ContentError(
                f"{origin.path.name}: rows have more cells than the header has names: name each column in the header, "
                "row names too, and quote cells that hold the delimiter"
            )

    def restate(cells: Any, strict: bool) -> Any:
        return np.array(restated(cells, form.decimal, form.thousands, strict=strict), dtype=_TEXT)

    plain = form.decimal == "." and not form.thousands
    chunks, even = partial(pieces, width=None), partial(pieces, width=len(names))
    return Table(names, chunks, restated=None if plain else restate, is_text=True, even=even)


for _end in CSV_ENDS:
    SOURCES.register(_end, limited=True, form=("delimiter", "encoding", "decimal", "thousands", "skip_rows"))(open_csv)
