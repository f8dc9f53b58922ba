"""The trade-off that a plan weighs, drawn: what each family of laws costs and buys as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpselect.accounting.planning.plan import Goal, trade_off_curve
from dpselect.privacy import Guarantee
from dpselect.repetitions.distribution import Family
from dpselect.report.plots import check_plot_path, plotting, save_plot

__all__ = ["write_trade_off"]

_MEANS = tuple(np.geomspace(1.05, 300.0, 10).tolist())
_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def write_trade_off(path: Path, base: Guarantee, families: Sequence[Family], goal: Goal, *, delta: float) -> None:
    """Write the plot to `path`. Its suffix says how (.png, .svg, .html ...). Raises `ArgumentError` for another."""
    check_plot_path("plot", path)
    with plotting() as axes:
        from matplotlib import colormaps  # an extra, which `plots` names if it is missing

        colours = colormaps["tab20"]
        for i, family in enumerate(families):
            sizes = _LIMITS if family.whole else _MEANS
            points = np.array(trade_off_curve(base, family, delta=delta, sizes=sizes, goal=goal))
            if points.size:
                axes.plot(points[:, 0], points[:, 1], marker=".", label=family.name, color=colours(i % 20))
        axes.set_xlabel(f"epsilon of the whole search at delta {delta:g}")
        axes.set_ylabel("expected quantile of the winner" if goal.success is None else "chance of success")
        axes.legend()
        save_plot(axes, path, title="What each law costs and buys")
