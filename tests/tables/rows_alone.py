"""Tables of odd cells in every format, of which one row is added or changed: no other row may be read otherwise."""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ContentError
from dpselect.study.containers import table_columns
from dpselect.study.data import Rows, cells_of, encode_columns, load, of_numbers, plan_columns, study_table
from dpselect.study.schema_data import Data
from dpselect.tables import Written
from dpselect.tables.table import open_table

__all__ = ["FORMATS", "ODD", "another_way"]

ODD = (
    *("", "5", "5.0", "-0", "0", "-0.0", "nan", "-nan", "NaN", "inf", "1e400", "-1e400", "5e-324", "1e-400", "x", "?"),
    *("9007199254740993", "9007199254740992.5", "true", "TRUE", "False", "1", "1.0", "01", "NA", "null", "None", "5."),
    *("1_000", "\uff11\uff12", "1,5", "1.5", "1.234,5", "2024-01-02", "2024-01-02T23:00:00+02:00", "20240102", "+5"),
    *("2024-10-27T02:30:00", "2024-03-31 02:30", "2024-W01-1", "9999-12-31T23:59:59.999999", "0001-01-01", "26:00:00"),
    *("1 day, 2:00:00", "-1 days +01:00:00", "\u00e9", "e\u0301", "a b", "word Word", 'quo"te', "\0", "a\0", "\ufeff5"),
    *("\u00a05", "5\u2028", " 5 ", "\t5", "yes", "no", "low", "Low", "9" * 400, "1e999999999", "-99", "-99.0", "0x10"),
)
_OBJECTS = (None, True, False, 0, 1, -0.0, 5, 5.0, 2**53 + 1, -99, -99.0, float("inf"), 1e308, 10**30, "5", "yes")
_OF_JSON = (*_OBJECTS, float("nan"), [1], {"a": 1}, [], "\ud800")
_OF_EXCEL = (*_OBJECTS, datetime(2024, 1, 2, 3, 4, 5), timedelta(hours=30), time(3, 4), date(2024, 1, 2))
COLUMNS: dict[str, dict[str, Any]] = {
    "number": {"bounds": [-100, 100], "missing": "indicator"},
    "absent": {"bounds": [-100, 100], "missing": 0, "missing_values": [-99, "NA"]},
    "integer": {"kind": "integer", "bounds": [0, 1e16], "missing": "indicator"},
    "boolean": {"kind": "boolean", "true_values": ["yes", 1], "false_values": ["no", 0], "missing": "indicator"},
    "date": {"kind": "date", "bounds": ["2000-01-01", "2030-01-01"], "missing": "indicator"},
    "duration": {"kind": "duration", "bounds": [0, 1e6], "missing": "indicator"},
    "category": {"categories": ["5", "low", "\u00e9", True, -99], "other": True, "missing": "indicator"},
    "exact": {"categories": ["\u00e9", "5"], "other": True, "unicode": "exact"},
    "text": {"kind": "text", "n_features": 16, "missing": "indicator"},
    "private": {"bounds": "private", "missing": "indicator"},
}
_ORDINARY = {
    **dict.fromkeys(("number", "private"), ("1", "-7", "3")),
    **dict.fromkeys(("absent", "integer", "duration"), ("3", "4", "700")),
    "boolean": ("yes", "no"),
    "date": ("2024-05-11", "2021-01-30"),
    **dict.fromkeys(("category", "exact"), ("5", "low", "\u00e9")),
    "text": ("word two", "three", "5"),
    "label": ("yes", "no"),
    "key": ("16", "17", "18", "19"),
}
NAMES = (*COLUMNS, "label", "key")
_DECLARED = ("no cell that can", "another form", "other separators")
"""Refusals of a column that is not what it is declared to be; they are facts that no guarantee covers."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """How a table is stored: its form as a study has it, and of Arrow's files the types and the rows of each part."""

    form: dict[str, Any]
    types: dict[str, Any]
    coded: Sequence[str]
    part: int


def another_way(folder: Path, kind: str, seed: int) -> str:
    """What one row, added or changed, makes of the others; empty if nothing."""
    draw = random.Random(seed)
    shape, keyed = _shape(kind, draw), draw.random() < 0.6
    rows = [_row(draw, kind, draw.choice([0, 0.05, 0.3, 1])) for _ in range(draw.choice([4, 9]))]
    rows += [_row(draw, kind, 0) for _ in range(3)]
    rows[0]["label"], rows[1]["label"] = "yes", "no"
    place, new, old = draw.randrange(2, len(rows) + 1), _row(draw, kind, 1), _row(draw, kind, 0.3)
    added = draw.random() < 0.5
    first, second = rows[:place] + ([] if added else [old]) + rows[place:], [*rows[:place], new, *rows[place:]]
    split = replace(shape, part=shape.part + 1) if added and shape.part > place else shape
    found = _read(folder, kind, first, shape, keyed), _read(folder, kind, second, split, keyed)
    if any(isinstance(one, str) for one in found):
        said = [one for one in found if isinstance(one, str)]
        return "" if len(said) == 2 or any(word in said[0] for word in _DECLARED) else said[0]
    kept = [*range(place), *range(place + 1, len(second))]
    return _differing(*found, list(range(len(rows))) if added else kept, kept, keyed, added)


def _differing(one: Any, other: Any, before: list[int], after: list[int], keyed: bool, added: bool) -> str:
    for name in ("features", "labels", *one.numbers):
        cells = [found.numbers[name] if name in found.numbers else getattr(found, name) for found in (one, other)]
        if cells[0][before].tobytes() != cells[1][after].tobytes():
            return name
    if keyed:
        return "" if [one.digests[k] for k in before] == [other.digests[k] for k in after] else "key"
    counts = Counter(one.digests), Counter(other.digests)
    changed = sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
    return "" if changed <= (1 if added else 2) else "digests"


def _read(folder: Path, kind: str, rows: list[Row], shape: Shape, keyed: bool) -> Rows | str:
    """The rows as a study reads them, which a prediction must read alike; or the refusal."""
    form = shape.form | ({"table": "t"} if ":" in kind else {}) | ({"row_key": "key"} if keyed else {})
    data = Data.model_validate(
        {"source": "t", "label": "label", "classes": ["yes", "no", 1], "columns": COLUMNS, **form}
    )
    source = _WRITERS[kind](folder, rows, shape)
    table = study_table(source, folder, "data.source", data)
    facts = plan_columns(data, table)
    try:
        found = load(data, table, facts)
    except ContentError as error:
        return str(error)
    public = {name: fact for name, fact in facts.items() if not fact.private}
    again = open_table(source, folder, form=Written(**{k: v for k, v in form.items() if k != "row_key"}))
    told = encode_columns(table_columns(cells_of(again, list(public), of_numbers(public)), list(public)), public)
    ends = np.cumsum([fact.width for fact in facts.values()])
    starts = [
        range(end - fact.width, end) for (name, fact), end in zip(facts.items(), ends, strict=True) if name in public
    ]
    same = np.array_equal(told, found.features[:, [place for part in starts for place in part]])
    return found if same else "a prediction reads other features"


def _row(draw: random.Random, kind: str, odd: float) -> Row:
    row: Row = {name: draw.choice(ODD if draw.random() < odd else _ORDINARY[name]) for name in NAMES}
    objects = {".jsonl": _OF_JSON, ".xlsx": _OF_EXCEL, "sqlite:": _OBJECTS}.get(kind, ())
    others = [name for name in NAMES if objects and name != "label" and draw.random() < odd / 2]
    return row | {name: draw.choice(objects) for name in others}


def _shape(kind: str, draw: random.Random) -> Shape:
    forms = ({}, {"delimiter": ";", "decimal": ","}, {"delimiter": ";", "decimal": ",", "thousands": "."})
    form = draw.choice([*forms, {"thousands": ","}, {"delimiter": "\t"}]) if kind == ".csv" else {}
    if kind not in _OF_ARROW:
        return Shape(form, {}, (), 0)
    types = {name: draw.choice(kinds) for name, kinds in _types().items() if draw.random() < 0.6}
    return Shape(form, types, [name for name in NAMES if draw.random() < 0.3], draw.choice([1, 2, 5, 6, 9, 11]))


def _types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "number": [pa.float64(), pa.float32(), pa.int64(), pa.uint8(), pa.bool_(), pa.decimal128(20, 2)],
        "absent": [pa.int64(), pa.int32(), pa.float64()],
        "integer": [pa.int64(), pa.float64()],
        "boolean": [pa.bool_(), pa.int64()],
        "date": [pa.timestamp("ns"), pa.timestamp("us"), pa.date32()],
        "duration": [pa.duration("ns"), pa.duration("s"), pa.int64()],
        "category": [pa.int64(), pa.float32(), pa.bool_(), pa.date32()],
        "exact": [pa.int64(), pa.timestamp("us")],
        "text": [pa.int64(), pa.bool_(), pa.timestamp("ns"), pa.float32()],
        "private": [pa.int64(), pa.float32(), pa.float64()],
        "key": [pa.int64(), pa.timestamp("ns"), pa.date32(), pa.float32(), pa.bool_()],
    }


def _csv(folder: Path, rows: list[Row], shape: Shape) -> str:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=shape.form.get("delimiter", ","), lineterminator="\n")
        writer.writerows([NAMES, *([row[name] for name in NAMES] for row in rows)])
    return "t.csv"


def _json_lines(folder: Path, rows: list[Row], shape: Shape) -> str:
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "t.jsonl"


def _excel(folder: Path, rows: list[Row], shape: Shape) -> str:
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in ({name: name for name in NAMES}, *rows):
        cells = (row[name] for name in NAMES)
        sheet.append([cell.replace("\0", "") if isinstance(cell, str) else cell for cell in cells])
    book.save(folder / "t.xlsx")
    return "t.xlsx"


def _sqlite(folder: Path, rows: list[Row], shape: Shape) -> str:
    (folder / "t.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
        connection.execute(f"CREATE TABLE t {NAMES}")
        cells = ([str(row[name]) if row[name] == 10**30 else row[name] for name in NAMES] for row in rows)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", cells)
    return "sqlite:///t.db"


def _duckdb(folder: Path, rows: list[Row], shape: Shape) -> str:
    import duckdb

    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t ({' VARCHAR, '.join(map(repr, NAMES))} VARCHAR)".replace("'", '"'))
        cells = [[row[name].replace("\0", "") or None for name in NAMES] for row in rows]
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", cells)
    return "duckdb:///t.duckdb"


def _arrow(rows: list[Row], shape: Shape) -> Any:
    import pyarrow as pa

    columns = {}
    for name in NAMES:
        kind = shape.types.get(name, pa.string())
        found = pa.array([_cell(row[name], kind) for row in rows], kind)
        columns[name] = found.dictionary_encode() if name in shape.coded and pa.types.is_string(kind) else found
    return pa.table(columns)


def _cell(text: str, kind: Any) -> Any:
    """A cell as a type of Arrow holds it; None for one that it has not."""
    import pyarrow as pa
    import pyarrow.types as of

    made = {
        of.is_string: lambda: text or None,
        of.is_boolean: lambda: {"yes": True, "no": False, "1": True, "0": False}[text],
        of.is_integer: lambda: int(text),
        of.is_floating: lambda: float(text),
        of.is_decimal: lambda: Decimal(text).quantize(Decimal("0.01")),
        of.is_timestamp: lambda: datetime.fromisoformat(text).replace(tzinfo=None),
        of.is_date: lambda: date.fromisoformat(text),
        of.is_duration: lambda: timedelta(seconds=int(text)),
    }
    try:
        cell = next(make for test, make in made.items() if test(kind))()
        pa.array([cell], kind)
    except (ArithmeticError, LookupError, ValueError, pa.ArrowException):
        return None
    return cell


def _parquet(folder: Path, rows: list[Row], shape: Shape) -> str:
    from pyarrow import parquet

    parquet.write_table(_arrow(rows, shape), folder / "t.parquet", row_group_size=shape.part)
    return "t.parquet"


def _feather(folder: Path, rows: list[Row], shape: Shape) -> str:
    from pyarrow import feather

    feather.write_feather(_arrow(rows, shape), folder / "t.feather", chunksize=shape.part)
    return "t.feather"


def _folder(folder: Path, rows: list[Row], shape: Shape) -> str:
    """Two files; a column without a cell has no type in the second, as pandas writes it."""
    import pyarrow as pa
    from pyarrow import parquet

    table = _arrow(rows, shape)
    rest = table.slice(shape.part)
    for place, name in enumerate(NAMES):
        if rest[name].null_count == len(rest):
            rest = rest.set_column(place, name, pa.nulls(len(rest)))
    (folder / "t").mkdir(exist_ok=True)
    parquet.write_table(table.slice(0, shape.part), folder / "t" / "a.parquet")
    parquet.write_table(rest, folder / "t" / "b.parquet")
    return "t"


_OF_ARROW = {".parquet": _parquet, ".feather": _feather, "folder": _folder}
_WRITERS = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".xlsx": _excel,
    "sqlite:": _sqlite,
    "duckdb:": _duckdb,
    **_OF_ARROW,
}
FORMATS = tuple(_WRITERS)
