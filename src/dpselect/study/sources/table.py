"""A table whose names of columns are known and whose rows are not read yet, and the registry of what gives one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from dpselect.errors import StudyError
from dpselect.registry import Registry

__all__ = ["SOURCES", "Form", "Opener", "Origin", "Table", "open_table", "source_name", "without_password"]


@dataclass(frozen=True)
class Table:
    """The names of the columns, and how to read them: one array of shape (rows,) for each name.

    `read(names)` reads these columns and no others. `types` says of columns whose type the schema states whether it is
    a number, a date, a duration or a category, or none of them. `restated(cells, strict)` writes numbers in text with a
    decimal point; with `strict` a cell that is no number as it was declared is none afterwards; None where all are so.
    `read_numbers(names, numbers)` reads those that are columns of numbers as doubles, NaN where a cell is none;
    None for a source whose cells have types.
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], dict[str, Any]]
    types: Mapping[str, str] = field(default_factory=dict)
    restated: Callable[[Any, bool], Any] | None = None
    read_numbers: Callable[[Sequence[str], Collection[str]], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Form:
    """How a source is to be read, where its file does not say it; None is what its kind of source does by itself."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    table: str | None = None
    thousands: str | None = None
    skip_rows: int | None = None


_SHOWN: Final = 20
"""More names of columns are too many to read."""
_AS_IT_IS: Final = Form()


@dataclass(frozen=True)
class Origin:
    """Where a table comes from: what the study says, the study's folder, the key of the study file (for errors)."""

    source: str
    folder: Path
    key: str
    form: Form = _AS_IT_IS

    @property
    def path(self) -> Path:
        """Of a file; relative paths start at the study's folder."""
        return self.folder / self.source

    def option(self, part: str) -> str:
        """How a part of the form is called where the source is: a key of the study, or a flag of the command line."""
        return f"data.{part}" if "." in self.key else f"--{part}"

    def __str__(self) -> str:
        return f"{self.key} {without_password(self.source)!r}"


Opener = Callable[[Origin], Table]
"""From an origin to a table.

It looks at names alone. `read` may raise `ContentError` that names a column at most, never a value, a row or a count.
"""

SOURCES: Final = Registry[Opener]("source", room="dpselect.study.sources")
"""What opens a source, by the end of its path (".csv") or the begin of its name ("sklearn:").

`SOURCES.register(".csv", form=("delimiter",))(opener)` says which parts of a `Form` it takes; without it takes none.
"""


def open_table(
    source: str, folder: Path, key: str = "data.source", *, form: Form = _AS_IT_IS, shared: bool = False
) -> Table:
    """Find a source and its column names. Paths are relative to the study's folder.

    What of `form` this kind of source does not take is refused, or with `shared`, where it is another table's, left
    alone. Raises `StudyError` that names `key`.
    """
    origin = Origin(source, folder, key, form)
    known = [name for name in SOURCES if _names(name, source)]
    if not known:
        ends = ", ".join(name for name in SOURCES if name.startswith("."))
        begins = ", ".join(f"{name}..." for name in SOURCES if name.endswith(":"))
        raise StudyError(f"{origin} must be a path ending in {ends}, or {begins}")
    kind = max(known, key=len)
    taken = SOURCES.facts(kind).get("form", ())
    for part, value in asdict(form).items():
        if value is not None and part not in taken and not shared:
            raise StudyError(f"{origin.option(part)}: goes with {_taking(part)}, not with {kind}")
    try:
        table = SOURCES[kind](origin)
    except OSError as error:
        raise StudyError(f"cannot read {origin}: {error.strerror or 'not readable'}") from None
    twice = sorted(name for name, count in Counter(table.columns).items() if count > 1)
    if twice:
        shown = ", ".join(map(repr, twice[:_SHOWN]))
        raise StudyError(f"{origin} has more than one column {shown}: give each its own name")
    return table


def without_password(source: str) -> str:
    """A path or URL as it may be shown.

    >>> without_password("postgresql://me:secret@host/people")
    'postgresql://me:***@host/people'
    """
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", source)


def source_name(source: str, table: str | None = None) -> str:
    """What may be said of a source to anybody: no folder, host or user.

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
