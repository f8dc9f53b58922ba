"""One self-contained HTML page about a release: no script, no network, nothing but the release and public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpselect.report.charts import Axis, Line, above, bar_chart, below, column_chart, line_chart, short

__all__ = ["render_page"]

_ENVIRONMENT = Environment(
    loader=PackageLoader("dpselect.report", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"short": short, "above": above, "below": below}


def render_page(release: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The page, from release.json and from the facts of `search_facts`, both as they were written.

    It is a function of these alone, so it cannot depend on the number of runs that was drawn.
    """
    return _ENVIRONMENT.get_template("release.html").render(
        release=release,
        facts=facts,
        curve_rows=_curve_rows(facts["curve"]),
        success_rows=_success_rows(facts["law"]),
        plots={
            "privacy": _privacy_plot(facts),
            "cost": _cost_plot(facts["costs"]),
            "law": _law_plot(facts["law"]),
            "success": _success_plot(facts["law"]),
            "budget": None if facts["budget"] is None else _budget_plot(facts["budget"]),
        },
    )


def _privacy_plot(facts: Mapping[str, Any]) -> str:
    curve, epsilon, delta = facts["curve"], facts["epsilon"], facts["delta"]
    x = Axis("epsilon", 0.0, curve["epsilon"][-1])
    y = (
        Axis("delta", 10.0 ** math.floor(math.log10(delta) - 1.5), 1.0, log=True)
        if curve["log"]
        else Axis("delta", 0, 1)
    )
    lines = [Line("one run", "run", curve["one_run"], above), Line("whole search", "search", curve["search"], above)]
    label = (
        f"Delta falls as epsilon grows, for one run and for the whole search; stated: {above(epsilon)}, {above(delta)}"
    )
    return line_chart(label, x, y, curve["epsilon"], lines, mark=(epsilon, delta))


def _cost_plot(costs: list[dict[str, Any]]) -> str:
    finite = [(cost["label"], cost["kind"], cost["epsilon"]) for cost in costs if cost["epsilon"] is not None]
    label = "Bars of epsilon: " + "; ".join(f"{name} {above(value)}" for name, _, value in finite)
    return bar_chart(label, finite)


def _law_plot(law: Mapping[str, Any]) -> str:
    heights = law["probabilities"]
    x = Axis("number of runs", -0.6, len(heights) - 0.4)
    label = f"The public law of the number of runs: mean {short(law['mean'])}, 99th percentile {law['runs_99']}"
    return column_chart(label, x, Axis("probability", 0.0, max(heights) * 1.05), heights)


def _success_plot(law: Mapping[str, Any]) -> str:
    chances = law["chances"]
    lines = [Line("one run", "run", chances), Line("this law", "search", law["success"])]
    label = "The chance that at least one run of the search is good, against the chance that one run is"
    x = Axis("chance that one run is good", chances[0], 1.0, log=True)
    return line_chart(label, x, Axis("chance that the search finds one", 0.0, 1.0), chances, lines)


def _budget_plot(budget: Mapping[str, Any]) -> str:
    before, after, total = budget["before"]["epsilon"], budget["after"]["epsilon"], budget["epsilon"]
    bars = [
        ("spent before this search", "run", before),
        ("spent with this search", "search", after),
        ("the whole budget", "other", total),
    ]
    return bar_chart("Bars of epsilon: " + "; ".join(f"{name} {above(value)}" for name, _, value in bars), bars)


def _curve_rows(curve: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    rows = list(zip(curve["epsilon"], curve["one_run"], curve["search"], strict=True))
    return rows[:: max(1, len(rows) // 14)]


def _success_rows(law: Mapping[str, Any]) -> list[tuple[float, float]]:
    return list(zip(law["chances"], law["success"], strict=True))[::5]
