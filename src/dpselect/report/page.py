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
from dpselect.report.svg import Axis, Curve, bars, columns, curves

__all__ = ["ENVIRONMENT", "render_page"]

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
    drawn = [Curve(whole, "search", list(zip(at, curve["search"], strict=True)))]
    if searched:
        drawn.insert(0, Curve("one run", "run", list(zip(at, curve["one_run"], strict=True)), dashed=True))
    least = 10.0 ** math.floor(math.log10(delta) - 1.5) if curve["log"] else 0.0
    axes = Axis("epsilon", 0.0, at[-1] or 1.0), Axis("delta", least, 1.0, log=curve["log"])
    ends = [at[0], *((a + b) / 2.0 for a, b in pairwise(at)), at[-1]]
    notes = []
    for i, (left, right) in enumerate(pairwise(ends)):
        one, search = rounded_up(curve["one_run"][i], digits=4), rounded_up(curve["search"][i], digits=4)
        alone = f"one run {one}, " if searched else ""
        notes.append((left, right, f"epsilon {rounded(at[i])}: {alone}{whole} {search}"))
    stated = f"{rounded_up(epsilon, digits=4)}, {rounded_up(delta, digits=4)}"
    of = f"for one run and for the {whole}" if searched else f"for the {whole}"
    label = f"Delta falls as epsilon grows, {of}; stated: {stated}"
    return curves(label, 180.0, axes, drawn, dot=(epsilon, delta), notes=notes)


def _bars(label: str, drawn: Sequence[tuple[str, str, float]]) -> str:
    """Bars of epsilon: (name, colour, value)."""
    told = [(name, colour, value, rounded_up(value, digits=4)) for name, colour, value in drawn]
    return bars(f"{label}: {'; '.join(f'{name} {value}' for name, _, _, value in told)}", told)


def _cost_plot(costs: list[dict[str, Any]]) -> str:
    return _bars(
        "Epsilon", [(cost["label"], cost["kind"], cost["epsilon"]) for cost in costs if cost["epsilon"] is not None]
    )


def _budget_plot(budget: Mapping[str, Any]) -> str:
    drawn = [
        ("spent before this search", "run", budget["before"]["epsilon"]),
        ("spent with this search", "search", budget["after"]["epsilon"]),
        ("the whole budget", "other", budget["epsilon"]),
    ]
    return _bars("Epsilon of the budget", drawn)


def _law_plot(law: Mapping[str, Any]) -> str:
    heights = law["probabilities"]
    axes = Axis("number of runs", -0.6, len(heights) - 0.4), Axis("probability", 0.0, 1.05 * max(*heights, 1e-300))
    label = (
        f"The public distribution of the number of runs: mean {rounded(law['mean'])}, 99th percentile {law['runs_99']}"
    )
    return columns(label, 144.0, axes, heights)


def _success_plot(law: Mapping[str, Any]) -> str:
    chances = law["chances"]
    drawn = [
        Curve("one run", "run", list(zip(chances, chances, strict=True)), dashed=True),
        Curve("this distribution", "search", list(zip(chances, law["success"], strict=True))),
    ]
    axes = Axis("chance that one run is good", chances[0], chances[-1], log=True), Axis("chance to find one", 0.0, 1.0)
    label = "The chance that at least one run of the search is good, against the chance that one run is"
    return curves(label, 144.0, axes, drawn, legend_left=True)
