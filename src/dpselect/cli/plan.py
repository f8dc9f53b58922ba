"""`dpselect plan`: the distribution of the number of runs, and the noise, that serve a goal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.accounting import calibrate, plan as weigh, plan_subset
from dpselect.accounting.planning.plan import Goal, LawPlan
from dpselect.accounting.planning.plan_subset import SAMPLING_RATES, SubsetOption
from dpselect.cli.computing import computing
from dpselect.cli.described import LAW_HELP, base_of, law_of, parse_settings
from dpselect.cli.options import AsJson, print_result
from dpselect.cli.search_price import RATIO_HELP, SUBSET_HELP, parse_final_rows, parse_ratio, searched, two_numbers
from dpselect.errors import ArgumentError
from dpselect.numerics.digits import rounded, rounded_up
from dpselect.privacy import Guarantee
from dpselect.privacy.bases import noise_of, with_noise
from dpselect.repetitions.by_name import families
from dpselect.repetitions.quality import quality_of

__all__ = ["plan"]

_NOISY = "; ".join(f"{parameter} of {name}" for name, parameter in with_noise().items())
_BASE_HELP = f"One run, as for account. If you leave out its noise, the noise is computed: {_NOISY}."
_NOISE_IS_PLANNED = f"the noise is what is planned: give a base without it ({_NOISY})"


def plan(
    base: Annotated[str, typer.Option(help=_BASE_HELP)],
    delta: Annotated[float, typer.Option(help="The delta of the whole search.")],
    epsilon: Annotated[float | None, typer.Option(help="The epsilon of the whole search.")] = None,
    repetitions: Annotated[
        str | None, typer.Option(help=f"Compute the noise for this distribution only. {LAW_HELP}")
    ] = None,
    expected_quantile: Annotated[
        float | None, typer.Option(help="Goal: the winner's expected quantile among all possible runs.")
    ] = None,
    success: Annotated[
        str | None,
        typer.Option(
            help="Goal, as CHANCE:WANTED: with probability WANTED a run is among the best fraction CHANCE of all."
        ),
    ] = None,
    mean_runs: Annotated[float | None, typer.Option(help="Limit on the mean number of runs.")] = None,
    runs_99: Annotated[
        int | None, typer.Option("--runs-99", help="Limit on the 99th percentile of the number of runs.")
    ] = None,
    max_runs: Annotated[int | None, typer.Option(help="Hard limit on the number of runs.")] = None,
    proposal_ratio: Annotated[str | None, typer.Option(help="With --repetitions: " + RATIO_HELP)] = None,
    subset: Annotated[str | None, typer.Option(help=SUBSET_HELP)] = None,
    sampling_rates: Annotated[
        str, typer.Option(help="With --subset: the sampling rates to compare, separated by commas.")
    ] = ",".join(map(str, SAMPLING_RATES)),
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    plot: Annotated[
        Path | None, typer.Option(help="Draw epsilon against utility to this file (.png, .svg or .html).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose the distribution of the number of runs, and the noise of one run, for your budget or goal.

    Prints all options with their cost and the quality of their winner.
    """
    name, settings = parse_settings(base)
    parameter = noise_of(name)
    fixed = parameter is None or parameter in settings

    def single(noise: float) -> Guarantee:
        return base_of(base, adjacency=adjacency, **{str(parameter): noise})

    known = base_of(base, adjacency=adjacency) if fixed else single
    wanted: dict[str, Any] = {
        "expected_quantile": expected_quantile,
        "success": two_numbers("success", "CHANCE:WANTED", success),
        "mean_runs": mean_runs,
        "runs_99": runs_99,
        "max_runs": max_runs,
    }
    ratio = parse_ratio(proposal_ratio)
    if ratio is not None and (repetitions is None or subset is not None):
        raise ArgumentError("proposal_ratio: the noise is planned for one distribution. Give repetitions, no subset")
    if subset is not None:
        if isinstance(known, Guarantee) or epsilon is None:
            raise ArgumentError(f"with subset, give epsilon; {_NOISE_IS_PLANNED}")
        with computing("the options"):
            options = plan_subset(
                base=known,
                epsilon=epsilon,
                delta=delta,
                repetitions=None if repetitions is None else law_of(repetitions),
                sampling_rates=_rates(sampling_rates),
                final_rows=parse_final_rows(subset),
                **wanted,
            )
        rows = [_subset_row(option, str(parameter)) for option in options]
        table = _subset_table(options, str(parameter))
        print_result({"delta": delta, "final_rows": subset, "options": rows}, as_json, *table)
        return
    if repetitions is not None:
        _noise_for(repetitions, known, str(parameter), ratio, epsilon=epsilon, delta=delta, as_json=as_json)
        return
    with computing("the options"):
        found = weigh(base=known, delta=delta, epsilon=epsilon, **wanted)
    if plot is not None:
        from dpselect.report.trade_off import write_trade_off  # matplotlib takes a second to import

        noise = found.best.noise
        guarantee = known if isinstance(known, Guarantee) else single(noise if noise is not None else 1.0)
        write_trade_off(plot, guarantee, families(), Goal(**wanted), delta=delta)
    weighed = [_row(option, parameter) for option in found.options]
    utility = "quantile" if wanted["success"] is None else "success"
    order = "epsilon, the least first" if epsilon is None else f"{utility}, the largest first"
    print_result({"delta": delta, "options": weighed}, as_json, *_table(found, parameter, utility, order))


def _rates(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(f"sampling_rates must be numbers separated by commas, got {text!r}") from None


def _noise_for(
    repetitions: str,
    known: Guarantee | Callable[[float], Guarantee],
    parameter: str,
    ratio: tuple[float, float] | None,
    *,
    epsilon: float | None,
    delta: float,
    as_json: bool,
) -> None:
    if isinstance(known, Guarantee):
        raise ArgumentError(f"with repetitions, {_NOISE_IS_PLANNED}")
    if epsilon is None:
        raise ArgumentError("with repetitions, give epsilon: the total that the noise is to meet")
    law = law_of(repetitions)
    with computing("the noise"):
        noise = calibrate(lambda value: searched(known(value), law, ratio=ratio), epsilon=epsilon, delta=delta)
    result: dict[str, Any] = {
        parameter: noise,
        "epsilon": searched(known(noise), law, ratio=ratio).epsilon(delta),
        "delta": delta,
        "single_run_epsilon": known(noise).epsilon(delta),
        "mean_runs": law.mean,
        "runs_99": law.quantile(0.99),
        "max_runs": law.limit,
        "expected_quantile": law.expected_quantile(),
        "repetitions": law.describe(),
    }
    whole, one = (rounded_up(result[name]) for name in ("epsilon", "single_run_epsilon"))
    limit = "no hard limit" if law.limit is None else f"at most {law.limit}"
    print_result(
        result,
        as_json,
        f"{parameter} {float(noise)!r} gives epsilon {whole} at delta {delta:g} for the whole search",
        f"one run alone: epsilon {one}; runs: mean {law.mean:.4g}, 99th percentile {result['runs_99']}, {limit}",
    )


def _row(option: Any, parameter: str | None) -> dict[str, Any]:
    mean, high, limit = option.runs
    noise = {} if option.noise is None else {str(parameter): option.noise}
    return {
        "family": option.family,
        **noise,
        "epsilon": option.epsilon if option.epsilon < float("inf") else None,
        "utility": option.utility,
        "mean_runs": mean,
        "runs_99": high,
        "max_runs": limit,
        "repetitions": option.law.describe(),
        **quality_of(option.law).describe(),
    }


def _subset_row(option: SubsetOption, parameter: str) -> dict[str, Any]:
    return {
        "family": option.family,
        "sampling_rate": option.sampling_rate,
        parameter: option.noise,
        "epsilon": option.epsilon,
        "utility": option.utility,
        "work": option.work,
        "most_work": option.most_work,
        "repetitions": option.law.describe(),
    }


def _subset_table(options: tuple[SubsetOption, ...], parameter: str) -> list[str]:
    lines = [["distribution", "subset", parameter, "epsilon", "mean runs", "work", "most work"]]
    for option in options:
        rate = "all rows, no final run" if option.sampling_rate is None else f"{option.sampling_rate:g}"
        most = "none" if option.most_work is None else f"{option.most_work:.2f}"
        amounts = [rounded_up(amount, digits=5) for amount in (option.noise, option.epsilon)]
        numbers = [*amounts, f"{option.law.mean:.2f}", f"{option.work:.2f}", most]
        lines.append([option.family, rate, *numbers])
    return [*_aligned(lines), "work: runs expected, each counted by the share of the rows that it sees"]


def _table(found: LawPlan, parameter: str | None, utility: str, order: str) -> list[str]:
    planned = found.best.noise is not None
    noise_named = [str(parameter)] if planned else []
    head = ["distribution", *noise_named, "epsilon", utility, "like fixed", "K = 1", "mean", "99 %", "limit"]
    rows = []
    for option in found.options:
        mean, high, limit = option.runs
        noise = [rounded_up(option.noise, digits=5)] if option.noise is not None else []
        ends = [f"{mean:.2f}", str(high), "none" if limit is None else str(limit)]
        quality = quality_of(option.law)
        bought = [f"{option.utility:.4f}", rounded(quality.fixed_runs, digits=3), f"{quality.one_run:.3f}"]
        rows.append([option.family, *noise, rounded_up(option.epsilon, digits=5), *bought, *ends])
    by = f"{parameter}, the least first: the later rows may have better winners" if planned else order
    return [
        *_aligned([head, *rows]),
        "like fixed: so many fixed runs have the same expected quantile; K = 1: the chance of a single run",
        f"sorted by {by}",
    ]


def _aligned(lines: list[list[str]]) -> list[str]:
    """Columns of equal width, the first one's words to the left."""
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    return ["  ".join([line[0].ljust(first), *map(str.rjust, line[1:], others)]).rstrip() for line in lines]
