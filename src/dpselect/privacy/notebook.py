"""The display of an object in a notebook: a small table, everything in it escaped. Only what is public is put in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from dpselect.capabilities import Shaped
from dpselect.numerics.digits import rounded_up

__all__ = ["bound", "card", "grid", "text"]

_LONGEST = 200
_CELL = "text-align:left;vertical-align:top"


def card(title: str, rows: Iterable[tuple[str, Any]], *, note: str = "") -> str:
    """A table of names and values under a title, as HTML.

    >>> card("<b>", [("epsilon", 1)]).count("&lt;b&gt;")
    1
    """
    body = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(text(value))}</td></tr>'
        for name, value in rows
    )
    return _table(title, body, note)


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, note: str = "") -> str:
    """A table with named columns, as HTML."""
    names = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(text(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return _table(title, f"<tr>{names}</tr>{body}", note)


def text(value: Any) -> str:
    """A value in a cell, shortened if it is long. Objects without a plain form show only their type."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        shown = ", ".join(f"{key} = {text(part)}" for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        shown = ", ".join(text(part) for part in value)
    elif isinstance(value, (str, int)):
        shown = str(value)
    else:
        shown = str(value) if isinstance(value, Shaped) and value.shape == () else f"a {type(value).__name__}"
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + " ..."


def bound(value: float) -> str:
    """A bound to six digits, rounded up.

    >>> bound(1.00000001), bound(float("inf"))
    ('1.00001', 'nothing finite')
    """
    if not value < float("inf"):
        return "nothing finite"
    return rounded_up(value)


def _table(title: str, body: str, note: str) -> str:
    foot = f'<p style="font-size:smaller">{escape(note)}</p>' if note else ""
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>'
    return f"<div><table>{caption}<tbody>{body}</tbody></table>{foot}</div>"
