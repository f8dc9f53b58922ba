"""Plots by Matplotlib: files of every kind, and pictures inside of the report page, which its style sheet colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpselect.errors import ArgumentError

__all__ = ["COLOURS", "check_plot_path", "picture", "plotting", "save_plot"]

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

_STYLE: Final = {
    "axes.axisbelow": True,
    "axes.edgecolor": COLOURS["soft"],
    "axes.grid": True,
    "axes.labelcolor": COLOURS["soft"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "grid.color": COLOURS["rule"],
    "legend.frameon": False,
    "legend.fontsize": "small",
    "svg.fonttype": "none",
    "svg.hashsalt": "dpselect",
    "text.color": COLOURS["text"],
    "xtick.color": COLOURS["soft"],
    "ytick.color": COLOURS["soft"],
}


@contextmanager
def plotting(*, width: float = 7.2, height: float = 4.6) -> Iterator[Axes]:
    """Axes of a new figure, in inches, in the style of all plots; to be saved inside of the block. Needs no display."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained").add_subplot()


def _save(axes: Axes, to: Path | io.StringIO, **options: Any) -> None:
    figure = axes.figure
    assert isinstance(figure, Figure)  # of `plotting`
    figure.savefig(to, **options)


def check_plot_path(argument: str, path: Path) -> None:
    """Raise `ArgumentError` where a plot could not be written to `path`, before anything is paid for what it shows."""
    known = sorted({"html", *Figure().canvas.get_supported_filetypes()})
    if path.suffix.lower().removeprefix(".") not in known:
        raise ArgumentError(f"{argument}: the name must end in one of .{', .'.join(known)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise ArgumentError(f"{argument}: there is no folder {path.parent}")


def save_plot(axes: Axes, path: Path, *, title: str = "Plot") -> None:
    """Write the figure; the suffix of `path` says how. The same figure gives the same bytes."""
    suffix = path.suffix.lower()
    if suffix == ".html":
        head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        path.write_text(head + picture(axes, title), encoding="utf-8")
        return
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(suffix)
    _save(axes, path, dpi=150, metadata={date: None} if date else None)


def picture(axes: Axes, label: str, notes: Mapping[str, str] | None = None) -> str:
    """The figure as SVG inside of a page, with a label for who cannot see it.

    `notes`: a text for an artist's `gid`, which browsers show where the pointer is on the artist.
    """
    buffer = io.StringIO()
    _save(axes, buffer, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    drawn = buffer.getvalue()
    size = re.search(r'viewBox="[^"]*"', drawn)
    assert size is not None
    inside = drawn[drawn.index(">", size.end()) + 1 :]
    # the style sheet's own, so that the rest of the page keeps its look
    inside = re.sub(r"<style.*?</style>", "", inside, flags=re.S)
    for name, colour in COLOURS.items():
        inside = inside.replace(colour, f"var(--{name}, {colour})")
    inside = re.sub(r" font-family: [^;]*;", "", inside)
    # identifiers are of the page, not of one picture
    inside = re.sub(r'(id="|#)([mp][0-9a-f]{10})', rf"\1{_slug(label)}-\2", inside)
    inside = re.sub(r'<g id="([^"]*)">', lambda found: _group(found[1], notes or {}), inside)
    head = f'<svg class="plot" {size[0]} role="img" aria-label="{escape(label)}"'
    return f'{head} xmlns:xlink="http://www.w3.org/1999/xlink">{inside}'


def _group(identifier: str, notes: Mapping[str, str]) -> str:
    if identifier not in notes:
        return "<g>"
    return f'<g pointer-events="all"><title>{escape(notes[identifier])}</title>'


def _slug(label: str) -> str:
    return re.sub(r"\W+", "-", label.lower())[:24].strip("-")
