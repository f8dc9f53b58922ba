"""Plots as SVG text. Everything drawn is a function of the public law, the guarantees and the release."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from dpselect.privacy import Guarantee, compose
from dpselect.repetitions import Repetitions

__all__ = ["STYLE", "composition_costs", "cost_plot", "figure_svg", "privacy_plot", "utility_plot"]

_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#6d597a")
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


def privacy_plot(single: Guarantee, search: Guarantee, *, epsilon: float, delta: float) -> str:
    """delta against epsilon for one run and for the whole search, with the stated point."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        grid = np.unique(np.append(np.linspace(0.0, 1.4 * epsilon, 36), epsilon))
        for guarantee, label, colour in ((single, "one run", _COLOURS[0]), (search, "whole search", _COLOURS[1])):
            values = np.asarray(guarantee.delta(grid))
            axes.plot(grid, np.where(values > 0, values, np.nan), label=label, color=colour)
        if delta > 0:
            axes.set_yscale("log")
            axes.set_ylim(min(delta / 100, 1e-6), 1.0)
        axes.plot([epsilon], [delta], "o", color=_COLOURS[1])
        axes.set_xlabel("epsilon")
        axes.set_ylabel("delta")
        axes.set_title("What is guaranteed: delta at each epsilon")
        axes.legend(frameon=False)
        return figure_svg(figure)


def composition_costs(training: Guarantee, law: Repetitions, *, delta: float) -> list[tuple[str, int, float]]:
    """(label, runs, epsilon) of paying for a fixed number of runs by composition: mean and 99th percentile.

    Training alone, the scores not counted: the least that composition would cost.
    """
    mean = max(1, math.ceil(law.mean - 1e-9))
    high = max(1, law.quantile(0.99))
    return [
        (label, runs, compose(*[training] * runs).epsilon(delta))
        for label, runs in (("mean of the law", mean), ("99th percentile of the law", high))
    ]


def cost_plot(bars: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars of epsilon; infinite ones are left out by the caller."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 0.9 + 0.5 * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        labels = [label for label, _ in bars][::-1]
        values = [value for _, value in bars][::-1]
        drawn = axes.barh(labels, values, color=[_COLOURS[i % 4] for i in range(len(bars))][::-1])
        axes.bar_label(drawn, fmt="%.3g", padding=3)
        axes.margins(x=0.12)
        axes.set_xlabel("epsilon")
        axes.set_title("What it costs")
        return figure_svg(figure)


def utility_plot(law: Repetitions) -> str:
    """The chance that at least one run is among the best p of all runs, against p."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.add_subplot()
        p = np.logspace(-3, 0, 80)
        axes.plot(p, [law.success_probability(float(x)) for x in p], color=_COLOURS[2], label="this law")
        axes.plot(p, p, color="0.6", linestyle=":", label="one run")
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("chance that one run is good")
        axes.set_ylabel("chance that the search is")
        axes.set_title("What the search buys")
        axes.legend(frameon=False)
        return figure_svg(figure)
