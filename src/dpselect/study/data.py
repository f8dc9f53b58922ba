"""Reading rows: bundled scikit-learn sets, CSV, Parquet and .npz, in two steps.

`open_table` reads names only, so that a missing column is found before a row is read. `load` reads the rows and turns
them into a matrix by public facts alone: values are clipped to their declared bounds and scaled to [0, 1], categories
become indicator columns. Content errors name a column at most, never a value, a row or a count.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError, StudyError, missing_extra
from dpselect.storage.csv_text import csv_header, csv_rows
from dpselect.study.cells import arrow_cells, numbers, positions
from dpselect.study.row_parts import row_digest
from dpselect.study.schema import Column, Data

__all__ = ["Rows", "Table", "encode_columns", "load", "open_table", "plan_columns"]

Array = NDArray[np.float64]
_BUNDLED = ("digits", "breast_cancer", "iris", "wine")
_TEST_EVERY = 5


@dataclass(frozen=True)
class Table:
    """A source whose column names are known and whose rows are not read yet."""

    columns: tuple[str, ...]
    read: Callable[[], dict[str, Any]]


@dataclass(frozen=True, repr=False)
class Rows:
    """Features in [0, 1] (rows x features), labels as indices into the declared classes, and a digest of each row.

    `labels` is -1 where a label is not among the declared classes. `digests` depend on one row each.
    """

    features: Array
    labels: NDArray[np.int64]
    digests: list[bytes]


def open_table(source: str, folder: Path, key: str = "data.source") -> Table:
    """Find a source and its column names. Paths are relative to the study's folder.

    Raises `StudyError` that names the study's `key`.
    """
    if source.startswith("sklearn:"):
        return _bundled(source.removeprefix("sklearn:"), key)
    path = folder / source
    openers = {".csv": _open_csv, ".parquet": _open_parquet, ".npz": _open_npz}
    opener = openers.get(path.suffix.lower())
    if opener is None:
        raise StudyError(f"{key} {source!r} must be sklearn:NAME or a path ending in {', '.join(openers)}")
    try:
        table = opener(path)
    except OSError as error:
        raise StudyError(f"cannot read {key} {source!r}: {error.strerror or 'not readable'}") from None
    twice = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if twice:
        raise StudyError(f"{key} {source!r} has more than one column {', '.join(map(repr, twice))}")
    return table


def _bundled(name: str, key: str) -> Table:
    """A set of scikit-learn: all rows, or one of two parts, every fifth row from the first on being "test"."""
    known, _, part = name.partition("/")
    if known not in _BUNDLED:
        raise StudyError(f"{key}: scikit-learn set {known!r} is not one of {', '.join(_BUNDLED)}")
    if part not in ("", "train", "test"):
        raise StudyError(f"{key}: a part of sklearn:{known} is /train or /test, got {part!r}")
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{known}")()
    names = tuple(str(n) for n in bunch.feature_names)
    tests = np.arange(len(bunch.target)) % _TEST_EVERY == 0
    kept = {"": np.full_like(tests, True), "train": ~tests, "test": tests}[part]

    def read() -> dict[str, Any]:
        return {**{n: bunch.data[kept, i] for i, n in enumerate(names)}, "target": bunch.target[kept]}

    return Table((*names, "target"), read)


def _open_csv(path: Path) -> Table:
    names = tuple(name.strip() for name in csv_header(path, skipinitialspace=True))
    if not names:
        raise ContentError("the data file is empty")

    def read() -> dict[str, Any]:
        rows = [row for row in csv_rows(path, skipinitialspace=True) if row]
        if any(len(row) != len(names) for row in rows):
            raise ContentError("the data file has a row whose length differs from the header's")
        return {name: np.array([row[i].strip() for row in rows], dtype=object) for i, name in enumerate(names)}

    return Table(names, read)


def _open_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    names: tuple[str, ...] = ()
    with suppress(ValueError):  # an error of Arrow
        names = tuple(parquet.read_schema(path).names)
    if not names:
        raise StudyError("data.source is not a readable Parquet file")

    def read() -> dict[str, Any]:
        table = parquet.read_table(path)
        return {name: arrow_cells(table.column(name)) for name in names}

    return Table(names, read)


def _open_npz(path: Path) -> Table:
    """Arrays of one length each, or a matrix `X` whose columns become x0, x1, ... beside the other vectors."""
    try:
        with zipfile.ZipFile(path) as archive:
            shapes = {name.removesuffix(".npy"): _shape(archive, name) for name in archive.namelist()}
    except (ValueError, zipfile.BadZipFile):
        raise StudyError("data.source is not a readable .npz archive of plain arrays") from None
    names: list[str] = []
    for name, shape in shapes.items():
        names += [f"x{i}" for i in range(shape[1])] if name == "X" and len(shape) == 2 else [name]

    def read() -> dict[str, Any]:
        columns: dict[str, Any] = {}
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name]
                matrix = name == "X" and array.ndim == 2
                columns |= {f"x{i}": array[:, i] for i in range(array.shape[1])} if matrix else {name: array}
        return columns

    return Table(tuple(names), read)


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    """The shape of an array, from its header alone."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape: tuple[int, ...] = read(file)[0]
    return shape


def plan_columns(data: Data, table: Table) -> dict[str, Column]:
    """The feature columns in file order with their public facts. Raises `StudyError` naming what is missing."""
    special = {data.label, *([data.row_key] if data.row_key else [])}
    missing = [name for name in (*special, *data.columns) if name not in table.columns]
    if missing:
        raise StudyError(f"data: no such column: {', '.join(repr(m) for m in missing)}")
    if data.bounds is None:
        return {name: data.columns[name] for name in table.columns if name in data.columns}
    shared = Column(bounds=data.bounds)
    return {name: data.columns.get(name, shared) for name in table.columns if name not in special}


def load(data: Data, table: Table, facts: Mapping[str, Column] | None = None) -> Rows:
    """Read and encode the rows, the features in the order of `facts`; by default in the table's own.

    Raises `ContentError` that names a column, never a value, a row or a count.
    """
    facts = plan_columns(data, table) if facts is None else facts
    columns = _cells(table)
    length = np.size(columns[data.label])
    if length == 0:
        raise ContentError("the data have no rows")
    for name in (data.label, *facts, *([data.row_key] if data.row_key else [])):
        if np.shape(columns[name]) != (length,):
            raise ContentError(f"column {name!r} does not have one cell for each row")
    labels = positions(columns[data.label], data.classes)
    if len(set(labels.tolist()) - {-1}) < 2:
        raise ContentError(f"column {data.label!r} does not hold two of the declared classes")
    features = encode_columns(columns, facts)
    keys = columns[data.row_key] if data.row_key else None
    digests = [
        row_digest(str(keys[i]).encode("utf-8", "surrogatepass"), b"")
        if keys is not None
        else row_digest(features[i].tobytes(), labels[i].tobytes())
        for i in range(length)
    ]
    return Rows(features, labels, digests)


def _cells(table: Table) -> dict[str, Any]:
    """The columns. What a library says of cells that it cannot read is not passed on, as it may quote them."""
    try:
        return table.read()
    except (ContentError, StudyError):
        raise
    except Exception:
        pass
    raise ContentError("the data cannot be read")


def encode_columns(columns: Mapping[str, Any], facts: Mapping[str, Column]) -> Array:
    """Features in [0, 1] from raw columns and public facts, in the order of `facts`; raises `ContentError`."""
    return np.column_stack([_encode(name, columns[name], fact) for name, fact in facts.items()])


def _encode(name: str, values: Any, fact: Column) -> Array:
    if fact.categories is not None:
        found = positions(values, fact.categories)
        return np.asarray(found[:, None] == np.arange(len(fact.categories)), dtype=np.float64)
    assert fact.bounds is not None
    low, high = fact.bounds
    cells = numbers(name, values)
    if not np.all(np.isfinite(cells)):
        raise ContentError(f"column {name!r} has missing or infinite values")
    return ((np.clip(cells, low, high) - low) / (high - low))[:, None]
