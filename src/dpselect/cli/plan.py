"""`dpselect plan`: the noise that makes a whole search meet a total."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from dpselect.accounting import best_of, calibrate
from dpselect.cli.account import JSON_HELP, LAW_HELP
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee
from dpselect.study.laws import base_named, law_named, parse_settings

__all__ = ["plan"]

_BASE_HELP = (
    "One run without its noise: gaussian, laplace, or dp-sgd:sampling_rate=,steps=. The noise multiplier (for laplace "
    "the scale) is what is planned."
)
_NOISE = {"gaussian": "noise_multiplier", "laplace": "scale", "dp-sgd": "noise_multiplier"}


def plan(
    base: Annotated[str, typer.Option(help=_BASE_HELP)],
    repetitions: Annotated[str, typer.Option(help=LAW_HELP)],
    epsilon: Annotated[float, typer.Option(help="The epsilon of the whole search.")],
    delta: Annotated[float, typer.Option(help="The delta of the whole search.")],
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    as_json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Print the smallest noise at which the whole search meets a total epsilon and delta."""
    name, settings = parse_settings(base)
    if name not in _NOISE:
        raise ArgumentError(f"base: {name!r} has no noise to plan; one of {', '.join(_NOISE)}")
    parameter = _NOISE[name]
    if parameter in settings:
        raise ArgumentError(f"base {name!r}: leave {parameter} out, it is what is planned")
    law = law_named(*parse_settings(repetitions))

    def single(noise: float) -> Guarantee:
        return base_named(name, {**settings, parameter: noise}, adjacency=adjacency)

    noise = calibrate(lambda value: best_of(single(value), law), epsilon=epsilon, delta=delta)
    result: dict[str, Any] = {
        parameter: noise,
        "epsilon": best_of(single(noise), law).epsilon(delta),
        "delta": delta,
        "single_run_epsilon": single(noise).epsilon(delta),
        "mean_runs": law.mean,
        "runs_99th_percentile": law.quantile(0.99),
        "run_limit": law.limit,
        "expected_quantile": law.expected_quantile(),
        "adjacency": adjacency,
        "repetitions": law.describe(),
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    typer.echo(f"{parameter} {noise:.6g} gives epsilon {result['epsilon']:.6g} at delta {delta:g} for the whole search")
    limit = "no hard limit" if law.limit is None else f"at most {law.limit}"
    typer.echo(
        f"one run alone: epsilon {result['single_run_epsilon']:.6g}; runs: mean {law.mean:.4g}, "
        f"99th percentile {result['runs_99th_percentile']}, {limit}"
    )
