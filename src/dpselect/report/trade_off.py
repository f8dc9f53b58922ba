"""The trade-off that a plan weighs, drawn: what each family of laws costs and buys as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from dpselect.accounting.planning.plan import Goal, trade_off_curve
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee
from dpselect.repetitions import Family
from dpselect.report.plots import STYLE, figure_svg

__all__ = ["write_trade_off"]

_MEANS = tuple(np.geomspace(1.05, 300.0, 10).tolist())
_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def write_trade_off(path: Path, base: Guarantee, families: Sequence[Family], goal: Goal, *, delta: float) -> None:
    """Write the plot to `path`; its suffix says how (.png, .svg, .html). Raises `ArgumentError` for another."""
    if path.suffix.lower() not in (".png", ".svg", ".html"):
        raise ArgumentError(f"plot must end in .png, .svg or .html, got {path.name!r}")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        axes = figure.add_subplot()
        colours = mpl.colormaps["tab20"]
        for i, family in enumerate(families):
            sizes = _LIMITS if family.whole else _MEANS
            points = np.array(trade_off_curve(base, family, delta=delta, sizes=sizes, goal=goal))
            if points.size:
                axes.plot(points[:, 0], points[:, 1], marker=".", label=family.name, color=colours(i % 20))
        axes.set_xlabel(f"epsilon of the whole search at delta {delta:g}")
        wanted = "expected quantile of the winner" if goal.success is None else "chance of success"
        axes.set_ylabel(wanted)
        axes.legend(frameon=False, fontsize=8)
        if path.suffix.lower() == ".png":
            figure.savefig(path, dpi=150)
            return
        drawn = figure_svg(figure)
    if path.suffix.lower() == ".html":
        drawn = f'<!doctype html>\n<meta charset="utf-8"><title>Trade-off</title>\n{drawn}'
    path.write_text(drawn, encoding="utf-8")
