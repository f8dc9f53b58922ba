"""A table whose names of columns are known and whose rows are not read yet, and the registry of what opens one."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpselect.cures import near_file
from dpselect.decoding.limits import DecodingLimits
from dpselect.errors import ArgumentError
from dpselect.registry import Registry
from dpselect.tables.column_cells import cells_in
from dpselect.tables.header import absent
from dpselect.tables.kinds.each_cell import column_of
from dpselect.tables.written import Written

__all__ = [
    "SOURCES",
    "Opener",
    "Origin",
    "Table",
    "TableEngine",
    "TableSession",
    "open_table",
    "source_name",
    "without_password",
]

Columns = dict[str, Any]
Function = Callable[..., Any]
"""A function of a cell, for an engine that lacks it."""


@dataclass(frozen=True)
class Table:
    """The names of the columns, and how to read them a chunk of rows at a time.

    Args:
        columns: the names.
        chunks: a function of names of columns and of those among them that are numbers. It yields, for each chunk of
            rows in their order, an array of each column's cells: of NumPy, or of Arrow. There is at least one chunk,
            which may be empty. Of a table of text the numbers come as doubles, NaN for a cell that is not a number. No
            content makes it raise.
        types: of each column whose type the schema states "number", "date", "duration", "category" or "none".
        empty: a function of a column's name that returns an array of no cells in the column's type, for a source
            whose columns have types. Raises `ArgumentError` for a type that is not read.
        restated: a function of cells of text that writes numbers with a decimal point, see `tables.restated`. None
            for a source whose numbers are all so.
        is_text: whether all cells are text.
        where: what errors call it.
        header: whether the names stand apart from the rows. Otherwise one row can add a name.
        even: the same as `chunks`, but raises `ContentError` for a row that has not as many cells as the header has
            names. None for a source that has no such rows.
        engine: the database that holds the table and computes over it. None for other sources.
    """

    columns: tuple[str, ...]
    chunks: Callable[[Sequence[str], Collection[str]], Iterator[Columns]]
    types: Mapping[str, str] = field(default_factory=dict)
    empty: Callable[[str], Any] | None = None
    restated: Callable[[Any, bool], Any] | None = None
    is_text: bool = False
    where: str = "the table"
    header: bool = True
    even: Callable[[Sequence[str], Collection[str]], Iterator[Columns]] | None = None
    engine: TableEngine | None = None

    def check(self, names: Collection[str], key: str = "column") -> None:
        """Raise `ArgumentError` unless each of these columns is there once."""
        there = Counter(self.columns)
        missing = [name for name in names if name not in there]
        if missing:
            raise ArgumentError(f"{key}: {absent(missing, self.columns)}")
        twice = sorted(name for name in names if there[name] > 1)
        if twice:
            shown = ", ".join(map(repr, dict.fromkeys(twice[:_SHOWN])))
            raise ArgumentError(f"{self.where} has more than one column {shown}: give each its own name")

    def read(self, names: Sequence[str], numbers: Collection[str] = ()) -> Columns:
        """These columns, each as one array of NumPy of shape (rows,). Raises `ContentError` for uneven rows."""
        parts, found = self._parts(names, numbers), {}
        for name in list(parts):
            found[name] = _joined(parts.pop(name), doubles=name in numbers)
            _release_unused()
        return found

    def _parts(self, names: Sequence[str], numbers: Collection[str]) -> dict[str, list[Any]]:
        """The arrays of all chunks, by column."""
        parts: dict[str, list[Any]] = {name: [] for name in names}
        for chunk in (self.even or self.chunks)(list(parts), numbers):
            for name, cells in parts.items():
                part = chunk[name]
                cells.append(part if isinstance(part, np.ndarray) else cells_in(part, doubles=name in numbers))
        return parts


@dataclass(frozen=True, repr=False)
class TableSession:
    """A transaction. All its statements see the same stored rows.

    Attributes:
        ask: runs a statement with :p0, :p1, ... bound to the parameters, and returns its rows. Raises `ContentError`
            that quotes nothing.
        part: the table of the rows that a condition keeps, with its parameters. Read it within the session.
    """

    ask: Callable[[str, Sequence[Any]], list[Any]]
    part: Callable[[str, Sequence[Any]], Table]


@dataclass(frozen=True, repr=False)
class TableEngine:
    """A database that holds a table and computes over its rows.

    Attributes:
        name: "sqlite", "duckdb" or "postgresql".
        rows: the table's name in statements.
        types: the engine's own name of each column's type.
        session: opens a transaction. It takes functions of a cell by name, for SQLite, which lacks some.
        stored: whether the rows are stored, so that they are the same for each statement of a session. Those of a view
            with random() are not.
    """

    name: str
    rows: str
    types: Mapping[str, str]
    session: Callable[[Mapping[str, Function]], AbstractContextManager[TableSession]]
    stored: bool


def _release_unused() -> None:
    """Give back the memory of Arrow's arrays that are gone, which Arrow would keep: as much as the whole table."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()


def _joined(parts: list[Any], *, doubles: bool) -> Any:
    """One array. Files of one folder may have other types for a column: a cell stays what it is in its own file.

    NumPy's type for all of them would be another for 5 beside 1.5, and for integers beside a file without a cell.
    With `doubles`, for a column of numbers, they are numbers of one type.
    """
    kinds = {part.dtype.kind for part in parts}
    if len({part.dtype for part in parts}) == 1 or (doubles and kinds <= set("biuf")):
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.concatenate([_objects(part) for part in parts])


def _objects(part: Any) -> Any:
    """The cells as Python objects, or as NumPy's where Python's would be others: moments, and numbers of 32 bits."""
    return part.astype(object) if part.dtype.kind in "biuOT" else column_of(list(part))


_SHOWN: Final = 20
"""More names of columns are too many to read."""
_AS_IT_IS: Final = Written()


@dataclass(frozen=True)
class Origin:
    """Where a table comes from, and how it was declared.

    Args:
        source: a path or a URL, as it was given.
        folder: where relative paths start.
        key: how the source is called in errors: a key of a study, an argument.
        form: how the source is written.
        limits: of a file that others wrote. Without limits it holds private rows, and no content makes reading fail.
    """

    source: str
    folder: Path
    key: str
    form: Written = _AS_IT_IS
    limits: DecodingLimits | None = None

    @property
    def path(self) -> Path:
        """Of a file; relative paths start at the folder."""
        return self.folder / self.source

    def option(self, part: str) -> str:
        """How a part of the form is called where the source is: a key of a study, a flag of a command, an argument."""
        flag = f"--{part.replace('_', '-')}" if self.key.isupper() else f"form.{part}"
        return f"data.{part}" if "." in self.key else flag

    def __str__(self) -> str:
        return f"{self.key} {without_password(self.source)!r}".strip()


Opener = Callable[[Origin], Table]
"""From an origin to a table.

It looks at names and types alone. Reading may raise `ContentError` that names a column at most, never a value, a row or
a count.
"""

SOURCES: Final = Registry[Opener]("source", room="dpselect.tables.sources")
"""What opens a source, by the end of its path (".csv") or the begin of its name ("sklearn:").

`SOURCES.register(".csv", form=("delimiter",))(opener)` says which parts of `Written` it takes; without it takes none.
`limited=True` says that it reads under `Origin.limits`.
"""


def open_table(
    source: str | Path,
    folder: Path = Path(),
    key: str = "data.source",
    *,
    form: Written = _AS_IT_IS,
    shared: bool = False,
    limits: DecodingLimits | None = None,
    own: bool = False,
    otherwise: str = "",
) -> Table:
    """Open a file, a folder of Parquet files or a table of a database. Its names and types are known then.

    Args: see `Origin`. `shared` says that the form is another table's: parts that this source does not take are left
    alone, and refused otherwise. `otherwise` is the kind of a file whose name has no ending that is known. With
    `limits` formats are refused whose decoders take none, or with `own` read without.

    Raises `ArgumentError` that names `key`, and `ContentError` for a file that is not of its format.
    """
    origin = Origin(str(source), folder, key, form, limits)
    kind = _kind_of(origin, otherwise)
    if limits is not None and own and not SOURCES.facts(kind).get("limited"):
        origin = replace(origin, limits=None)
    elif limits is not None and not SOURCES.facts(kind).get("limited"):
        raise ArgumentError(
            f"{origin.path.name}: {kind} is not read from others, as its decoder has no limits; save it as CSV"
        )
    taken = SOURCES.facts(kind).get("form", ())
    for part, value in asdict(form).items():
        if value is not None and part not in taken and not shared:
            raise ArgumentError(f"{origin.option(part)}: goes with {_taking(part)}, not with {kind}")
    try:
        table = SOURCES[kind](origin)
    except OSError as error:
        said = f"cannot read {origin}: {error.strerror or 'not readable'}"
        raise ArgumentError(said + near_file(error.filename or "")) from None
    return replace(table, where=str(origin) if limits is None else origin.path.name)


def _kind_of(origin: Origin, otherwise: str) -> str:
    known = [name for name in SOURCES if _names(name, origin.source)]
    if not known and ":" not in origin.source and origin.path.is_dir():
        return ".parquet"
    if not known and otherwise:
        return otherwise
    if not known:
        end = Path(origin.source.lower()).suffix
        if end in _DATABASES:
            url = f"{_DATABASES[end]}:///{origin.source}"
            raise ArgumentError(f"{origin} is a database: write {url} and name a table ({origin.option('table')})")
        if end in _SAVED:
            raise ArgumentError(f"{origin}: dpselect does not read {end} files: {_SAVED[end]}")
        ends = ", ".join(name for name in SOURCES if name.startswith("."))
        begins = ", ".join(f"{name}..." for name in SOURCES if name.endswith(":"))
        raise ArgumentError(f"{origin} must be a path ending in {ends}, or {begins}")
    return max(known, key=len)


_DATABASES: Final = dict.fromkeys((".db", ".sqlite", ".sqlite3", ".db3"), "sqlite") | {".duckdb": "duckdb"}
_SAVED: Final = {
    ".json": "write one object a line, and name the file .jsonl",
    ".zip": "unpack it first",
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".orc", ".avro"), "export it as .parquet or .csv"),
}
"""What to do with files that people have, and that no source reads."""


def without_password(source: str) -> str:
    """A path or URL as it may be shown.

    >>> without_password("postgresql://me:secret@host/people")
    'postgresql://me:***@host/people'
    """
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", source)


def source_name(source: str, table: str | None = None) -> str:
    """What may be said of a source to anyone: no folder, host or user.

    >>> source_name("secret-project/people.csv"), source_name("sklearn:digits/train")
    ('people.csv', 'sklearn:digits/train')
    >>> source_name("postgresql://me:secret@host/people?sslmode=require", "visits")
    'table visits of people (postgresql)'
    """
    engine, url, place = source.partition("://")
    if not url:
        return source if re.match(r"\w{2,}:", source) else re.split(r"[/\\]", source)[-1]
    name = re.split(r"[/\\]", place.partition("?")[0])[-1]
    return f"table {table} of {name} ({engine})" if "/" in place else f"table {table} ({engine})"


def _taking(part: str) -> str:
    return " and ".join(name for name in SOURCES if part in SOURCES.facts(name).get("form", ()))


def _names(name: str, source: str) -> bool:
    return source.startswith(name) if name.endswith(":") else source.lower().endswith(name)
