"""One self-contained HTML page about a release: no script, no network, nothing that the release does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpselect.privacy import Guarantee
from dpselect.repetitions import Repetitions
from dpselect.report.plots import composition_costs, cost_plot, privacy_plot, utility_plot

__all__ = ["render_page"]

_ENVIRONMENT = Environment(
    loader=PackageLoader("dpselect.report", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def render_page(
    release: Mapping[str, Any],
    *,
    single: Guarantee,
    training: Guarantee,
    search: Guarantee,
    law: Repetitions,
    epsilon: float,
    delta: float,
) -> str:
    """The page, from the release as it was written and from public facts.

    `single`, `training` and `search` are the guarantees of one run, of its training alone and of the whole search;
    `epsilon` and `delta` the stated point.
    The page is a function of these arguments only, so it cannot depend on the number of runs that was drawn.
    """
    compositions = composition_costs(training, law, delta=delta)
    bars = [
        ("one run alone", single.epsilon(delta)),
        ("this search, in all", epsilon),
        *((f"{runs} runs, composed ({label})", cost) for label, runs, cost in compositions),
    ]
    return _ENVIRONMENT.get_template("release.html").render(
        release=release,
        epsilon=epsilon,
        delta=delta,
        law=law,
        compositions=compositions,
        plots={
            "privacy": privacy_plot(single, search, epsilon=epsilon, delta=delta),
            "cost": cost_plot([(label, cost) for label, cost in bars if cost < float("inf")]),
            "utility": utility_plot(law),
        },
    )
