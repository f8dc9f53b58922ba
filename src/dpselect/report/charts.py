"""Plots as SVG text: no script, no fonts or files from elsewhere, colours by the page's style sheet.

Every plot is one picture to a screen reader (`role="img"` with a label); its numbers stand in a table beside it. Where
a pointer hovers over a line plot, a style rule shows the values there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from itertools import pairwise

__all__ = ["Axis", "Line", "above", "bar_chart", "below", "column_chart", "line_chart", "short"]

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 720.0, 64.0, 16.0, 30.0, 46.0


def short(value: float | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number to four digits, as the page writes it. A bound is rounded to its own side: see `above`.

    >>> short(0.5), short(1e-5), short(12345.0), short(None)
    ('0.5', '1e-5', '12340', 'none')
    """
    if value is None:
        return "none"
    exact = Decimal(repr(float(value)))
    if not exact:
        return "0"
    digits = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), rounding=rounding)
    text = f"{float(digits):.12g}" if Decimal("0.001") <= abs(digits) < 10**6 else f"{float(digits):.3e}"
    mantissa, e, exponent = text.partition("e")
    return f"{float(mantissa):.4g}e{int(exponent)}" if e else text


def above(value: float | None) -> str:
    """`short`, never below the value: what is guaranteed must not look smaller than it is.

    >>> above(2.00001), above(1e-5)
    ('2.001', '1e-5')
    """
    return short(value, ROUND_CEILING)


def below(value: float | None) -> str:
    """`short`, never above the value."""
    return short(value, ROUND_FLOOR)


@dataclass(frozen=True)
class Axis:
    """A range of numbers and where it lies on the picture."""

    label: str
    low: float
    high: float
    log: bool = False

    def place(self, value: float, start: float, end: float) -> float:
        """Where a value lies between two coordinates; beyond the range it stays at the edge."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, max(value, self._least)))
        share = min(max((at - low) / (high - low), 0.0), 1.0)
        return start + share * (end - start)

    @property
    def _least(self) -> float:
        return self.low if self.log else -math.inf

    def ticks(self) -> list[float]:
        """About five round values."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**k for k in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Line:
    """One line of a plot; `style` is a class of the style sheet, and `written` says how a value is rounded."""

    name: str
    style: str
    values: Sequence[float]
    written: Callable[[float], str] = short


def line_chart(
    label: str, x: Axis, y: Axis, xs: Sequence[float], lines: Sequence[Line], *, mark: tuple[float, float] | None = None
) -> str:
    """Lines over the same values of x, with a legend, the values under the pointer, and one marked point."""
    height = 360.0
    frame = _Frame(x, y, height)
    parts = [frame.axes()]
    for line in lines:
        parts.append(f'<path class="line {line.style}" d="{_path(frame, xs, line.values)}"/>')
    if mark is not None:
        parts.append(f'<circle class="mark" cx="{frame.x(mark[0]):.1f}" cy="{frame.y(mark[1]):.1f}" r="5.5"/>')
    parts.append(_legend(lines))
    parts.append(_bands(frame, xs, lines))
    return _svg(label, height, parts)


def column_chart(label: str, x: Axis, y: Axis, heights: Sequence[float]) -> str:
    """A column over every whole number from 0."""
    height = 240.0
    frame = _Frame(x, y, height)
    width = max((frame.x(1.0) - frame.x(0.0)) * 0.7, 1.0)
    parts = [frame.axes()]
    for k, value in enumerate(heights):
        top = frame.y(value)
        parts.append(
            f'<rect class="column" x="{frame.x(k) - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{max(frame.bottom - top, 0.0):.1f}"><title>{k}: {short(value)}</title></rect>'
        )
    return _svg(label, height, parts)


def bar_chart(label: str, bars: Sequence[tuple[str, str, float]]) -> str:
    """Horizontal bars with their values: (name, class of the style sheet, value)."""
    step, left = 46.0, 4.0
    largest = max(value for _, _, value in bars) or 1.0
    room = _WIDTH - left - 90.0
    parts = []
    for i, (name, style, value) in enumerate(bars):
        top, width = i * step, max(room * value / largest, 1.0)
        parts.append(
            f'<text class="bar-name" x="{left}" y="{top + 14:.1f}">{escape(name)}</text>'
            f'<rect class="bar {style}" x="{left}" y="{top + 20:.1f}" width="{width:.1f}" height="16" rx="3"/>'
            f'<text class="bar-value" x="{left + width + 8:.1f}" y="{top + 33:.1f}">{above(value)}</text>'
        )
    return _svg(label, step * len(bars), parts)


@dataclass(frozen=True)
class _Frame:
    x_axis: Axis
    y_axis: Axis
    height: float

    @property
    def bottom(self) -> float:
        return self.height - _BOTTOM

    def x(self, value: float) -> float:
        return self.x_axis.place(value, _LEFT, _WIDTH - _RIGHT)

    def y(self, value: float) -> float:
        return self.y_axis.place(value, self.bottom, _TOP)

    def axes(self) -> str:
        parts = []
        for value in self.y_axis.ticks():
            at = self.y(value)
            parts.append(f'<path class="grid" d="M{_LEFT:.0f} {at:.1f}H{_WIDTH - _RIGHT:.0f}"/>')
            parts.append(
                f'<text class="tick" x="{_LEFT - 8:.0f}" y="{at + 4:.1f}" text-anchor="end">{short(value)}</text>'
            )
        for value in self.x_axis.ticks():
            at = self.x(value)
            parts.append(f'<path class="tick-mark" d="M{at:.1f} {self.bottom:.1f}v5"/>')
            parts.append(
                f'<text class="tick" x="{at:.1f}" y="{self.bottom + 19:.1f}" text-anchor="middle">{short(value)}</text>'
            )
        parts.append(f'<path class="axis" d="M{_LEFT:.0f} {self.bottom:.1f}H{_WIDTH - _RIGHT:.0f}"/>')
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        parts.append(
            f'<text class="label" x="{middle:.0f}" y="{self.height - 8:.0f}" text-anchor="middle">'
            f"{escape(self.x_axis.label)}</text>"
        )
        parts.append(f'<text class="label" x="4" y="14">{escape(self.y_axis.label)}</text>')
        return "".join(parts)


def _path(frame: _Frame, xs: Sequence[float], values: Sequence[float]) -> str:
    """Straight pieces between points; on a logarithmic axis the line ends where it leaves the picture."""
    low = frame.y_axis.low
    points: list[str] = []
    before = (xs[0], values[0])
    for at, value in zip(xs, values, strict=True):
        if frame.y_axis.log and value < low:
            if 0.0 < value < low < before[1]:
                share = math.log(before[1] / low) / math.log(before[1] / value)
                points.append(f"{frame.x(before[0] + share * (at - before[0])):.1f} {frame.bottom:.1f}")
            break
        points.append(f"{frame.x(at):.1f} {frame.y(value):.1f}")
        before = (at, value)
    return "M" + "L".join(points) if points else ""


def _legend(lines: Sequence[Line]) -> str:
    parts, at = [], _WIDTH - _RIGHT
    for line in reversed(lines):
        at -= 7.4 * len(line.name) + 46.0
        parts.append(
            f'<path class="line {line.style}" d="M{at:.0f} 10h26"/>'
            f'<text class="tick" x="{at + 32:.0f}" y="14">{escape(line.name)}</text>'
        )
    return "".join(parts)


def _bands(frame: _Frame, xs: Sequence[float], lines: Sequence[Line]) -> str:
    """For every x a strip that shows, when the pointer is on it, the values there."""
    places = [frame.x(at) for at in xs]
    ends = [places[0], *((a + b) / 2 for a, b in pairwise(places)), places[-1]]
    parts = []
    for i, at in enumerate(xs):
        text = f"{frame.x_axis.label} {short(at)}: " + ", ".join(
            f"{line.name} {line.written(line.values[i])}" for line in lines
        )
        dots = "".join(
            f'<circle class="dot {line.style}" cx="{places[i]:.1f}" cy="{frame.y(line.values[i]):.1f}" r="4"/>'
            for line in lines
        )
        parts.append(
            f'<g class="band"><rect x="{ends[i]:.1f}" y="{_TOP:.0f}" width="{max(ends[i + 1] - ends[i], 0.1):.1f}" '
            f'height="{frame.bottom - _TOP:.0f}"/><g class="tip"><path class="cross" d="M{places[i]:.1f} {_TOP:.0f}'
            f'V{frame.bottom:.1f}"/>{dots}<text class="tip-text" x="{_WIDTH - _RIGHT - 6:.0f}" y="{_TOP + 16:.0f}" '
            f'text-anchor="end">{escape(text)}</text></g></g>'
        )
    return "".join(parts)


def _svg(label: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
