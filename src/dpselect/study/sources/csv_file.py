"""CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ContentError
from dpselect.storage import csv_header, csv_rows
from dpselect.study.sources.table import SOURCES, Table

__all__ = ["open_csv"]


@SOURCES.register(".csv")
def open_csv(source: str, folder: Path, key: str) -> Table:  # noqa: ARG001
    """A file with a header; blanks around cells are cut off."""
    path = folder / source
    names = tuple(name.strip() for name in csv_header(path, skipinitialspace=True))
    if not names:
        raise ContentError("the data file is empty")

    def read() -> dict[str, Any]:
        rows = [row for row in csv_rows(path, skipinitialspace=True) if row]
        if any(len(row) != len(names) for row in rows):
            raise ContentError("the data file has a row whose length differs from the header's")
        return {name: np.array([row[i].strip() for row in rows], dtype=object) for i, name in enumerate(names)}

    return Table(names, read)
