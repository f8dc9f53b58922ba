"""`dpselect quantile FILE`: private quantiles of one column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
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
from dpselect.cli.quantile_flags import (
    check_budget_flags,
    check_domain_flags,
    check_numbers,
    check_person_flags,
    for_whom,
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
from dpselect.ordered.sources.adapters import CategorySource, ColumnSource, CountedSource, ZonedSource
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
            help="A file (CSV, Parquet, ...) or the URL of a database.",
        ),
    ],
    column: Annotated[str, typer.Option(help="The column.")],
    epsilon: Annotated[float, typer.Option(help="The epsilon of all quantiles together, including --count.")],
    q: Annotated[list[float], typer.Option(help="A quantile between 0 and 1. Repeat it for several quantiles.")],
    lower: Annotated[str | None, typer.Option(help="The public lower bound of the values.")] = None,
    upper: Annotated[str | None, typer.Option(help="The public upper bound of the values.")] = None,
    range_epsilon: Annotated[
        float | None, typer.Option(help="In place of bounds: find them privately first, with this epsilon on top.")
    ] = None,
    granularity: Annotated[
        str | None, typer.Option(help="Round answers to multiples of this. float64 does not round.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="In place of bounds: a value of a text column. Repeat it for each value, in ascending order."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A column of groups. You get an answer for each --group at the cost of one.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A public group name in the column --by. Repeat it for each group.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="The column that identifies the person. The guarantee is then for persons.")
    ] = None,
    rows_per_person: Annotated[
        int | None, typer.Option(help="With --person: use at most so many rows of each person, public.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help=f"For several quantiles: {', '.join((*CHOICES, *METHODS))}."),
    ] = "auto",
    delta: Annotated[float | None, typer.Option(help="The delta, for --method slice only.")] = None,
    expected_rows: Annotated[
        int, typer.Option(help="A public estimate of the number of rows. --method auto chooses by it.")
    ] = 1000,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of a column without a type, of text, or in SQLite: number, integer, boolean, date, timestamp or "
            "duration. Its rows are not looked at to tell, but for dates without --format."
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option("--format", help="The format of dates, such as %d.%m.%Y. The default is ISO 8601.")
    ] = None,
    two_digit_years_from: Annotated[
        int | None, typer.Option(help="The first of the hundred years that %y covers, such as 1920.")
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(help="The time zone of times without an offset, such as Europe/Berlin. The default is UTC."),
    ] = None,
    true_values: Annotated[
        list[str] | None, typer.Option("--true-value", help="The text of a true value. May be repeated.")
    ] = None,
    false_values: Annotated[
        list[str] | None, typer.Option("--false-value", help="The text of a false value. May be repeated.")
    ] = None,
    missing_values: Annotated[
        list[str] | None,
        typer.Option("--missing-value", help="The text of a missing value, such as -99. May be repeated."),
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    table: Annotated[str | None, typer.Option(help="The table of the database.")] = None,
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
            help="Also print noisy counts of clipped, missing and unreadable cells, within epsilon.",
        ),
    ] = True,
    most_unreadable: Annotated[
        float,
        typer.Option(help="Withhold the answer if the counts show that a larger fraction of the cells is unreadable."),
    ] = 0.2,
    like: Annotated[
        str | None,
        typer.Option(help="A public sample of the file. It is read like the file before anything is charged."),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="A ledger (file or URL) to spend from; needs --budget.")] = None,
    budget: Annotated[str | None, typer.Option(help="The budget in the ledger.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the released quantiles to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Release private quantiles of a column, such as its median."""
    check_numbers(epsilon, q, range_epsilon, count=count)
    number("--most-unreadable", most_unreadable, at_least=0.0, at_most=1.0)
    if kind == "boolean" and lower is upper is None and range_epsilon is None:
        lower, upper = "false", "true"
    check_domain_flags(lower, upper, range_epsilon, category, granularity, kind)
    check_group_flags(by, group, {"--range-epsilon": range_epsilon, "--plot": plot})
    check_person_flags(person, rows_per_person, {"--by": by, "--range-epsilon": range_epsilon})
    check_budget_flags(ledger, budget)
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
    read = {"text": bool(category), "look": _looked_at(kind, date_format), "by": by, "person": person, **keys}
    for flag, bound in (("--lower", lower), ("--upper", upper)):
        refuse_grouped(flag, bound, layout)
    if like is not None:
        check_like(like, column, most=most_unreadable, categories=category or (), declared=cells, form=layout)
    part = count_epsilon(epsilon, adjacency) if count else 0.0
    whom: dict[str, Any] = {"adjacency": adjacency, "rows_per_person": rows_per_person}
    asked: dict[str, Any] = {"qs": q, "epsilon": epsilon - part, "delta": delta} | whom
    question = _Question(
        column=column,
        asked=asked | {"method": method, "expected_rows": expected_rows},
        bounds=(lower, upper),
        granularity=granularity,
        category=category or None,
        cells=cells,
        counts=CellCounts(epsilon=part, **whom) if count else None,
        range_epsilon=range_epsilon,
        most_unreadable=most_unreadable,
        budget=None if ledger is None or budget is None else (ledger, budget),
    )
    grouped = None if by is None else GroupedQuantiles(names=group, quantiles=question.plan)
    if question.plan.chosen == "tree" and range_epsilon is not None:
        raise ArgumentError("--method tree needs --lower and --upper")
    if plot is not None:
        from dpselect.report.plots import check_plot_path  # Matplotlib takes a second to import

        check_plot_path("--plot", plot)
    form = None if layout == Written() else layout
    with computing(f"quantiles of {column}"), open_column(where, column, table=table, form=form, **read) as source:
        if by is not None and grouped is not None:
            _print_groups(question, by, _answered_by_group(question, grouped, by, source), as_json=as_json, delta=delta)
            return
        answer = _answered(question, source)
    csv = where.lower().endswith(CSV_ENDS)
    values = _print_answer(question, answer, delta=delta, as_json=as_json, csv=csv)
    if plot is not None:  # last: what was paid for is on the screen already
        _draw(plot, column, values, category)


def _looked_at(kind: str | None, date_format: str | None) -> bool:
    """Whether rows tell how a column without a type is read."""
    return kind is None or (kind in ("date", "timestamp") and date_format is None)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The question of one call, from the flags alone. `asked` are arguments of `quantiles`."""

    column: str
    asked: dict[str, Any]
    bounds: tuple[str | None, str | None]
    granularity: str | None
    category: list[str] | None
    cells: Declared
    counts: CellCounts | None
    range_epsilon: float | None
    most_unreadable: float
    budget: tuple[str, str] | None

    @cached_property
    def plan(self) -> Quantiles:
        return Quantiles(**self.asked)

    @cached_property
    def ends(self) -> PrivateRange | None:
        if self.range_epsilon is None:
            return None
        return PrivateRange(epsilon=self.range_epsilon, adjacency=self.asked["adjacency"])

    def domain(self, source: ColumnSource) -> dict[str, Any]:
        """The public domain of the values. Raises `ArgumentError` if the flags do not fit the column's type."""
        code = "" if self.category else source.dtype.kind  # raises for a type that needs categories
        if self.ends is not None and code not in ("i", "u", "f"):
            raise ArgumentError("--range-epsilon: only for numbers; timestamps need --lower and --upper")
        cells = self.cells_of(source)
        lower, upper = self.bounds
        public = {
            "lower": bound_in("--lower", lower, code, cells),
            "upper": bound_in("--upper", upper, code, cells),
            "granularity": _granularity(self.granularity, code, cells),
            "categories": self.category,
            "rows_per_person": self.asked["rows_per_person"],
        }
        if self.counts is not None and not isinstance(source, CategorySource if self.category else CountedSource):
            raise ArgumentError("--no-count: needed, since this source of columns does not count its cells")
        return public

    def cells_of(self, source: ColumnSource) -> Declared:
        """How the column's cells are read and shown: time stamps in the zone of their type."""
        return in_zone(self.cells, source.zone if isinstance(source, ZonedSource) else None)


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """The draws of one call, their cost, and the public facts behind them."""

    plan: Quantiles
    guarantee: Guarantee
    domain: dict[str, Any]
    cells: Declared
    counted: CountedCells | None
    possible: tuple[bool, ...]
    release: QuantilesRelease | None
    receipt: Receipt | None


def _answered(question: _Question, source: ColumnSource) -> _Answer:
    public, plan, counts, ends = question.domain(source), question.plan, question.counts, question.ends
    if ends is None:  # anything that can be wrong is found before anything is paid
        plan, _ = plan.bind(Column(source, **public))
    total = compose(*(each.guarantee for each in (ends, counts, plan) if each is not None))
    found: CountedCells | None = None
    possible: tuple[bool, ...] = ()
    release: QuantilesRelease | None = None
    with _paid(question.budget, total, f"quantiles of {question.column}") as receipt:
        if ends is not None:
            public["lower"], public["upper"] = ends.draw(source)
        if counts is not None:
            counted = Column(source, **public)
            possible, found = counted.possible, counts.draw(counted)
        # an answer that is withheld is not drawn at all
        if counts is None or found is None or not counts.mostly_lost(found, question.most_unreadable):
            release = quantiles(source, **public | question.asked | {"method": plan.chosen})
    return _Answer(
        plan=plan,
        guarantee=total,
        domain=public,
        cells=question.cells_of(source),
        counted=found,
        possible=possible,
        release=release,
        receipt=receipt,
    )


def _print_answer(
    question: _Question, answer: _Answer, *, delta: float | None, as_json: bool, csv: bool
) -> list[tuple[float, Any]]:
    """Print the quantiles and return them. Exit with a status of its own if they are withheld."""
    release, cells, lower = answer.release, answer.cells, question.bounds[0]
    counts = None
    if question.counts is not None and answer.counted is not None:
        counts = described_cells(question.counts, answer.counted)
    result: dict[str, Any] = {"column": question.column, "quantiles": [], "withheld": release is None, "cells": counts}
    if counts is None:
        result["condition"] = UNCOUNTED
    result |= {"method": answer.plan.chosen, "rows_per_person": question.asked["rows_per_person"]}
    if release is not None:
        result |= {end: shown(answer.domain[end], cells, lower) for end in ("lower", "upper")}
    result |= answer.guarantee.describe(delta=0.0 if delta is None else delta)
    if answer.receipt is not None:
        result["receipt"] = _described(answer.receipt)
    spent = _spent(result, delta, question.asked["rows_per_person"])
    in_words = cells_in_words(counts, possible=answer.possible)
    if release is None:
        print_result(result, as_json, in_words, spent)
        categories = question.category is not None
        warn(withheld_in_words(question.column, question.most_unreadable, categories=categories, csv=csv))
        raise typer.Exit(WITHHELD)
    qs = [float(wanted) for wanted in answer.plan.qs]
    result["quantiles"] = [
        {"q": wanted, "value": shown(value, cells, lower), "rank_error_95": error}
        for wanted, value, error in zip(qs, release.value, release.rank_errors(0.05), strict=True)
    ]
    print_result(result, as_json, *_lines(result["quantiles"], answer.plan, release), in_words, spent)
    return list(zip(qs, release.value, strict=True))


def _answered_by_group(question: _Question, grouped: GroupedQuantiles, by: str, source: ColumnSource) -> GroupAnswers:
    """The answer of each group. Its values are shown as text."""
    column = Column(source, **question.domain(source))
    label = f"quantiles of {question.column} by {by}"
    found = answer_groups(
        grouped, column, question.counts, question.most_unreadable, lambda total: _paid(question.budget, total, label)
    )
    cells, lower = question.cells_of(source), question.bounds[0]
    groups = [
        {**each, "quantiles": [{**row, "value": shown(row["value"], cells, lower)} for row in each["quantiles"]]}
        for each in found.groups
    ]
    return replace(found, groups=groups)


def _print_groups(question: _Question, by: str, answers: GroupAnswers, *, as_json: bool, delta: float | None) -> None:
    """Print the table, and exit with a status of its own if a group has no answer."""
    column, groups = question.column, answers.groups
    result: dict[str, Any] = {"column": column, "by": by, "groups": groups, "withheld": bool(answers.withheld)}
    result |= {"method": answers.method} | answers.guarantee.describe(delta=0.0 if delta is None else delta)
    if groups[0]["cells"] is None:
        result["condition"] = UNCOUNTED
    if answers.receipt is not None:
        result["receipt"] = _described(answers.receipt)
    print_result(result, as_json, *group_table(by, answers), _spent(result, delta))
    if answers.withheld:
        names = ", ".join(map(str, answers.withheld))
        warn(
            f"withheld: in {by} {names}, too many cells of column {column!r} cannot be read, so no answer was drawn. "
            "Declare how the cells are written, or raise --most-unreadable. The whole price is charged"
        )
        raise typer.Exit(WITHHELD)


def _described(receipt: Receipt) -> dict[str, Any]:
    return {"sequence": receipt.sequence, "head": receipt.head, "identifier": receipt.identifier}


def _spent(result: dict[str, Any], delta: float | None, rows_per_person: int | None = None) -> str:
    price = f"epsilon {rounded_up(result['epsilon'])}, delta {rounded_up(delta or 0.0)}"
    return f"{price}{for_whom(rows_per_person)}, adjacency {result['adjacency']}"


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
def _paid(account: tuple[str, str] | None, guarantee: Guarantee, label: str) -> Iterator[Receipt | None]:
    """Reserve before the first row is read. A failure in between leaves the charge where it is."""
    if account is None:
        yield None
        return
    ledger, budget = account
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
