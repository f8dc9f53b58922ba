"""`dpselect holdout`: a leaderboard over one file of held-out labels that cannot be over-fitted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.cli.commands import group
from dpselect.cli.holdout_server import invite, revoke, serve, submit
from dpselect.cli.options import AsJson, Decimal, Delimiter, Encoding, SkipRows, Thousands, print_result
from dpselect.cli.terminal import warn
from dpselect.errors import ArgumentError, integer, number
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.block_medians import BlockMedianPlan
from dpselect.holdout.files import read_columns, submitted
from dpselect.holdout.planning import fresh_error, most_fresh_answers, rows_needed
from dpselect.holdout.shared_record import name_of
from dpselect.holdout.terms import MECHANISMS
from dpselect.ledger import Ledger
from dpselect.numerics.digits import rounded_up
from dpselect.tables import Written

__all__ = ["holdout_app"]

holdout_app = group("holdout")

for _command in (serve, invite, revoke, submit):
    holdout_app.command()(_command)

_Questions = Annotated[int, typer.Option(help="The number of questions that may be asked.")]
_Answers = Annotated[
    int | None,
    typer.Option(help="How many questions may be answered by a score, not only by yes. The default is 10, or all."),
]
_Metric = Annotated[
    list[str] | None,
    typer.Option(
        help="accuracy, f1, auc, log-loss, absolute-error or squared-error. Repeat it for several: the first is used "
        "if a submission names none. The default is accuracy."
    ),
]
_Failure = Annotated[float, typer.Option(help="The probability that any answer is outside its certified interval.")]
_Tolerance = Annotated[
    float | None, typer.Option(help="Confirm a claim this near to the score. The default is 1/sqrt(rows).")
]
_Epsilon = Annotated[
    float | None,
    typer.Option(
        help="The epsilon of the whole holdout for one row (replace-one). Without it rows have no privacy guarantee."
    ),
]
_Delta = Annotated[float, typer.Option(help="The delta for --epsilon.")]
_Mechanism = Annotated[str, typer.Option(help=f"best, {', '.join(MECHANISMS)}.")]
_Size = Annotated[
    int | None,
    typer.Option(help="The rows of a block, for --mechanism blocks. The default has the smallest certified error."),
]
_Where = Annotated[str, typer.Option("--holdout", help="The holdout's file, or postgresql://...#NAME.")]


@holdout_app.command()
def create(
    labels: Annotated[Path, typer.Argument(metavar="LABELS.csv", help="A CSV file with ids and labels.")],
    to: Annotated[str, typer.Option(help="The holdout's new file, or postgresql://...#NAME.")],
    questions: _Questions,
    metric: _Metric = None,
    answers: _Answers = None,
    failure_probability: _Failure = 0.05,
    tolerance: _Tolerance = None,
    bound: Annotated[float | None, typer.Option(help="For errors: the largest error of a row.")] = None,
    positive: Annotated[str | None, typer.Option(help="For auc, f1 and log-loss: the positive class.")] = None,
    epsilon: _Epsilon = None,
    delta: _Delta = 1e-6,
    mechanism: _Mechanism = "best",
    subsample_size: _Size = None,
    id_column: Annotated[str, typer.Option(help="The column of ids.")] = "id",
    label_column: Annotated[str, typer.Option(help="The column of labels.")] = "label",
    ledger: Annotated[str | None, typer.Option(help="A ledger (file or URL) to spend from; needs --budget.")] = None,
    budget: Annotated[str | None, typer.Option(help="The budget in the ledger.")] = None,
    key_variable: Annotated[
        str | None,
        typer.Option(help="The environment variable with the key. The default is a file in the state folder."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Make a holdout: seal labels and fix what may be asked.

    Then delete LABELS.csv. Anyone who can read it can score without the holdout.
    """
    if (ledger is None) != (budget is None):
        raise ArgumentError("--ledger and --budget: give both or neither")
    if id_column == label_column:
        raise ArgumentError("--id-column and --label-column must differ")
    named = name_of(to) or Path(to).name
    request = HoldoutRequest(
        metric=metric or ("accuracy",),
        questions=questions,
        answers=_answers(answers, questions, mechanism),
        failure_probability=failure_probability,
        bound=bound,
        tolerance=tolerance,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        subsample_size=subsample_size,
    )
    ids, values = read_columns(
        labels, [id_column, label_column], form=Written(delimiter, encoding, decimal, thousands, skip_rows), own=True
    )
    rows = HoldoutLabels(ids=ids, labels=values, positive=positive, id_column=id_column, label_column=label_column)
    if ledger is None or budget is None:
        made = Holdout.create(to, rows, request, key_variable=key_variable)
    else:
        with Ledger.open(ledger, create=False) as record:
            purse, label = record.budget(budget), f"holdout {named}"
            made = Holdout.create(to, rows, request, spender=purse, label=label, key_variable=key_variable)
    found = {"holdout": named if name_of(to) else to, **made.terms.describe()}
    said = f"{found['holdout']}: {found['rows']} rows, {', '.join(request.metrics)}, mechanism {found['mechanism']}"
    if not metric:
        warn(
            "no --metric: accuracy is sealed. For labels that are numbers create it again with --metric absolute-error"
        )
    print_result(found, as_json, said, found["validity"], _row_privacy(found))


@holdout_app.command()
def score(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS.csv", help="A CSV file with ids and predictions.")
    ],
    holdout: _Where,
    claim: Annotated[
        float | None, typer.Option(help="The score that you expect. A yes is cheap, a no comes with a score.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="One of the holdout's metrics. The default is the first.")] = None,
    prediction_column: Annotated[str, typer.Option(help="The column of predictions.")] = "prediction",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Confirm a claimed score of predictions, or answer with a score."""
    form = Written(delimiter, encoding, decimal, thousands, skip_rows)
    place = Holdout.open(holdout)
    columns = [place.terms.id_column, prediction_column]
    ids, values = read_columns(predictions, columns, form=form, limits=submitted(place.terms.rows))
    found = place.score(ids=ids, predictions=values, claim=claim, column=prediction_column, metric=metric)
    name = place.terms.of(metric)[0].name
    if found.agrees:
        lines = [f"yes: {name} {claim:g} is confirmed"]
    else:
        lines = [f"{'no: ' if claim is not None else ''}{name} {found.value:.4g}"]
    if found.interval is not None:
        low, high = found.interval
        lines.append(f"the population's {name} is between {low:.4g} and {high:.4g}")
    again = "asked before, not charged again; " if found.repeated else ""
    left = f"{again}{found.questions_left} questions left, {found.answers_left} of them with a score"
    print_result(found.describe(), as_json, *lines, left)


@holdout_app.command()
def status(
    file: Annotated[str | None, typer.Argument(metavar="HOLDOUT", help="The holdout's file.")] = None,
    holdout: Annotated[str | None, typer.Option("--holdout", help="The same.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the questions so far, what is left and the certified error. Costs nothing."""
    place = file or holdout
    if place is None or (file is not None and holdout is not None):
        raise ArgumentError("give the holdout's file once")
    found = Holdout.open(place).status()
    print_result(
        found,
        as_json,
        f"{'open' if found['open'] else 'used up'}: {found['asked']} questions asked, "
        f"{found['answered']} answered with a score",
        f"{found['questions_left']} questions left, {found['answers_left']} of them with a score",
        found["validity"],
        _row_privacy(found),
    )


@holdout_app.command()
def plan(
    questions: _Questions,
    rows: Annotated[int | None, typer.Option(help="The number of rows, or give --error.")] = None,
    error: Annotated[
        float | None,
        typer.Option(help="Goal: the largest error, as a fraction of the bound. Prints the rows that you need."),
    ] = None,
    metric: _Metric = None,
    answers: _Answers = None,
    failure_probability: _Failure = 0.05,
    tolerance: _Tolerance = None,
    rarer: Annotated[
        int | None,
        typer.Option(help="The rows of the rarer class (auc) or of the positive class (f1). The default is half."),
    ] = None,
    epsilon: _Epsilon = None,
    delta: _Delta = 1e-6,
    mechanism: _Mechanism = "best",
    subsample_size: _Size = None,
    as_json: AsJson = False,
) -> None:
    """Print the certified error for your rows, or the rows for your error. Needs no labels."""
    if (rows is None) == (error is None):
        raise ArgumentError("give --rows or --error, one of them. Write --rows 10000")
    if rows is None and (rarer is not None or subsample_size is not None):
        raise ArgumentError("--rarer and --subsample-size go with --rows")
    request = HoldoutRequest(
        metric=metric or ("accuracy",),
        questions=integer("--questions", questions, at_least=1),
        answers=_answers(answers, questions, mechanism),
        failure_probability=failure_probability,
        tolerance=tolerance,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        subsample_size=subsample_size,
    )
    if rows is None:
        rows = rows_needed(request, number("--error", error or 0.0, above=0.0, below=0.5))
    choice = request.plan(rows=rows, rarer=rarer)
    chosen = choice.plan
    name = request.metrics[0]
    alone = (rarer or rows // 2) if name in ("auc", "f1") else rows  # rows that one score of new rows is a mean over
    even = most_fresh_answers(alone, chosen.error, failure_probability) if chosen.error is not None else None
    found = {
        "rows": rows,
        "questions": chosen.questions,
        "answers": chosen.answers,
        "mechanism": chosen.mechanism,
        "error": chosen.error,
        "errors": choice.errors,
        "further_errors": {name: plan.error for name, plan in choice.further.items()},
        "one_question_error": fresh_error(alone, 1, failure_probability),
        "splitting_error": fresh_error(alone, chosen.questions, failure_probability),
        "splitting_answers": even,
        "reason": choice.reason,
        "row_privacy": None if chosen.row_privacy is None else chosen.row_privacy.describe(delta=delta),
    }
    few = "" if chosen.answers == chosen.questions else f", at most {chosen.answers} of them answered by a score"
    lines = [f"{rows} rows, {chosen.questions} adaptive questions{few}: mechanism {chosen.mechanism}"]
    if isinstance(chosen, BlockMedianPlan):
        lines.append(f"quartiles of the {name} on {chosen.subsample_size} new rows")
    else:
        lines.append(f"certified error: {chosen.error:.4f} ({choice.reason})")
        lines += [f"certified error of the {other}: {plan.error:.4f}" for other, plan in choice.further.items()]
    lines.append(f"for comparison, one question to new rows: {found['one_question_error']:.4f}")
    lines.append(f"new rows for every question (splitting): {found['splitting_error']:.4f}")
    if even is not None:
        lines.append(f"break-even: splitting is as exact up to {even} questions")
    print_result(found, as_json, *lines, _row_privacy(found))


def _answers(given: int | None, questions: int, mechanism: str) -> int:
    """All questions for mechanisms that answer all of them, else 10 of them."""
    if given is not None:
        return given
    return questions if mechanism in ("gaussian", "blocks") else min(10, questions)


def _row_privacy(found: Mapping[str, Any]) -> str:
    promise = found["row_privacy"]
    if promise is None:
        return "nothing is promised to a row (--epsilon would)"
    return f"a row: epsilon {rounded_up(promise['epsilon'])} at delta {rounded_up(promise['delta'])}, replace-one"
