"""Pictures of the report page as SVG, which its style sheet colours. The same numbers give the same text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import Final

__all__ = ["COLOURS", "Axis", "Curve", "bars", "columns", "curves"]

COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "search": "#b3401f",
        "run": "#14639c",
        "other": "#6b7785",
        "composition": "#6b4c93",
        "column": "#2d7d59",
        "text": "#1b2733",
        "soft": "#51606e",
        "rule": "#d5dce3",
    }
)
"""What is drawn in which colour: on the page a variable of the style sheet, which has others for a dark screen."""

_WIDTH: Final = 302
"""Units of a picture: on a phone its letters are then about as large as those beside it."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 8.0, 8.0, 34.0
_TICKS: Final = 6


@dataclass(frozen=True)
class Axis:
    """One direction of a picture, from `low` to `high`, which may be logarithmic."""

    title: str
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """The part of the way from `low` to `high`. On a logarithmic axis nothing is below -1."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0.0:
            return -1.0
        return max(math.log10(value / self.low) / math.log10(self.high / self.low), -1.0)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """A few round values with their labels."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            for power in range(first, last + 1, max(1, -(-(last - first) // _TICKS))):
                yield 10.0**power, f"10<tspan dy='-4' font-size='7'>{power}</tspan>" if power else "1"
            return
        rough = (self.high - self.low) / _TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * each for each in (1, 2, 5, 10) if unit * each >= rough * (1 - 1e-9))
        for place in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1):
            yield place * step, f"{place * step:g}"


@dataclass(frozen=True)
class Curve:
    """A line through points, with its name in the legend and the name of its colour."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def curves(
    label: str,
    height: float,
    axes: tuple[Axis, Axis],
    drawn: Sequence[Curve],
    *,
    dot: tuple[float, float] | None = None,
    notes: Sequence[tuple[float, float, str]] = (),
    legend_left: bool = False,
) -> str:
    """Curves with a legend. `notes` are texts for a range of x, which browsers show if the pointer is there."""
    frame = _Frame(axes, height)
    lines = [*frame.grid()]
    for curve in drawn:
        style = f'fill="none" stroke="{_colour(curve.colour)}" stroke-width="1.6" stroke-linejoin="round"'
        dashes = ' stroke-dasharray="6 3"' if curve.dashed else ""
        lines.append(f'<path d="{frame.path(curve.points)}" {style}{dashes}/>')
    if dot is not None:
        x, y = frame.at(*dot)
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_colour(drawn[-1].colour)}"/>')
    longest = max(len(curve.name) for curve in drawn)
    start = _LEFT + 8.0 if legend_left else _WIDTH - _RIGHT - 30.0 - 5.2 * longest
    for place, curve in enumerate(drawn):
        y, dashes = _TOP + 10.0 + 14.0 * place, ' stroke-dasharray="6 3"' if curve.dashed else ""
        stroke = f'stroke="{_colour(curve.colour)}" stroke-width="1.6"'
        lines.append(f'<path d="M{start:.1f} {y:.1f}h20" {stroke}{dashes}/>')
        lines.append(_text(escape(curve.name), start + 25.0, y + 3.0, "text"))
    for left, right, text in notes:
        ends = [frame.at(each, frame.y.low)[0] for each in (left, right)]
        box = f'x="{ends[0]:.1f}" y="{_TOP:.1f}" width="{ends[1] - ends[0]:.1f}" height="{frame.tall:.1f}"'
        lines.append(f'<rect {box} fill="none" pointer-events="all"><title>{escape(text)}</title></rect>')
    return _picture(label, height, lines)


def columns(label: str, height: float, axes: tuple[Axis, Axis], heights: Sequence[float]) -> str:
    """A column for each of 0, 1, 2 and so on."""
    frame = _Frame(axes, height)
    lines = [*frame.grid()]
    for place, each in enumerate(heights):
        (x, y), (to_x, to_y) = frame.at(place - 0.35, each), frame.at(place + 0.35, 0.0)
        size = f'width="{to_x - x:.2f}" height="{to_y - y:.2f}"'
        lines.append(f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{_colour("column")}"/>')
    return _picture(label, height, lines)


def bars(label: str, drawn: Sequence[tuple[str, str, float, str]]) -> str:
    """Bars from the left, each with its name above and its value behind it: (name, colour, length, value)."""
    longest = max(*(length for _, _, length, _ in drawn), 1e-300)
    lines = []
    for place, (name, colour, length, value) in enumerate(drawn):
        y, width = 12.0 + 34.0 * place, (_WIDTH - 50.0) * (length / longest)
        lines.append(_text(escape(name), 0.0, y, "text"))
        lines.append(f'<rect x="0" y="{y + 5.0:.1f}" width="{width:.1f}" height="11" fill="{_colour(colour)}"/>')
        lines.append(_text(escape(value), width + 6.0, y + 14.0, "text", 'font-weight="bold"'))
    return _picture(label, 34.0 * len(drawn), lines)


class _Frame:
    """The part of a picture that the axes span."""

    def __init__(self, axes: tuple[Axis, Axis], height: float) -> None:
        self.x, self.y = axes
        self.wide, self.tall = _WIDTH - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        return _LEFT + self.wide * self.x.share(x), _TOP + self.tall * (1.0 - self.y.share(y))

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """The line through the points, without its parts above and below the frame."""
        places = [self.at(*point) for point in points]
        top, bottom = _TOP, _TOP + self.tall
        found: list[str] = []
        for (x, y), (to_x, to_y) in pairwise([*places, places[-1]]):
            if top <= y <= bottom:
                found.append(f"{'L' if found else 'M'}{x:.1f} {y:.1f}")
            edges = [edge for edge in (top, bottom) if min(y, to_y) < edge < max(y, to_y)]
            for nth, edge in enumerate(sorted(edges, reverse=y > to_y)):
                inward = nth == 0 and not top <= y <= bottom
                found.append(f"{'M' if inward else 'L'}{x + (to_x - x) * (edge - y) / (to_y - y):.1f} {edge:.1f}")
        return "".join(found)

    def grid(self) -> Iterator[str]:
        """Lines and labels of the ticks, the titles of the axes, and the axes."""
        right, bottom = _LEFT + self.wide, _TOP + self.tall
        for value, label in self.x.ticks():
            x = self.at(value, self.y.low)[0]
            yield f'<path d="M{x:.1f} {_TOP:.1f}V{bottom:.1f}" stroke="{_colour("rule")}" stroke-width=".8"/>'
            yield _text(label, x, bottom + 13.0, "soft", 'text-anchor="middle"')
        for value, label in self.y.ticks():
            y = self.at(self.x.low, value)[1]
            yield f'<path d="M{_LEFT:.1f} {y:.1f}H{right:.1f}" stroke="{_colour("rule")}" stroke-width=".8"/>'
            yield _text(label, _LEFT - 5.0, y + 3.5, "soft", 'text-anchor="end"')
        middle = (_TOP + bottom) / 2.0
        yield _text(escape(self.x.title), (_LEFT + right) / 2.0, bottom + 28.0, "soft", 'text-anchor="middle"')
        turned = f'text-anchor="middle" transform="rotate(-90 10 {middle:.1f})"'
        yield _text(escape(self.y.title), 10.0, middle, "soft", turned)
        yield f'<path d="M{_LEFT:.1f} {_TOP:.1f}V{bottom:.1f}H{right:.1f}" fill="none" stroke="{_colour("soft")}"/>'


def _colour(name: str) -> str:
    return f"var(--{name}, {COLOURS[name]})"


def _text(inside: str, x: float, y: float, colour: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="{_colour(colour)}" {more}>{inside}</text>'


def _picture(label: str, height: float, lines: Sequence[str]) -> str:
    """SVG inside of a page, with a label for who cannot see it."""
    head = f'<svg class="plot" viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(label)}"'
    return "\n".join([f'{head} xmlns="http://www.w3.org/2000/svg">', *lines, "</svg>"])
