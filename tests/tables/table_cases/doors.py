"""The doors through which tables come in. A new one is one entry in `DOORS`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.holdout.files import class_names, read_columns
from dpselect.holdout.gate.files import read_outcomes
from dpselect.holdout.gate.outcomes import Layout
from dpselect.learners.rows import doubles, table_shape
from dpselect.numerics.moments import seconds_of
from dpselect.ordered import open_column
from dpselect.ordered.domains import Categories
from dpselect.ordered.sources.adapters import DataColumn, SqlTable, TextColumn, read_values
from dpselect.ordered.sources.sql_counts import quoted
from dpselect.study.columns.column import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import cells_of
from dpselect.tables.column_cells import text_chunks
from dpselect.tables.numbers import numbers_in
from dpselect.tables.table import open_table
from tests.tables.table_cases.case import Case

__all__ = ["DOORS", "Door"]

TYPED = (".parquet", ".feather", ".npz", "folder")
CSV_ENDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".csv.zst")


@dataclass(frozen=True)
class Door:
    """`read(case, given)` gives what a case wants: `given` is the path of its file, or its column in memory.

    It gives None where the door reads no row. `seen` is what it makes of numbers that are wanted.
    """

    name: str
    takes: Callable[[Case], bool]
    read: Callable[[Case, Any], Any]
    seen: Callable[[Any], Any] = lambda want: want


def is_text(case: Case) -> bool:
    return not case.in_memory and case.file.lower().endswith(CSV_ENDS)


def _source(case: Case, path: Path) -> str:
    if path.suffix == ".postgresql":
        return os.environ["DPSELECT_TEST_POSTGRES"]
    return f"{'sqlite' if path.suffix == '.db' else 'duckdb'}:///{path}" if case.table else path.name


def _column(case: Case) -> Column:
    if case.kind == "category":
        return Column(categories=case.categories, other=True)
    bounds: Any = ("1900-01-01", "2100-01-01") if case.kind == "date" and case.format is None else (0, 1)
    if case.format is not None:
        bounds = tuple(np.datetime64(day).item().strftime(case.format) for day in ("2001-01-02", "2002-02-03"))
    return Column(kind=case.kind, format=case.format, bounds=bounds, missing="indicator", **case.facts)


def _cells(case: Case, cells: Any) -> Any:
    """The numbers of cells, or how many are of each category, as a study has them."""
    column = _column(case)
    if case.kind == "category":
        return column.encode("x", cells).sum(axis=0)[: len(case.categories)]
    return column.numbers("x", cells)


def of_study(case: Case, path: Path) -> Any:
    form = replace(case.declared, table=case.table)
    table = open_table(_source(case, path), path.parent, form=form)
    table.check(["x"])
    if case.kind != "number":
        return _cells(case, cells_of(table, ["x"])["x"])
    found = _cells(case, cells_of(table, ["x"], ["x"])["x"])
    fast = _cells(case, cells_of(table, ["x"], ["x"], doubles=["x"])["x"])
    np.testing.assert_array_equal(found, fast)
    return found


def _opened(case: Case, path: Path) -> AbstractContextManager[Any]:
    text, kind = case.kind == "category", {} if case.kind == "category" else {"kind": case.kind}
    if case.table:
        return open_column(_source(case, path), "x", table=case.table, **kind if case.by_kind else {})
    if case.file.endswith(TYPED) and not case.by_kind:
        return open_column(str(path), "x", text=text)
    declared = {**kind, **case.facts} | ({"format": case.format} if case.format else {})
    return open_column(str(path), "x", form=case.declared, look=True, text=text, **declared)


def of_quantile(case: Case, path: Path) -> Any:
    with _opened(case, path) as source:
        return _column_of(case, source)


def _column_of(case: Case, source: Any) -> Any:
    if case.kind == "category":
        return source.counted(Categories(tuple(map(str, case.categories))))()
    if isinstance(source, TextColumn):
        source.dtype
    if isinstance(source, SqlTable):
        return _numbers_of(source)
    assert isinstance(source, DataColumn)
    return np.concatenate([_doubles(*block) for block in source.blocks()] or [np.empty(0)])


def _doubles(values: Any, present: Any) -> Any:
    found = seconds_of(values) if values.dtype.kind == "M" else values.astype(np.float64)
    return found if present is None else np.where(present, found, np.nan)


def _numbers_of(source: SqlTable) -> Any:
    """As the engine has them in the statements that it is asked."""
    kind = source.dtype
    assert source.number_of is not None
    expression = source.number_of.replace("{0}", quoted(source.column))
    rows = source.query(f"SELECT {expression} FROM {quoted(source.table)}", ())
    found = np.array([np.nan if cell is None else float(cell) for (cell,) in rows])
    return found / {"s": 1, "us": 10**6}[np.datetime_data(kind)[0]] if kind.kind == "M" else found


def of_holdout(case: Case, path: Path) -> Any:
    cells = read_columns(path, ["id", "x"], form=case.declared)[1]
    if case.kind == "number":
        return numbers_in(cells)
    return _counts(class_names(cells), class_names(list(map(str, case.categories))))


def _counts(cells: list[str], categories: list[str]) -> list[int]:
    return [cells.count(name) for name in categories]


def of_gate(case: Case, path: Path) -> Any:
    outcomes = read_outcomes(path, "id", ["x"], form=case.declared)
    return Layout(tuple((name,) for name in outcomes), 1).means(outcomes)


def scored(want: Any) -> Any:
    """Outcomes are numbers in [0, 1], and all else is a failure."""
    return [number + 0.0 if 0 <= number <= 1 else 0.0 for number in want]


def of_init(case: Case, path: Path) -> None:
    declared = case.declared
    flags = {
        "--delimiter": declared.delimiter,
        "--encoding": declared.encoding,
        "--decimal": declared.decimal,
        "--thousands": declared.thousands,
        "--skip-rows": declared.skip_rows,
        "--table": case.table,
    }
    given = [part for flag, value in flags.items() if value is not None for part in (flag, str(value))]
    source = _source(case, path) if case.table else os.path.relpath(path)
    found = CliRunner().invoke(app, ["init", source, "--label", "id", *given])
    if found.exception is not None:
        raise found.exception


def of_predict(case: Case, values: Any) -> Any:
    return _cells(case, table_columns({"x": values}, ["x"])["x"])


def of_median(case: Case, values: Any) -> Any:
    if case.kind == "category":
        return TextColumn(text_chunks(values)).counted(Categories(case.categories))()
    return _column_of(case, read_values(values))


def of_learners(case: Case, values: Any) -> Any:
    table = _table(values)
    table_shape(table)
    return doubles(table)[:, 0]


def _table(values: Any) -> Any:
    if hasattr(values, "to_frame"):
        return values.to_frame()
    if hasattr(values, "iterchunks") or hasattr(values, "drop_null"):
        import pyarrow as pa

        return pa.table({"x": values})
    return values[:, None] if isinstance(values, np.ndarray) else [[cell] for cell in values]


def _is_column(case: Case) -> bool:
    return case.in_memory and case.kind == "number" and isinstance(case.want, tuple)


DOORS = (
    Door("study", lambda case: not case.in_memory, of_study),
    Door(
        "quantile",
        lambda case: not case.in_memory,
        of_quantile,
    ),
    Door("holdout", lambda case: is_text(case) and case.kind in ("number", "category"), of_holdout),
    Door("gate", lambda case: (is_text(case) or case.file == "t.jsonl") and case.kind == "number", of_gate, scored),
    Door("init", lambda case: is_text(case) and not isinstance(case.want, str), of_init),
    Door("predict", lambda case: case.in_memory, of_predict),
    Door("median", lambda case: (case.in_memory and case.kind != "duration") or "median" in case.refused, of_median),
    Door("learners", _is_column, of_learners),
)
