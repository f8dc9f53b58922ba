"""One self-contained HTML page about a release: no script, no network, nothing but the release and public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpselect.numerics.digits import rounded, rounded_down, rounded_up
from dpselect.report.card import card, design_of, shown
from dpselect.report.dependence import dependence_pictures
from dpselect.report.plots import COLOURS, picture, plotting

__all__ = ["ENVIRONMENT", "render_page"]

_WIDTH: Final = 4.2
"""Inches of a plot: on a phone its letters are then about as large as those beside it."""
ENVIRONMENT: Final = Environment(
    loader=PackageLoader("dpselect.report", "templates"),
    autoescape=lambda name: name is not None and name.endswith(".html"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "rounded": rounded,
    "above": partial(rounded_up, digits=4),
    "below": partial(rounded_down, digits=4),
    "shown": shown,
}


def render_page(release: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The page, from release.json and from the facts of `search_facts`, both as they were written.

    It is a function of these alone, so it cannot depend on the number of runs that was drawn.
    """
    searched, whole = design_of(release).draws, design_of(release).whole
    curve, law, budget = facts["curve"], facts["law"], facts["budget"]
    curve_rows = list(zip(curve["epsilon"], curve["one_run"], curve["search"], strict=True))
    plots = {"privacy": _privacy_plot(facts, f"whole {whole}", searched=searched)}
    if searched:
        plots |= {"cost": _cost_plot(facts["costs"]), "law": _law_plot(law), "success": _success_plot(law)}
    return ENVIRONMENT.get_template("release.html").render(
        release=release,
        searched=searched,
        whole=whole,
        facts=facts,
        card=card(release, facts),
        curve_rows=curve_rows[:: max(1, len(curve_rows) // 14)],
        success_rows=list(zip(law["chances"], law["success"], strict=True))[::5],
        dependence=dependence_pictures(release),
        plots={**plots, "budget": None if budget is None else _budget_plot(budget)},
    )


def _privacy_plot(facts: Mapping[str, Any], whole: str, *, searched: bool) -> str:
    curve, epsilon, delta = facts["curve"], facts["epsilon"], facts["delta"]
    at = curve["epsilon"]
    with plotting(width=_WIDTH, height=2.5) as axes:
        if searched:
            axes.plot(at, curve["one_run"], "--", color=COLOURS["run"], label="one run")
        axes.plot(at, curve["search"], color=COLOURS["search"], label=whole)
        axes.plot([epsilon], [delta], "o", color=COLOURS["search"])
        axes.set(xlabel="epsilon", ylabel="delta", xlim=(0.0, at[-1] or 1.0), ylim=(0.0, 1.0))
        if curve["log"]:
            axes.set(yscale="log", ylim=(10.0 ** math.floor(math.log10(delta) - 1.5), 1.0))
        axes.legend()
        ends = [at[0], *((a + b) / 2.0 for a, b in pairwise(at)), at[-1]]
        notes = {}
        for i, (left, right) in enumerate(pairwise(ends)):
            axes.axvspan(left, right, facecolor="none", edgecolor="none", gid=f"note-{i}")
            one, search = rounded_up(curve["one_run"][i], digits=4), rounded_up(curve["search"][i], digits=4)
            alone = f"one run {one}, " if searched else ""
            notes[f"note-{i}"] = f"epsilon {rounded(at[i])}: {alone}{whole} {search}"
        stated = f"{rounded_up(epsilon, digits=4)}, {rounded_up(delta, digits=4)}"
        of = f"for one run and for the {whole}" if searched else f"for the {whole}"
        label = f"Delta falls as epsilon grows, {of}; stated: {stated}"
        return picture(axes, label, notes)


def _bars(label: str, bars: Sequence[tuple[str, str, float]]) -> str:
    """Bars of epsilon, each with its name above and its value behind it: (name, colour, value)."""
    with plotting(width=_WIDTH, height=0.2 + 0.45 * len(bars)) as axes:
        values = [value for _, _, value in bars]
        drawn = axes.barh(range(len(bars)), values, height=0.35, color=[COLOURS[kind] for _, kind, _ in bars])
        axes.bar_label(drawn, [rounded_up(value, digits=4) for value in values], padding=6, fontweight="bold")
        for i, (name, _, _) in enumerate(bars):
            axes.annotate(name, (0.0, i), (0.0, 11.0), textcoords="offset points")
        axes.set(xlim=(0.0, 1.15 * max(*values, 1e-300)), ylim=(len(bars) - 0.6, -0.8))
        axes.axis("off")
        shown = "; ".join(f"{name} {rounded_up(value, digits=4)}" for name, _, value in bars)
        return picture(axes, f"{label}: {shown}")


def _cost_plot(costs: list[dict[str, Any]]) -> str:
    bars = [(cost["label"], cost["kind"], cost["epsilon"]) for cost in costs if cost["epsilon"] is not None]
    return _bars("Epsilon", bars)


def _budget_plot(budget: Mapping[str, Any]) -> str:
    bars = [
        ("spent before this search", "run", budget["before"]["epsilon"]),
        ("spent with this search", "search", budget["after"]["epsilon"]),
        ("the whole budget", "other", budget["epsilon"]),
    ]
    return _bars("Epsilon of the budget", bars)


def _law_plot(law: Mapping[str, Any]) -> str:
    heights = law["probabilities"]
    with plotting(width=_WIDTH, height=2.0) as axes:
        axes.bar(range(len(heights)), heights, width=0.7, color=COLOURS["column"])
        axes.set(xlabel="number of runs", ylabel="probability", xlim=(-0.6, len(heights) - 0.4))
        label = f"The public law of the number of runs: mean {rounded(law['mean'])}, 99th percentile {law['runs_99']}"
        return picture(axes, label)


def _success_plot(law: Mapping[str, Any]) -> str:
    chances = law["chances"]
    with plotting(width=_WIDTH, height=2.0) as axes:
        axes.plot(chances, chances, "--", color=COLOURS["run"], label="one run")
        axes.plot(chances, law["success"], color=COLOURS["search"], label="this law")
        axes.set(xscale="log", xlabel="chance that one run is good", ylabel="chance to find one")
        axes.legend()
        label = "The chance that at least one run of the search is good, against the chance that one run is"
        return picture(axes, label)
