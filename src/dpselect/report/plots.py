"""Plots by Matplotlib: files of every kind. It is an optional extra, which a report does without."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, Final

from dpselect.errors import ArgumentError, missing_extra
from dpselect.report.svg import COLOURS

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError:
    raise missing_extra("plot", "drawing a plot") from None

__all__ = ["check_plot_path", "plotting", "save_plot"]

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
        path.write_text(head + _picture(axes, title), encoding="utf-8")
        return
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(suffix)
    _save(axes, path, dpi=150, metadata={date: None} if date else None)


def _picture(axes: Axes, label: str) -> str:
    """The figure as SVG inside of a page, with a label for who cannot see it."""
    buffer = io.StringIO()
    _save(axes, buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    drawn = buffer.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
