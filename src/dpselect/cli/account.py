"""`dpselect account`: what a search costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpselect.accounting import best_of
from dpselect.accounting.named import GRID, base_named, law_named, parse_settings
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee, compose

__all__ = ["account", "price"]

BASE_HELP = (
    "One run: pure:epsilon=, approximate:epsilon=,delta=, zcdp:rho=, laplace:scale=, gaussian:noise_multiplier=, "
    "dp-sgd:noise_multiplier=,sampling_rate=,steps="
)
LAW_HELP = (
    "Number of runs: negative-binomial:eta=,mean=|gamma=, geometric:, logarithmic:, poisson:mean=, "
    "zero-truncated-poisson:mean=, binomial:trials=,probability=, harmonic:limit=, uniform:limit=, "
    "beta-binomial:trials=,shape=, fixed:count= (independent draws of one law), grid:count= (different candidates, "
    "once each). Add at_most= for a hard limit."
)
JSON_HELP = "Print one JSON object on standard output."


def price(base: Guarantee, repetitions: str, bound: str | None) -> tuple[Guarantee, str, dict[str, Any]]:
    """The guarantee of the search, the name of the bound, and a description of the law."""
    name, settings = parse_settings(repetitions)
    if name == GRID:
        count = settings.get("count")
        if set(settings) != {"count"} or not isinstance(count, int) or count < 1:
            raise ArgumentError("repetitions 'grid': give count=, a whole number of at least 1")
        if bound not in (None, "composition"):
            raise ArgumentError(f"bound {bound!r} does not price a grid: its candidates differ; use composition")
        # exact for releasing all candidates, an upper bound for releasing the best: no lower value is known
        total = replace(compose(*[base] * count), lower_profile=None)
        return total, "composition", {"law": GRID, "count": count}
    law = law_named(name, settings)
    return best_of(base, law, bound=bound), bound or "smallest", law.describe()


def account(
    base: Annotated[str, typer.Option(help=BASE_HELP)],
    repetitions: Annotated[str, typer.Option(help=LAW_HELP)],
    delta: Annotated[float, typer.Option(help="The delta of the whole search.")],
    bound: Annotated[
        str | None, typer.Option(help="optimal, profile, renyi or pure; by default the smallest that exists.")
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    as_json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Print the epsilon of running a private mechanism a random number of times and keeping the best."""
    single = base_named(*parse_settings(base), adjacency=adjacency)
    total, bound_name, law = price(single, repetitions, bound)
    statement = total.statement(delta=delta)
    lower, upper = total.epsilon_bracket(delta)
    result = {
        "epsilon": _finite(upper),
        "epsilon_lower": lower,
        "delta": delta,
        "bound": bound_name,
        "theorem": statement.theorem,
        "single_run_epsilon": _finite(single.epsilon(delta)),
        "adjacency": single.adjacency.value,
        "base": dict(single.terms),
        "repetitions": law,
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    typer.echo(f"epsilon {upper:.6g} at delta {delta:g} for the whole search ({statement.theorem})")
    below = f"; no valid bound is below {lower:.6g}" if lower > 0.0 else ""
    typer.echo(f"epsilon {single.epsilon(delta):.6g} for one run{below}")


def _finite(value: float) -> float | None:
    """JSON has no infinity: null says that nothing is guaranteed."""
    return value if value < float("inf") else None
