"""Statements of SQL with parameters, for each driver."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ["SQLITE_CELL", "with_parameters"]

SQLITE_CELL: Final = "CASE WHEN typeof({0}) = 'blob' THEN 'a blob' ELSE +{0} END"
"""A cell of a column of numbers or dates in SQLite. Bytes are neither, even if they are the text of one."""


def with_parameters(statement: str, marker: Callable[[int], str], name: Callable[[str], str] = str) -> str:
    """The statement with another marker for each parameter :p0, :p1, ..., and another form of the quoted names.

    >>> with_parameters('SELECT ":p0" < :p0', lambda place: f"${place + 1}")
    'SELECT ":p0" < $1'
    """
    return re.sub(
        r'("(?:[^"]|"")*")|:p(\d+)', lambda found: name(found[1]) if found[1] else marker(int(found[2])), statement
    )
