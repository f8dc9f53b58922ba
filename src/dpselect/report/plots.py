"""Plots by Matplotlib as SVG text, for files that are not the report page."""

from __future__ import annotations

import io

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

__all__ = ["STYLE", "figure_svg"]

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpselect",
}


def figure_svg(figure: Figure) -> str:
    """The figure as SVG text; the same figure gives the same text."""
    buffer = io.StringIO()
    # no date, no version, fixed identifiers: the same facts give the same bytes
    FigureCanvasSVG(figure).print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]
