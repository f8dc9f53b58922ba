"""What a case is: a table, what is declared of it, and what its column `x` holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpselect.tables import Written

__all__ = ["NAN", "Case", "seconds"]

NAN = math.nan


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """`make` is the content of a file, or writes one at a path, or with `in_memory` returns the column.

    `want` are the numbers of the column (NaN where there is none), of dates the seconds since 1970, of categories how
    often each of `categories` occurs; or a pattern of the refusal. `refused` are doors that refuse by name what others
    read. `known` are doors that are wrong today, and what they do. `thread` is a public report, empty for a case of our
    own. `facts` are further keys of the column, as a study has them. With `pandas`, its `read_csv` gives the same
    numbers. With `by_kind`, order statistics of a database read the cells by their declared kind.
    """

    name: str
    thread: str
    make: str | bytes | Callable[..., Any]
    want: tuple[float, ...] | str
    declared: Written = field(default_factory=Written)
    file: str = "t.csv"
    kind: str = "number"
    format: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[Any, ...] = ()
    table: str | None = None
    in_memory: bool = False
    by_kind: bool = False
    pandas: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Write the file of the case into a folder."""
        path = folder / self.file
        if callable(self.make):
            self.make(path)
        else:
            path.write_bytes(self.make if isinstance(self.make, bytes) else self.make.encode())
        return path


def seconds(text: str) -> float:
    """Since 1970, of a moment in UTC."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
