"""`dpselect quantile FILE`: private quantiles of one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.cli.cells import UNCOUNTED, cells_in_words, described_cells, withheld_in_words
from dpselect.cli.computing import computing
from dpselect.cli.declared_cells import bound_in, in_zone, refuse_grouped, shown
from dpselect.cli.like import check_like
from dpselect.cli.options import (
    WITHHELD,
    AsJson,
    Decimal,
    Delimiter,
    Encoding,
    Sheet,
    SkipRows,
    Thousands,
    print_result,
)
from dpselect.cli.quantile_groups import GroupAnswers, answer_groups, check_group_flags, group_table
from dpselect.cli.terminal import warn
from dpselect.errors import ArgumentError, number
from dpselect.ledger import Ledger
from dpselect.numerics.digits import rounded_up
from dpselect.numerics.moments import span
from dpselect.ordered import Column, GroupedQuantiles, Quantiles, open_column, quantiles
from dpselect.ordered.order_statistics.cell_counts import CellCounts, CountedCells, count_epsilon
from dpselect.ordered.order_statistics.methods.method import CHOICES, METHODS
from dpselect.ordered.order_statistics.private_range import PrivateRange
from dpselect.ordered.order_statistics.several import QuantilesRelease
from dpselect.ordered.sources.adapters import CategorySource, CountedSource, ZonedSource
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.paying import Payment
from dpselect.privacy.release import Receipt
from dpselect.tables import Declared, Written
from dpselect.tables.written import CSV_ENDS

__all__ = ["quantile"]


def quantile(
    where: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A file as a study takes it (CSV, Parquet, ...), or an SQL URL.",
        ),
    ],
    column: Annotated[str, typer.Option(help="The column.")],
    epsilon: Annotated[float, typer.Option(help="The price of all quantiles together, and of --count.")],
    q: Annotated[list[float], typer.Option(help="A quantile between 0 and 1; may be given several times.")],
    lower: Annotated[str | None, typer.Option(help="A public bound: no answer is below it.")] = None,
    upper: Annotated[str | None, typer.Option(help="A public bound: no answer is above it.")] = None,
    range_epsilon: Annotated[
        float | None, typer.Option(help="In place of bounds: find them privately first, for this much more.")
    ] = None,
    granularity: Annotated[
        str | None, typer.Option(help="Answers are multiples of this; float64 for every double.")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="In place of bounds: a value of a text column; once each, in their order.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A column of groups: answer for each --group, for the price of one.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="The name of a group in --by, public; once for each that you want.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help=f"For several quantiles: {', '.join((*CHOICES, *METHODS))}."),
    ] = "auto",
    delta: Annotated[float | None, typer.Option(help="For --method slice, which is not pure.")] = None,
    expected_rows: Annotated[
        int, typer.Option(help="About how many rows there are, if that is public; --method auto goes by it.")
    ] = 1000,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of a column without a type: number, integer, boolean, date, timestamp or duration. Its rows are not "
            "looked at to tell, but for dates without --format."
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option("--format", help="How dates are written, such as %d.%m.%Y; else ISO 8601.")
    ] = None,
    two_digit_years_from: Annotated[
        int | None, typer.Option(help="The first of the hundred years that %y means, such as 1920.")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Of dates and times without an offset, such as Europe/Berlin; else UTC.")
    ] = None,
    true_values: Annotated[list[str] | None, typer.Option("--true-value", help="What means true.")] = None,
    false_values: Annotated[list[str] | None, typer.Option("--false-value", help="What means false.")] = None,
    missing_values: Annotated[
        list[str] | None, typer.Option("--missing-value", help="What means that there is no value, such as -99.")
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    table: Annotated[str | None, typer.Option(help="The table, with an SQL URL.")] = None,
    sheet: Sheet = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    count: Annotated[
        bool,
        typer.Option(
            "--count/--no-count",
            help="Count, with noise and within epsilon, how many cells are clipped, missing or cannot be read.",
        ),
    ] = True,
    most_unreadable: Annotated[
        float,
        typer.Option(help="Withhold the answer if the counts show that a larger share of the cells cannot be read."),
    ] = 0.2,
    like: Annotated[
        str | None,
        typer.Option(help="A public sample of the file: read as it will be, and refused, before anything is paid."),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="A ledger (file or URL) to spend from; needs --budget.")] = None,
    budget: Annotated[str | None, typer.Option(help="The budget in it.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the released quantiles to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Private quantiles of a column: values that are nearly at the ranks asked for, and what that costs."""
    _check_numbers(epsilon, q, range_epsilon, count=count)
    number("--most-unreadable", most_unreadable, at_least=0.0, at_most=1.0)
    if kind == "boolean" and lower is upper is None and range_epsilon is None:
        lower, upper = "false", "true"
    _check_together(lower, upper, range_epsilon, category, granularity, kind)
    check_group_flags(by, group, {"--range-epsilon": range_epsilon, "--plot": plot})
    if (ledger is None) != (budget is None):
        raise ArgumentError("--ledger and --budget: give both or neither")
    given: dict[str, Any] = {
        "kind": kind,
        "format": date_format,
        "two_digit_years_from": two_digit_years_from,
        "time_zone": time_zone,
    }
    given |= {"true_values": true_values, "false_values": false_values, "missing_values": missing_values}
    keys = {key: value for key, value in given.items() if value}
    cells = Declared(**keys)
    layout = Written(delimiter, encoding, decimal, thousands, skip_rows, None, sheet)
    written = None if layout == Written() else layout
    look = kind is None or (kind in ("date", "timestamp") and date_format is None)
    read: dict[str, Any] = {"text": bool(category), "look": look, "form": written, "by": by, **keys}
    for flag, bound in (("--lower", lower), ("--upper", upper)):
        refuse_grouped(flag, bound, layout)
    if like is not None:
        check_like(like, column, most=most_unreadable, categories=category or (), declared=cells, form=layout)
    part = count_epsilon(epsilon, adjacency) if count else 0.0
    counts = CellCounts(epsilon=part, adjacency=adjacency) if count else None
    asked: dict[str, Any] = {"qs": q, "epsilon": epsilon - part, "adjacency": adjacency, "delta": delta}
    asked |= {"method": method, "expected_rows": expected_rows}
    plan = Quantiles(**asked)
    grouped = None if by is None else GroupedQuantiles(names=group, quantiles=plan)
    if plan.chosen == "tree" and range_epsilon is not None:
        raise ArgumentError("--method tree needs --lower and --upper")
    if plot is not None:
        from dpselect.report.plots import check_plot_path  # Matplotlib takes a second to import

        check_plot_path("--plot", plot)
    with (
        computing(f"quantiles of {column}"),
        open_column(where, column, table=table, **read) as source,
    ):
        code = "" if category else source.dtype.kind  # raises for a type that needs categories
        cells = in_zone(cells, source.zone if isinstance(source, ZonedSource) else None)
        if range_epsilon is not None and code not in ("i", "u", "f"):
            raise ArgumentError("--range-epsilon: only for numbers; timestamps need --lower and --upper")
        bounds = (bound_in("--lower", lower, code, cells), bound_in("--upper", upper, code, cells))
        step = _granularity(granularity, code, cells)
        if counts is not None and not isinstance(source, CategorySource if category else CountedSource):
            raise ArgumentError("--no-count: needed, since this source of columns does not count its cells")
        if by is not None and grouped is not None:
            public = {"lower": bounds[0], "upper": bounds[1], "granularity": step, "categories": category or None}
            label = f"quantiles of {column} by {by}"
            answers = answer_groups(
                grouped,
                Column(source, **public),
                counts,
                most_unreadable,
                lambda total: _paid(ledger, budget, total, label),
            )
            _print_groups(column, by, answers, lambda value: shown(value, cells, lower), as_json=as_json, delta=delta)
            return
        ends = None if range_epsilon is None else PrivateRange(epsilon=range_epsilon, adjacency=adjacency)
        if ends is None:  # anything that can be wrong is found before anything is paid
            declared = Column(source, lower=bounds[0], upper=bounds[1], granularity=step, categories=category or None)
            plan, _ = plan.bind(declared)
        total = compose(*(each.guarantee for each in (ends, counts, plan) if each is not None))
        found: CountedCells | None = None
        possible: tuple[bool, ...] = ()
        release: QuantilesRelease | None = None
        with _paid(ledger, budget, total, f"quantiles of {column}") as receipt:
            if ends is not None:
                bounds = ends.draw(source)
            public = {"lower": bounds[0], "upper": bounds[1], "granularity": step, "categories": category}
            if counts is not None:
                counted = Column(source, **public)
                possible, found = counted.possible, counts.draw(counted)
            # an answer that is withheld is not drawn at all
            if counts is None or found is None or not counts.mostly_lost(found, most_unreadable):
                release = quantiles(source, **public, **asked | {"method": plan.chosen})
    shown_counts = None if counts is None or found is None else described_cells(counts, found)
    result: dict[str, Any] = {"column": column, "quantiles": [], "withheld": release is None, "cells": shown_counts}
    if shown_counts is None:
        result["condition"] = UNCOUNTED
    result["method"] = plan.chosen
    if release is not None:
        result |= {"lower": shown(bounds[0], cells, lower), "upper": shown(bounds[1], cells, upper)}
    result |= total.describe(delta=0.0 if delta is None else delta)
    if receipt is not None:
        result["receipt"] = _described(receipt)
    spent = _spent(result, delta)
    in_words = cells_in_words(shown_counts, possible=possible)
    if release is None:
        print_result(result, as_json, in_words, spent)
        warn(
            withheld_in_words(column, most_unreadable, categories=bool(category), csv=where.lower().endswith(CSV_ENDS))
        )
        raise typer.Exit(WITHHELD)
    result["quantiles"] = [
        {"q": float(wanted), "value": shown(value, cells, lower), "rank_error_95": error}
        for wanted, value, error in zip(plan.qs, release.value, release.rank_errors(0.05), strict=True)
    ]
    print_result(result, as_json, *_lines(result["quantiles"], plan, release), in_words, spent)
    if plot is not None:  # last: what was paid for is on the screen already
        points = [(float(q), value) for q, value in zip(plan.qs, release.value, strict=True)]
        _draw(plot, column, points, category)


def _print_groups(
    column: str,
    by: str,
    answers: GroupAnswers,
    show: Callable[[Any], Any],
    *,
    as_json: bool,
    delta: float | None,
) -> None:
    """Print the table, and exit with a status of its own if a group has no answer."""
    groups = [
        {**each, "quantiles": [{**row, "value": show(row["value"])} for row in each["quantiles"]]}
        for each in answers.groups
    ]
    printed = replace(answers, groups=groups)
    result: dict[str, Any] = {"column": column, "by": by, "groups": groups, "withheld": bool(answers.withheld)}
    result |= {"method": answers.method} | answers.guarantee.describe(delta=0.0 if delta is None else delta)
    if groups[0]["cells"] is None:
        result["condition"] = UNCOUNTED
    if answers.receipt is not None:
        result["receipt"] = _described(answers.receipt)
    print_result(result, as_json, *group_table(by, printed), _spent(result, delta))
    if answers.withheld:
        names = ", ".join(map(str, answers.withheld))
        warn(
            f"withheld: in {by} {names}, too many cells of column {column!r} cannot be read, so no answer was drawn. "
            "Declare how the cells are written, or raise --most-unreadable. The whole price is charged"
        )
        raise typer.Exit(WITHHELD)


def _described(receipt: Receipt) -> dict[str, Any]:
    return {"sequence": receipt.sequence, "head": receipt.head, "identifier": receipt.identifier}


def _spent(result: dict[str, Any], delta: float | None) -> str:
    return f"epsilon {rounded_up(result['epsilon'])}, delta {rounded_up(delta or 0.0)}, adjacency {result['adjacency']}"


def _check_numbers(epsilon: float, qs: list[float], range_epsilon: float | None, *, count: bool) -> None:
    """Refuse numbers out of range."""
    # a twentieth of epsilon may pay for counts, and no mechanism takes less than 2**-30
    number("--epsilon", epsilon, at_least=2.0**-25 if count else 2.0**-30, at_most=2.0**20)
    for wanted in qs:
        number("--q", wanted, at_least=0.0, at_most=1.0)
    if range_epsilon is not None:
        number("--range-epsilon", range_epsilon, at_least=2.0**-30, at_most=2.0**20)


def _check_together(
    lower: str | None,
    upper: str | None,
    range_epsilon: float | None,
    category: list[str] | None,
    granularity: str | None,
    kind: str | None,
) -> None:
    """Refuse flags of the domain that do not go together."""
    if (lower is None) != (upper is None):
        raise ArgumentError("--lower and --upper: give both, or neither and --range-epsilon")
    if not category and (lower is None) == (range_epsilon is None):
        raise ArgumentError("give --lower and --upper, or --range-epsilon or --category in their place")
    if category and (lower is not None or range_epsilon is not None or granularity is not None):
        raise ArgumentError("--category: in place of bounds and --granularity")
    if kind is not None and (category or kind in ("category", "text")):
        raise ArgumentError("--kind: categories and text need --category alone")


def _lines(rows: list[dict[str, Any]], plan: Quantiles, release: QuantilesRelease) -> list[str]:
    """The quantiles for people."""
    lines = [
        f"q {row['q']:g}: {row['value']}  (rank off by at most {row['rank_error_95']:.0f}, all 95 % sure)"
        for row in rows
    ]
    if plan.chosen in ("joint", "recursive") and plan.method == "auto":
        best, error = plan.proved_best(release.domain_size)
        if error < max(row["rank_error_95"] for row in rows):
            lines.append(f"--method least_bound ({best}) is off by at most {error:.0f}, but errs more on most columns")
    return lines


def _granularity(text: str | None, kind: str, cells: Declared) -> Any:
    if text is None or text == "float64":
        return text
    if kind != "M":
        return bound_in("--granularity", text, kind, cells)
    amount, _, unit = text.partition(" ")
    try:
        return span(int(amount), unit)
    except ValueError:
        raise ArgumentError(f"--granularity must be a count and a unit such as '1 D', got {text!r}") from None


@contextmanager
def _paid(ledger: str | None, budget: str | None, guarantee: Guarantee, label: str) -> Iterator[Receipt | None]:
    """Reserve before the first row is read. A failure in between leaves the charge where it is."""
    if ledger is None or budget is None:
        yield None
        return
    with Ledger.open(ledger, create=False) as record:
        payment = Payment.open(guarantee, spender=record.budget(budget), label=label)
        yield payment.receipt
        payment.close()


def _draw(path: Path, column: str, points: list[tuple[float, Any]], category: list[str] | None) -> None:
    from dpselect.report.plots import plotting, save_plot

    places = [category.index(value) if category else value for _, value in points]
    with plotting(height=4.0) as axes:
        axes.plot(places, [q for q, _ in points], marker="o")
        if category:
            axes.set_xticks(range(len(category)), category)
        axes.set(xlabel=column, ylabel="share of rows at most this", title="private quantiles", ylim=(0, 1))
        try:
            save_plot(axes, path, title="private quantiles")
        except OSError as error:
            raise ArgumentError(f"--plot: {path} cannot be written: {error.strerror}") from None
