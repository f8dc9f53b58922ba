"""`dpselect account`: what a search costs, or what a past one did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect.accounting.best_of_k.search_bound import BOUNDS
from dpselect.cli.computing import computing
from dpselect.cli.described import BASE_HELP, LAW_HELP, base_of
from dpselect.cli.options import AsJson, print_result
from dpselect.cli.search_price import RATIO_HELP, SUBSET_HELP, parse_ratio, priced
from dpselect.cli.sweep import account_for_sweep
from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.digits import rounded_down, rounded_up
from dpselect.privacy import Adjacency, Guarantee
from dpselect.repetitions.by_name import GRID, from_description
from dpselect.repetitions.quality import quality_of

if TYPE_CHECKING:
    from dpselect.integrations.optuna.price import StudyPrice
    from dpselect.integrations.optuna.study import PastStudy

__all__ = ["account"]

_STUDY_ONLY = "--optuna: "
_SWEEP_ONLY = "--sweep: "


def account(
    delta: Annotated[float, typer.Option(help="The delta of the whole search.")],
    base: Annotated[str | None, typer.Option(help=BASE_HELP)] = None,
    repetitions: Annotated[str | None, typer.Option(help=LAW_HELP)] = None,
    bound: Annotated[
        str | None, typer.Option(help=f"{', '.join(BOUNDS)}. The default is the smallest that is valid.")
    ] = None,
    proposal_ratio: Annotated[str | None, typer.Option(help=RATIO_HELP)] = None,
    subset: Annotated[str | None, typer.Option(help=SUBSET_HELP)] = None,
    sampling_rate: Annotated[
        float | None, typer.Option(help="With --subset: the probability that a row is in the subset.")
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    opacus: Annotated[
        Path | None,
        typer.Option(help="In place of --base: the saved state of an Opacus accountant, or a checkpoint with one."),
    ] = None,
    optuna: Annotated[
        str | None, typer.Option(help="A past Optuna search: an SQLite file, a journal file or a database URL.")
    ] = None,
    study_name: Annotated[
        str | None, typer.Option(help="--optuna and --sweep: the study or experiment, if there are several.")
    ] = None,
    noise_parameter: Annotated[
        str | None,
        typer.Option(help=_STUDY_ONLY + "the parameter or user attribute that holds each run's noise_multiplier."),
    ] = None,
    planned: Annotated[
        int | None,
        typer.Option(help=_STUDY_ONLY + "the largest number of runs that you allowed in advance."),
    ] = None,
    fixed_beforehand: Annotated[
        bool,
        typer.Option("--fixed-beforehand", help=_STUDY_ONLY + "declare that the number of runs was fixed in advance."),
    ] = False,
    only_winner_seen: Annotated[
        bool, typer.Option("--only-winner-seen", help=_STUDY_ONLY + "declare that no one saw more than the winner.")
    ] = False,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="A past sweep of another tool: a folder of MLflow, Weights & Biases, Ray Tune, Hydra or Keras Tuner, "
            "an SQLite file of MLflow or Optuna, or a CSV or JSON file with a row for each run."
        ),
    ] = None,
    sweep_format: Annotated[str | None, typer.Option(help=_SWEEP_ONLY + "its format, if it is not recognised.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help=_SWEEP_ONLY + "ROLE=COLUMN or ROLE=NUMBER, such as noise_multiplier=sigma,dataset_size=60000."
        ),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(
            help=_SWEEP_ONLY + "declare that the runs' noise, rate and steps were fixed in advance ('fixed'), or that "
            "no run could have had more extreme ones than those that occurred ('bounded')."
        ),
    ] = None,
    untrained: Annotated[
        str | None, typer.Option(help=_SWEEP_ONLY + "declare that the runs of these names read no data: NAME,NAME.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help=_SWEEP_ONLY + "also write the result to this Markdown file.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Also print the epsilon for a person with this many rows, at the same delta.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the epsilon of one private run, of a search that keeps the best run, or of a past search.

    With --opacus: a past training. With --optuna: a past Optuna study. By default all its runs are composed, and the
    output lists the conditions of the smaller cost of a best of K. With --sweep: a past sweep of another tool.
    """
    if sweep is not None:
        others = (opacus, optuna, repetitions, bound, proposal_ratio, subset, noise_parameter, planned, rows)
        declared = fixed_beforehand or only_winner_seen
        if any(other is not None for other in (*others, declared or None)):
            raise ArgumentError("--sweep goes with --base, --study-name and its own options alone")
        account_for_sweep(
            sweep,
            delta,
            form=sweep_format,
            part=study_name,
            columns=columns,
            settings=settings,
            untrained=untrained,
            base=base,
            adjacency=adjacency,
            report=report,
            as_json=as_json,
        )
        return
    if any((sweep_format, columns, settings, untrained, report)):
        raise ArgumentError("--sweep-format, --columns, --settings, --untrained and --report go with --sweep")
    if (base is None) == (opacus is None):
        raise ArgumentError("give either --base or --opacus, or --sweep. Write --base gaussian:noise_multiplier=4")
    if opacus is not None and noise_parameter is not None:
        raise ArgumentError("--noise-parameter needs --base, whose noise multiplier it gives")
    run, rests_on = _priced_run(opacus)
    kind: dict[str, Any] = {"ratio": parse_ratio(proposal_ratio), "subset": subset, "sampling_rate": sampling_rate}
    given = {name: value for name, value in kind.items() if value is not None}
    if repetitions is None and given:
        raise ArgumentError("--proposal-ratio, --subset and --sampling-rate go with --repetitions")
    if optuna is not None:
        if repetitions is not None or bound is not None:
            raise ArgumentError("--optuna counts the runs itself: leave --repetitions and --bound out")
        from dpselect.integrations.optuna.price import price_study

        study = _read_study(optuna, study_name)
        past = price_study(
            study,
            base=_one_run(base, opacus, adjacency),
            noise_parameter=noise_parameter,
            planned=planned,
            fixed_beforehand=fixed_beforehand,
            only_winner_seen=only_winner_seen,
        )
        _print_study(study.name, replace(past, rests_on=(*past.rests_on, *rests_on)), delta, as_json)
        return
    if study_name or noise_parameter or planned is not None or fixed_beforehand or only_winner_seen:
        raise ArgumentError("--study-name, --noise-parameter, --planned and the declarations go with --optuna")
    single = _one_run(base, opacus, adjacency)(None)
    if repetitions is not None:
        total, bound_name, law = priced(single, repetitions, bound=bound, **given)
        bought, lines = _quality(law)
        if rows is not None:
            # subsets and proposals that learn are proved for one row: there the whole search is grown
            person = total.of_rows(rows) if given else priced(single.of_rows(rows), repetitions, bound=bound)[0]
            of_person, line = _of_rows(person, rows, delta)
            bought, lines = {**bought, **of_person}, [*lines, *line]
        search = {"bound": bound_name, "repetitions": law, **given, **bought}
        _print_search(single, total, search, lines, rests_on, delta, as_json)
    else:
        _print_one(single, run, rests_on, delta, rows, as_json)


def _priced_run(opacus: Path | None) -> tuple[str, tuple[str, ...]]:
    """The name of a single run in messages, and the conditions of its price."""
    if opacus is None:
        return "one run", ()
    from dpselect.integrations.opacus.state import CALLER_ENSURES

    return "this training", (f"must hold: {CALLER_ENSURES}",)


def _read_study(optuna: str, name: str | None) -> PastStudy:
    """A past search. An error names what cannot be read by its flag."""
    from dpselect.integrations.optuna.study import read_study

    try:
        return read_study(optuna, name=name)
    except ContentError as error:
        raise ContentError(f"--optuna: {error}") from None
    except OSError as error:
        raise ArgumentError(f"--optuna: {optuna!r} cannot be read: {error.strerror or 'not readable'}") from None


def _one_run(base: str | None, opacus: Path | None, adjacency: str) -> Callable[[float | None], Guarantee]:
    """The guarantee of one run, as a function of a noise multiplier that replaces the one given, if any."""
    if opacus is not None:
        if adjacency != Adjacency.ADD_OR_REMOVE_ONE:
            raise ArgumentError("--opacus: Poisson samples are priced under add_or_remove_one")
        from dpselect.integrations.opacus.state import history_guarantee, read_history

        trained = history_guarantee(read_history(opacus))
        return lambda _: trained
    return lambda noise: base_of(
        base or "", adjacency=adjacency, **({} if noise is None else {"noise_multiplier": noise})
    )


def _print_search(
    single: Guarantee,
    total: Guarantee,
    search: Mapping[str, Any],
    lines: Sequence[str],
    rests_on: Sequence[str],
    delta: float,
    as_json: bool,
) -> None:
    with computing("the price"):
        statement = total.statement(delta=delta)
        lower, upper = total.epsilon_bracket(delta)
    result = {
        "epsilon": _finite(upper),
        "epsilon_lower": lower,
        "delta": delta,
        "theorem": statement.theorem,
        "single_run_epsilon": _finite(single.epsilon(delta)),
        "adjacency": single.adjacency.value,
        "base": dict(single.terms),
        **search,
        **({"rests_on": rests_on} if rests_on else {}),
    }
    below = f"; no valid bound is below {rounded_down(lower)}" if lower > 0.0 else ""
    print_result(
        result,
        as_json,
        f"epsilon {rounded_up(upper)} at delta {delta:g} for the whole search ({statement.theorem})",
        f"epsilon {rounded_up(single.epsilon(delta))} for one run{below}",
        *lines,
        *_listed("it rests on:", rests_on),
    )


def _print_one(
    single: Guarantee, run: str, rests_on: Sequence[str], delta: float, rows: int | None, as_json: bool
) -> None:
    with computing("the price"):
        statement = single.statement(delta=delta)
    person, said = ({}, []) if rows is None else _of_rows(single.of_rows(rows), rows, delta)
    result = {
        "epsilon": _finite(statement.epsilon),
        "delta": delta,
        "theorem": statement.theorem,
        "adjacency": single.adjacency.value,
        "base": dict(single.terms),
        **person,
        "rests_on": rests_on,
    }
    whole = f"epsilon {rounded_up(statement.epsilon)} at delta {delta:g} for {run} ({statement.theorem})"
    print_result(result, as_json, whole, *said, *_listed("it rests on:", rests_on))


def _of_rows(person: Guarantee, rows: int, delta: float) -> tuple[dict[str, Any], list[str]]:
    """The guarantee for a person with several rows."""
    with computing(f"the price of {rows} rows"):
        epsilon = person.epsilon(delta)
    line = f"a person with {rows} rows: epsilon {rounded_up(epsilon)} at delta {delta:g}"
    return {"rows": rows, "rows_epsilon": _finite(epsilon)}, [line]


def _quality(described: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """How good a winner the number of runs gives. Nothing for a grid, whose candidates differ."""
    if described["law"] == GRID:
        return {}, []
    quality = quality_of(from_description(described))
    return quality.describe(), [f"the winner: {quality.words()}"]


def _print_study(name: str, priced: StudyPrice, delta: float, as_json: bool) -> None:
    with computing("the price"):
        statement = priced.guarantee.statement(delta=delta)
    result = {
        "epsilon": _finite(statement.epsilon),
        "delta": delta,
        "bound": priced.rule,
        "theorem": statement.theorem,
        "adjacency": priced.guarantee.adjacency.value,
        "study": name,
        "trials": priced.counts,
        "rests_on": priced.rests_on,
        "missing_for_best_of_fixed": priced.missing,
    }
    counted = ", ".join(f"{count} {state}" for state, count in priced.counts.items() if count)
    print_result(
        result,
        as_json,
        f"epsilon {rounded_up(statement.epsilon)} at delta {delta:g} for the whole search: {priced.rule}",
        f"study {name!r}: {counted}",
        *_listed("it rests on:", priced.rests_on),
        *_listed("missing for the price of the best of a fixed number:", priced.missing),
    )


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(f"- {line}" for line in lines)] if lines else []


def _finite(value: float) -> float | None:
    """JSON has no infinity: null says that nothing is guaranteed."""
    return value if value < float("inf") else None
