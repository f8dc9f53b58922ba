"""Small pictures of what a model learnt of its columns, as SVG for the report page. They need no Matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from dpselect.report.card import shown

__all__ = ["dependence_pictures"]

_COLOURS: Final = ("search", "run", "column", "composition")
"""Variables of the page's style sheet, one for each class that is drawn."""
_LEFT, _RIGHT, _TOP, _HEIGHT, _ROW = 44.0, 296.0, 10.0, 90.0, 17.0
_MOST_CATEGORIES: Final = 10
_LONGEST: Final = 16
"""Letters of a name that a picture shows."""


def dependence_pictures(release: Mapping[str, Any]) -> dict[str, Any]:
    """The answers that are drawn, each a name and a colour, and a picture with a caption for each column.

    All pictures have one scale: from 0 to 1 for probabilities, and for numbers from the least answer to the largest.
    """
    found: Sequence[Mapping[str, Any]] = release.get("dependence") or []
    classes = release["data"]["classes"]
    lines = _lines(found, classes)
    ends = (0.0, 1.0)
    if classes is None:
        everything = [answer for each in found for answer in each["answers"]]
        ends = (min(everything, default=0.0), max(everything, default=1.0))
    columns = release["data"]["columns"]
    return {
        "lines": [(name, colour) for (name, _), colour in zip(lines, _COLOURS, strict=False)],
        "pictures": [_picture(each, lines, ends, columns[each["column"]]) for each in found],
    }


def _lines(found: Sequence[Mapping[str, Any]], classes: Sequence[Any] | None) -> list[tuple[str, int | None]]:
    """The name and the place of each answer to draw: of two classes the second, of many those that move most."""
    if classes is None:
        return [("the label", None)]
    if len(classes) == 2:
        return [(str(classes[1]), 1)]

    def moves(place: int) -> float:
        answers = [[each[place] for each in one["answers"]] for one in found]
        return max((max(each) - min(each) for each in answers), default=0.0)

    places = sorted(range(len(classes)), key=lambda place: -moves(place))[: len(_COLOURS)]
    return [(str(classes[place]), place) for place in sorted(places)]


def _picture(
    part: Mapping[str, Any],
    lines: Sequence[tuple[str, int | None]],
    ends: tuple[float, float],
    facts: Mapping[str, Any],
) -> dict[str, str]:
    categories = "categories" in facts
    values = [shown(value) for value in part["values"]]
    named = values[:_MOST_CATEGORIES] if categories else values
    drawn: list[str] = []
    said = []
    for (name, place), colour in zip(lines, _COLOURS, strict=False):
        answers = [each if place is None else each[place] for each in part["answers"]][: len(named)]
        shares = [_share(each, ends) for each in answers]
        drawn += _dots(shares, colour) if categories else [_curve(shares, colour)]
        told = zip(named, answers, strict=True) if categories else ((named[i], answers[i]) for i in (0, -1))
        said.append(f"{name}: {', '.join(f'{shown(answer)} at {value}' for value, answer in told)}")
    height = _ROW * len(named) if categories else _HEIGHT
    axis = _category_axis(named, ends, height) if categories else _number_axis(values, ends)
    label = f"{part['column']}; {'; '.join(said)}"
    more = ", by its logarithm" if facts.get("scale") == "log" else ""
    if len(named) < len(values):
        more = f", and {len(values) - len(named)} more categories"
    frame = f'<svg class="plot" viewBox="0 0 300 {_TOP + height + 22:g}" role="img" aria-label="{escape(label)}">'
    return {"caption": f"{part['column']}{more}", "svg": "".join((frame, *axis, *drawn, "</svg>"))}


def _share(answer: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return 0.5 if high <= low else (answer - low) / (high - low)


def _x(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _curve(shares: Sequence[float], colour: str) -> str:
    """A line from left to right: the values of a column are even on its scale."""
    last = max(1, len(shares) - 1)
    points = " ".join(f"{_x(i / last):.1f},{_TOP + (1.0 - share) * _HEIGHT:.1f}" for i, share in enumerate(shares))
    return f'<polyline points="{points}" style="fill: none; stroke: var(--{colour}); stroke-width: 2"/>'


def _dots(shares: Sequence[float], colour: str) -> Iterator[str]:
    """A dot in the row of each category."""
    for i, share in enumerate(shares):
        x, y = 110.0 + share * (_RIGHT - 110.0), _TOP + (i + 0.5) * _ROW
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" style="fill: var(--{colour})"/>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    style = f"fill: var(--soft); font-size: 11px; text-anchor: {anchor}"
    return f'<text x="{x:g}" y="{y:g}" style="{style}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" style="stroke: var(--rule)"/>'


def _number_axis(values: Sequence[str], ends: tuple[float, float]) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    yield _line(_LEFT, bottom, _RIGHT, bottom)
    yield _line(_LEFT, _TOP, _LEFT, bottom)
    for end, y in zip(ends, (bottom, _TOP + 8.0), strict=True):
        yield _text(_LEFT - 5.0, y, shown(end), "end")
    yield _text(_LEFT, bottom + 16.0, values[0])
    yield _text(_RIGHT, bottom + 16.0, values[-1], "end")


def _category_axis(values: Sequence[str], ends: tuple[float, float], height: float) -> Iterator[str]:
    for i, value in enumerate(values):
        name = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
        yield _text(104.0, _TOP + (i + 0.5) * _ROW + 4.0, name or "(missing)", "end")
        yield _line(110.0, _TOP + (i + 0.5) * _ROW, _RIGHT, _TOP + (i + 0.5) * _ROW)
    yield _text(110.0, _TOP + height + 16.0, shown(ends[0]))
    yield _text(_RIGHT, _TOP + height + 16.0, shown(ends[1]), "end")
