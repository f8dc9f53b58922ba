"""The error for columns that a table lacks: it shows the names that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

__all__ = ["absent"]

_SHOWN: Final = 20
"""More names of columns are too many to read."""
_COMPARED: Final = 5_000
"""Finding what is alike among more names takes seconds."""


def absent(names: Iterable[str], there: Sequence[str]) -> str:
    """Return the error for columns that a table lacks. It names those that it has, or the most similar of many.

    >>> absent(["age"], ["# 2024"])
    "no such column: 'age'; there are '# 2024': a comment, so say by skip_rows how many lines stand before the header"
    """
    missing = list(names)
    near = [get_close_matches(name, there if len(there) <= _SHOWN else (), n=1) for name in missing[:1]]
    meant = f". Did you mean {near[0][0]!r}?" if near and near[0] else ""
    return f"no such column: {', '.join(map(repr, missing))}; {_present(missing, there)}{meant}"


def _present(missing: Sequence[str], there: Sequence[str]) -> str:
    compared = there if len(there) <= _COMPARED else ()
    alike = [close for name in missing[:_SHOWN] for close in get_close_matches(name, compared, n=3, cutoff=0.5)]
    shown = there if len(there) <= _SHOWN else list(dict.fromkeys(alike)) or there[:_SHOWN]
    more = "" if len(shown) == len(there) else f", and others ({len(there)} in all)"
    skip = "so say by skip_rows how many lines stand before the header"
    if len(there) == 1 and (found := re.fullmatch(r"sep=(.?)", there[0])):
        more = f": what spreadsheets write before the header, {skip}, and by delimiter that it is {found[1] or ','!r}"
    elif there and there[0].startswith("#"):
        more = f": a comment, {skip}"
    elif len(there) == 1 and (found := re.search(r"[;,|\t]", there[0])):
        more = f': one column alone, so the delimiter may be {found[0]!r}. Write delimiter="{found[0]}"'
    return f"there are {', '.join(map(repr, shown))}{more}"
