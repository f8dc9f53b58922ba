"""Reading rows: bundled scikit-learn sets, CSV, Parquet and .npz, in two steps.

`open_table` reads names only, so that a missing column is found before a row is read. `load` reads the rows and turns
them into a matrix by public facts alone: values are clipped to their declared bounds and scaled to [0, 1], categories
become indicator columns. Content errors name a column at most, never a value, a row or a count.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError, StudyError, missing_extra
from dpselect.study.schema import Column, Data
from dpselect.study.split import row_digest

__all__ = ["Rows", "Table", "encode_columns", "load", "open_table", "plan_columns"]

Array = NDArray[np.float64]
_BUNDLED = ("digits", "breast_cancer", "iris", "wine")


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


def open_table(source: str, folder: Path) -> Table:
    """Find a source and its column names. Paths are relative to the study's folder. Raises `StudyError`."""
    if source.startswith("sklearn:"):
        return _bundled(source.removeprefix("sklearn:"))
    path = folder / source
    openers = {".csv": _open_csv, ".parquet": _open_parquet, ".npz": _open_npz}
    opener = openers.get(path.suffix.lower())
    if opener is None:
        raise StudyError(f"data.source {source!r} must be sklearn:NAME or a path ending in {', '.join(openers)}")
    try:
        return opener(path)
    except OSError as error:
        raise StudyError(f"cannot read data.source {source!r}: {error.strerror or 'not readable'}") from None


def _bundled(name: str) -> Table:
    if name not in _BUNDLED:
        raise StudyError(f"data.source: scikit-learn set {name!r} is not one of {', '.join(_BUNDLED)}")
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    names = tuple(str(n) for n in bunch.feature_names)

    def read() -> dict[str, Any]:
        return {**{n: bunch.data[:, i] for i, n in enumerate(names)}, "target": bunch.target}

    return Table((*names, "target"), read)


def _open_csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), None)
    if not header:
        raise ContentError("the data file is empty")
    names = tuple(name.strip() for name in header)

    def read() -> dict[str, Any]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            next(reader)
            rows = [row for row in reader if row]
        if any(len(row) != len(names) for row in rows):
            raise ContentError("the data file has a row whose length differs from the header's")
        return {name: np.array([row[i].strip() for row in rows], dtype=object) for i, name in enumerate(names)}

    return Table(names, read)


def _open_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    names = tuple(parquet.read_schema(path).names)

    def read() -> dict[str, Any]:
        table = parquet.read_table(path)
        return {name: table.column(name).to_numpy() for name in names}

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
                columns |= {f"x{i}": array[:, i] for i in range(array.shape[1])} if name == "X" else {name: array}
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


def load(data: Data, table: Table) -> Rows:
    """Read and encode the rows. Raises `ContentError` that names a column, never a value, a row or a count."""
    facts = plan_columns(data, table)
    columns = table.read()
    length = len(columns[data.label])
    if length == 0:
        raise ContentError("the data have no rows")
    labels = _positions(columns[data.label], data.classes)
    if len(set(labels.tolist()) - {-1}) < 2:
        raise ContentError(f"column {data.label!r} does not hold two of the declared classes")
    features = encode_columns(columns, facts)
    keys = columns[data.row_key] if data.row_key else None
    digests = [
        row_digest(str(keys[i]).encode(), b"")
        if keys is not None
        else row_digest(features[i].tobytes(), labels[i].tobytes())
        for i in range(length)
    ]
    return Rows(features, labels, digests)


def encode_columns(columns: Mapping[str, Any], facts: Mapping[str, Column]) -> Array:
    """Features in [0, 1] from raw columns and public facts, in the order of `facts`; raises `ContentError`."""
    return np.column_stack([_encode(name, columns[name], fact) for name, fact in facts.items()])


def _positions(values: Any, options: tuple[Any, ...]) -> NDArray[np.int64]:
    """Index of each value among the options, compared as text and as numbers; -1 where it is none of them."""
    index = {_text(option): i for i, option in enumerate(options)}
    return np.array([index.get(_text(value), -1) for value in values], dtype=np.int64)


def _text(value: Any) -> str:
    text = str(value).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text


def _encode(name: str, values: Any, fact: Column) -> Array:
    if fact.categories is not None:
        found = _positions(values, fact.categories)
        return np.asarray(found[:, None] == np.arange(len(fact.categories)), dtype=np.float64)
    assert fact.bounds is not None
    low, high = fact.bounds
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ContentError(f"column {name!r} is not numeric: declare its categories or leave it out") from None
    if not np.all(np.isfinite(numbers)):
        raise ContentError(f"column {name!r} has missing or infinite values")
    return ((np.clip(numbers, low, high) - low) / (high - low))[:, None]
