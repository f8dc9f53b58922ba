"""`dpselect quantile FILE`: private quantiles of one column."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dpselect.cli.options import (
    AsJson,
    Decimal,
    Delimiter,
    Encoding,
    SkipRows,
    Thousands,
    number_in,
    print_result,
)
from dpselect.cli.terminal import put
from dpselect.errors import ArgumentError, number
from dpselect.ledger import Ledger
from dpselect.numerics import rounded_up
from dpselect.numerics.moments import instant_of, span
from dpselect.ordered import Column, PrivateRange, Progress, Quantiles, open_column, quantiles
from dpselect.privacy import Guarantee, Payment, Receipt, compose
from dpselect.tables import Written

__all__ = ["quantile"]


def quantile(
    where: Annotated[str, typer.Argument(metavar="FILE", help="A Parquet or CSV file, or an SQL URL.")],
    column: Annotated[str, typer.Option(help="The column.")],
    epsilon: Annotated[float, typer.Option(help="The price of all quantiles together.")],
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
    method: Annotated[
        str,
        typer.Option(help="For several quantiles: auto, least_bound, joint, recursive, tree, slice or independent."),
    ] = "auto",
    delta: Annotated[float | None, typer.Option(help="For --method slice, which is not pure.")] = None,
    expected_rows: Annotated[
        int, typer.Option(help="About how many rows there are, if that is public; --method auto goes by it.")
    ] = 1000,
    kind: Annotated[
        str | None,
        typer.Option(help="Of a CSV file: number or date (ISO 8601). Its rows are not looked at to tell."),
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add_or_remove_one or replace_one.")] = "add_or_remove_one",
    table: Annotated[str | None, typer.Option(help="The table, with an SQL URL.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    ledger: Annotated[str | None, typer.Option(help="A ledger (file or URL) to spend from; needs --budget.")] = None,
    budget: Annotated[str | None, typer.Option(help="The budget in it.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the released quantiles to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Private quantiles of a column: values that are nearly at the ranks asked for, and what that costs."""
    number("--epsilon", epsilon, at_least=2.0**-30, at_most=2.0**20)
    for wanted in q:
        number("--q", wanted, at_least=0.0, at_most=1.0)
    if (lower is None) != (upper is None):
        raise ArgumentError("--lower and --upper: give both, or neither and --range-epsilon")
    if not category and (lower is None) == (range_epsilon is None):
        raise ArgumentError("give --lower and --upper, or --range-epsilon or --category in their place")
    if (ledger is None) != (budget is None):
        raise ArgumentError("--ledger and --budget: give both or neither")
    if category and (lower is not None or range_epsilon is not None or granularity is not None):
        raise ArgumentError("--category: in place of bounds and --granularity")
    if kind is not None and (kind not in ("number", "date") or category):
        raise ArgumentError("--kind: must be number or date, without --category")
    layout = Written(delimiter, encoding, decimal, thousands, skip_rows)
    written = None if layout == Written() else layout
    read: dict[str, Any] = {"text": bool(category), "look": kind is None, "dates": kind == "date", "form": written}
    if range_epsilon is not None:
        number("--range-epsilon", range_epsilon, at_least=2.0**-30, at_most=2.0**20)
    asked: dict[str, Any] = {"qs": q, "epsilon": epsilon, "adjacency": adjacency, "delta": delta}
    asked |= {"method": method, "expected_rows": expected_rows}
    plan = Quantiles(**asked)
    if plan.chosen == "tree" and range_epsilon is not None:
        raise ArgumentError("--method tree needs --lower and --upper")
    if plot is not None:
        from dpselect.report.plots import check_plot_path  # Matplotlib takes a second to import

        check_plot_path("--plot", plot)
    with (
        _progress() as progress,
        open_column(where, column, table=table, progress=progress, **read) as source,
    ):
        code = "" if category else source.dtype.kind  # raises for a type that needs categories
        if range_epsilon is not None and code not in ("i", "u", "f"):
            raise ArgumentError("--range-epsilon: only for numbers; timestamps need --lower and --upper")
        bounds = (_bound("--lower", lower, code), _bound("--upper", upper, code))
        step = _granularity(granularity, code)
        ends = None if range_epsilon is None else PrivateRange(epsilon=range_epsilon, adjacency=adjacency)
        if ends is None:  # whatever can be wrong is found before anything is paid
            declared = Column(source, lower=bounds[0], upper=bounds[1], granularity=step, categories=category or None)
            plan, _ = plan.settled(declared)
        total = plan.guarantee if ends is None else compose(ends.guarantee, plan.guarantee)
        with _paid(ledger, budget, total, f"quantiles of {column}") as receipt:
            if ends is not None:
                bounds = ends.draw(source)
            asked |= {"method": plan.chosen, "granularity": step, "categories": category}
            release = quantiles(source, lower=bounds[0], upper=bounds[1], **asked)
    errors = release.rank_errors(0.05)
    rows = [
        {"q": float(wanted), "value": _plain(value), "rank_error_95": error}
        for wanted, value, error in zip(plan.qs, release.value, errors, strict=True)
    ]
    result: dict[str, Any] = {
        "column": column,
        "quantiles": rows,
        "method": plan.chosen,
        "lower": _plain(bounds[0]),
        "upper": _plain(bounds[1]),
        **total.describe(delta=0.0 if delta is None else delta),
    }
    if receipt is not None:
        result["receipt"] = {"sequence": receipt.sequence, "head": receipt.head, "identifier": receipt.identifier}
    lines = [
        f"q {row['q']:g}: {row['value']}  (rank off by at most {row['rank_error_95']:.0f}, all 95 % sure)"
        for row in rows
    ]
    spent = f"epsilon {rounded_up(result['epsilon'])}, delta {rounded_up(delta or 0.0)}"
    if plan.chosen in ("joint", "recursive") and plan.method == "auto":
        best, error = plan.proved_best(release.domain_size)
        if error < max(errors):
            lines.append(f"--method least_bound ({best}) is off by at most {error:.0f}, but errs more on most columns")
    print_result(result, as_json, *lines, f"{spent}, adjacency {result['adjacency']}")
    if plot is not None:  # last: what was paid for is on the screen already
        _draw(plot, column, [(row["q"], value) for row, value in zip(rows, release.value, strict=True)], category)


def _bound(flag: str, text: str | None, kind: str) -> Any:
    if text is None:
        return None
    try:
        if kind != "M":
            return number_in(text)
        instant_of(text)
        return text
    except ValueError:
        raise ArgumentError(f"{flag} must be a {'timestamp' if kind == 'M' else 'number'}, got {text!r}") from None


def _granularity(text: str | None, kind: str) -> Any:
    if text is None or text == "float64":
        return text
    if kind != "M":
        return _bound("--granularity", text, kind)
    amount, _, unit = text.partition(" ")
    try:
        return span(int(amount), unit)
    except ValueError:
        raise ArgumentError(f"--granularity must be a count and a unit such as '1 D', got {text!r}") from None


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, np.datetime64) else value


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


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Seconds gone by, on a terminal only: how many rows there are is private."""
    stream = sys.stderr
    if not stream.isatty():
        yield None
        return
    start = time.monotonic()

    def show(_: int) -> None:
        put(stream, f"reading ... {int(time.monotonic() - start)} s ")

    yield show
    put(stream, "")


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
