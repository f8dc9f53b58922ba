"""`dpselect tune STUDY.toml`: check a study, run it, or print the schema of study files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect.cli.computing import computing
from dpselect.cli.options import WITHHELD, AsJson, print_result
from dpselect.cli.progress import law_in_words, showing
from dpselect.cli.stopping import status_of, terminable
from dpselect.cli.terminal import print_json, warn
from dpselect.errors import ArgumentError, NothingFoundWarning
from dpselect.numerics.digits import rounded_up
from dpselect.privacy.nothing_found import nothing_found

if TYPE_CHECKING:
    from dpselect.searching import Design

__all__ = ["tune"]


def _schema(asked: bool) -> None:
    if asked:
        from dpselect.study.schema_json import study_schema

        print_json(study_schema(), indent=2)
        raise typer.Exit


def tune(
    study: Annotated[Path, typer.Argument(help="The study file (TOML).")],
    output: Annotated[Path | None, typer.Option(help="The output folder, in place of the study's.")] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check the study and print its cost. Read no row and spend nothing."),
    ] = False,
    forecast: Annotated[
        bool,
        typer.Option(
            "--forecast",
            help="Print the expected gain of each search design over one run, from public facts only.",
        ),
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(help="A public sample of the table. It is read like the table before anything is charged."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a search that was interrupted.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    operator_progress: Annotated[
        bool,
        typer.Option(
            "--operator-progress",
            help="Show the number of finished trials. It reveals the secret number of runs: show it to no one else.",
        ),
    ] = False,
    as_json: AsJson = False,
    schema: Annotated[  # noqa: ARG001 - eager: its callback prints and leaves
        bool,
        typer.Option("--schema", callback=_schema, is_eager=True, help="Print the JSON schema of study files."),
    ] = False,
) -> None:
    """Train a private model from a study file. Write the model, its report and its model card."""
    from dpselect.study import load_study  # learners and ledgers take longer to import than --help to print
    from dpselect.study.validate import law_of

    if quiet and operator_progress:
        raise ArgumentError("--quiet and --operator-progress exclude each other")
    if forecast and (check or resume):
        raise ArgumentError("--forecast excludes --check and --resume: it says what could be expected of a study")
    parsed = load_study(study, folder=output, resume=resume)
    base_folder = study.resolve().parent
    if like is not None:
        parsed = parsed.model_copy(update={"data": parsed.data.model_copy(update={"like": str(like.resolve())})})
    if forecast:
        from dpselect.study import forecast_study

        with computing("what to expect"):
            expected = forecast_study(parsed, base_folder=base_folder, folder=output)
        print_result(expected, as_json, _forecast(expected))
        return
    law = law_of(parsed)
    if check:
        from dpselect.study import check_study  # without what trains and writes

        with showing(law, quiet=quiet, operator=False) as shown:
            if shown.stage is not None:
                shown.stage("finding the price")
            found = check_study(parsed, base_folder=base_folder, folder=output, resume=resume)
        print_result(found, as_json, _checked(found, law_in_words(law)))
        return
    if operator_progress:
        warn("warning: trial counts are shown; no privacy guarantee covers anyone who sees them")
        warnings.filterwarnings("ignore", message="operator_progress")  # said above, in the user's words
    warnings.filterwarnings("ignore", category=NothingFoundWarning)  # said below
    from dpselect.study import run_study

    try:
        with terminable(), showing(law, quiet=quiet, operator=operator_progress) as shown:
            finished = run_study(
                parsed,
                base_folder=base_folder,
                folder=output,
                resume=resume,
                stage=shown.stage,
                operator_progress=shown.operator_progress,
            )
    except KeyboardInterrupt as interruption:
        warn("interrupted: --resume continues with this search, and charges nothing again")
        raise typer.Exit(status_of(interruption)) from None
    withheld = bool(finished.release["cells"]) and bool(finished.release["cells"]["withheld"])
    if not finished.release["found"] and not withheld:
        warn(f"warning: {nothing_found(law.zero_probability)}")
    if finished.key_variable is not None:
        warn(f"drop the environment variable {finished.key_variable} now: it holds the key")
    print_result(finished.release, as_json, _released(finished.release, finished.folder))
    if withheld:
        raise typer.Exit(WITHHELD)


def _bounds(preparation: dict[str, Any] | None) -> list[str]:
    """The bounds that were estimated privately, one a line. There is none if nothing was found."""
    bounds = {} if preparation is None else preparation["bounds"]
    return [
        f"bounds of {name}: {', '.join(f'{end:.4g}' if isinstance(end, float) else str(end) for end in ends)}"
        for name, ends in bounds.items()
        if ends is not None
    ]


def _design(found: dict[str, Any]) -> type[Design]:
    from dpselect.searching.design import DESIGNS

    return DESIGNS[found["design"]]


def _shown(amount: float) -> str:
    return rounded_up(amount, digits=4)


def _checked(found: dict[str, Any], runs: str) -> str:
    learner = found["learner"] + _settings({**found["noise"], **found["parameters"]})
    trained = [
        f"one run: epsilon {_shown(found['single_run_epsilon'])}; {learner}",
        f"number of runs: {runs}{_how_scored(found)}",
    ]
    if found["stages"] is not None:
        first, second = found["stages"]
        trained = [
            f"first stage: a search, epsilon {_shown(first['epsilon'])}; one of its runs: epsilon "
            f"{_shown(found['single_run_epsilon'])}; {learner}",
            trained[1],
            f"second stage: one run on all rows with what won, epsilon {_shown(second['epsilon'])} by itself"
            f"{_settings(second['noise'])}",
        ]
    if found["candidates"]:
        trained = [
            *(
                f"tried; if it is chosen: {one['learner']}{_settings(_without_learner(one))}"
                for one in found["candidates"]
            ),
            f"the choice: epsilon {_shown(found['choice_epsilon'])} of it, by the rows that train{_how_scored(found)}",
        ]
    lines = [
        f"study {found['study']!r} is valid; no row was read, nothing was drawn or charged",
        f"the whole {_design(found).whole} will cost epsilon {_shown(found['epsilon'])} at delta "
        f"{_shown(found['delta'])}, {found['adjacency']}",
        *_unit(found["person"]),
        *trained,
        *_figure_expected(found["expected_figure"]),
        *_bought(found["preparation"]),
        *_counted(found["cells"]),
        *(f"declared: {each}" for each in found["declared"]),
        *(f"note: {note}" for note in found["notes"]),
    ]
    return "\n".join(lines)


def _unit(person: dict[str, Any] | None) -> list[str]:
    """The line on the protected persons, if the guarantee is for persons."""
    if person is None:
        return []
    rows = "one row takes part" if person["rows"] == 1 else f"{person['rows']} rows take part"
    return [f"protected: each person in column {person['column']!r}, of whom at most {rows}"]


def _bought(preparation: dict[str, Any] | None) -> list[str]:
    if preparation is None:
        return []
    count, rows = len(preparation["columns"]), preparation["rows_needed"]
    price = f"epsilon {_shown(preparation['epsilon'])} of it, {_shown(preparation['column_epsilon'])} a column"
    lines = [f"private bounds of {count} column{'s' * (count > 1)}: {price}; they take about {rows} rows"]
    return lines if preparation["warning"] is None else [*lines, f"warning: {preparation['warning']}"]


def _counted(cells: dict[str, Any] | None) -> list[str]:
    if cells is None:
        return []
    price = f"epsilon {_shown(cells['epsilon'])} by themselves, all off by at most {cells['margin_95']}, 95 % sure"
    return [f"counts of lost and clipped cells: {price}"]


def _figure_expected(expected: dict[str, Any] | None) -> list[str]:
    if expected is None:
        return []
    value, low, high = (f"{expected[key]:.3g}" for key in ("value", "low", "high"))
    rows = f"about {expected['rows']} held-out rows"
    interval = f"{low} to {high}, {100 * expected['confidence']:g} % sure"
    return [f"expected of {rows}: {expected['metric']} {value}, say, would be shown as {interval}"]


def _without_learner(candidate: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in candidate.items() if name != "learner"}


def _settings(found: dict[str, Any]) -> str:
    shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in found.items()}
    return "".join(f", {name} = {value}" for name, value in shown.items())


def _how_scored(found: dict[str, Any]) -> str:
    compared = f", compared by {found['metric']}" if _design(found).draws else ""
    shown = f" and its {found['metric']}, at no further price" if found["score_released"] else ""
    return f"{compared}; what is released: the model{shown}"


def _tested(test: dict[str, Any] | None) -> list[str]:
    if test is None:
        return []
    usual = "accuracy" if "accuracy" in test else "absolute_error"
    shown = f"{test[usual]:.3f}" if usual == "accuracy" else f"{test[usual]:.4g}"
    return [f"{usual.replace('_', ' ')} of the loaded model on {test['rows']} public test rows: {shown}"]


def _validated(release: dict[str, Any]) -> list[str]:
    """The winner's figure, or where none was paid for (on public rows) its score alone."""
    found = release["validation"]
    if found is None:
        return [] if release["score"] is None else [f"released score: {release['score']:.3f}"]
    from dpselect.report.card import no_better_in_words, rows_of_person

    lines, each = [], rows_of_person(release)
    for one in found["figures"]:
        ends = ["no bound" if end is None else f"{end:.4g}" for end in (one["low"], one["high"])]
        interval = "no interval, as rows of one person or row key are alike"
        if found["confidence"] is not None:
            new = "new rows" if each == 1 else "rows of new persons"
            interval = f"between {ends[0]} and {ends[1]} on {new}, with probability {found['confidence']:g}"
        constant = "" if one["constant"] is None else f"; constant prediction: {one['constant']:.4g}"
        lines.append(f"{one['name']} on private rows, with noise: {one['value']:.4g}; {interval}{constant}")
    return [*lines, *(f"warning: {said}" for said in no_better_in_words(found, each))]


def _released(release: dict[str, Any], folder: Path) -> str:
    from dpselect.report.cells import cells_in_words  # a check of a study needs no report

    guarantee, whole = release["guarantee"], _design(release).whole
    chosen = 'none ("nothing found" is an outcome like another)'
    if release["cells"] is not None and release["cells"]["withheld"]:
        chosen = "the counts of cells alone"
    if release["found"]:
        chosen = release["learner"] + _settings({**release["settings"], **_without_learner(release["parameters"])})
    among = len(release["candidates"])
    lines = [
        f"the whole {whole}: epsilon {_shown(guarantee['epsilon'])}, delta {_shown(guarantee['delta'])}",
        f"adjacency: {guarantee['adjacency']}",
        *_unit(release["data"]["person"]),
        f"released: {chosen}{f', the one chosen of {among} candidates' if among else ''}",
        *_bounds(release["preparation"]),
        *cells_in_words(release),
        *_validated(release),
        *_tested(release["test"]),
        *(f"note: {note}" for note in release["notes"]),
        f"look at {folder / 'report.html'}",
    ]
    return "\n".join(lines)


def _forecast(found: dict[str, Any]) -> str:
    """A table of the designs, with what it rests on."""
    measured, loss = found["measured"], found["loss_to_noise"]
    lacks = "not measured" if loss is None else _figures(loss)
    score = "R2" if found["task"] == "regression" else "accuracy"
    lines = [("design", "gain over one run", "releases measured", "")]
    for each in found["designs"]:
        chosen = "this study" if each["design"] == found["design"] else ""
        lines.append((each["design"], _gain(each), str(each["releases"] or ""), chosen))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(
        [
            f"study {found['study']!r}: {found['rows']:.0f} rows at epsilon {rounded_up(found['epsilon'])} and "
            f"delta {rounded_up(found['delta'])} (n mu = {found['signals']:.0f}), "
            f"{found['weights']} weights; no row was read",
            *_unit(found["person"]),
            f"in thousandths of {score}, the median and where all but a tenth at either end lie:",
            f"one default run lacks to the same run without noise: {lacks}",
            f"a search for {found['space']}:",
            *rows,
            f"why {found['design']}: {found['why']}",
            f"measured by {measured['made_by']} on {measured['date']}, on {len(measured['tables'])} tables",
            "how hard your table is cannot be known from public facts, so that no score is foretold",
        ]
    )


def _gain(each: dict[str, Any]) -> str:
    if each["median"] is None:
        return "not measured"
    return _figures(each) if each["releases"] else "0"


def _figures(of: dict[str, Any]) -> str:
    low, median, high = (f"{1000 * of[key]:+.0f}" for key in ("low", "median", "high"))
    return f"{median}, {low} to {high}"
