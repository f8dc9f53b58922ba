"""Statements of SQL with parameters, for each driver."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["with_parameters"]


def with_parameters(statement: str, marker: Callable[[int], str], name: Callable[[str], str] = str) -> str:
    """The statement with another marker for each parameter :p0, :p1, ..., and another form of the quoted names.

    >>> with_parameters('SELECT ":p0" < :p0', lambda place: f"${place + 1}")
    'SELECT ":p0" < $1'
    """
    return re.sub(
        r'("(?:[^"]|"")*")|:p(\d+)', lambda found: name(found[1]) if found[1] else marker(int(found[2])), statement
    )
