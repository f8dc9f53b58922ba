"""`dpselect init DATA --label LABEL`: a first draft of a study, from names and types alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect.cli.options import Decimal, Delimiter, Encoding, Sheet, SkipRows, Table, Thousands
from dpselect.cli.terminal import ask, say, warn, write_data
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, number

if TYPE_CHECKING:
    from dpselect.study.draft import DraftedColumn, Facts

__all__ = ["init"]

_TASKS = ("classification", "regression")
_KINDS = ("number", "boolean", "category", "date", "duration", "text", "none")


def init(
    data: Annotated[
        str, typer.Argument(help="The table: a .csv, .csv.gz, .parquet, .feather or .npz file, or a database's URL.")
    ],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    epsilon: Annotated[float, typer.Option(help="The total epsilon of the study.")] = 3.0,
    task: Annotated[
        str, typer.Option(help="classification or regression. Without it the draft shows both, or asks.")
    ] = "",
    to: Annotated[
        Path | None, typer.Option(help="The study file to write. By default the draft goes to standard output.")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(help="A data dictionary in CSV, with the columns name, kind, description, low and high."),
    ] = None,
    table: Table = None,
    sheet: Sheet = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
) -> None:
    """Draft a study from the names and types of a table's columns. No row is read.

    In a terminal it asks you for public facts that only you know. Elsewhere it leaves blanks, and
    `dpselect tune --check` lists them.
    """
    from dpselect.study.dictionary import described_columns, described_label, read_dictionary
    from dpselect.study.draft import Facts, draft_study, guessed_columns
    from dpselect.tables import Written
    from dpselect.tables.header import absent
    from dpselect.tables.table import open_table

    number("--epsilon", epsilon, above=0.0)
    if task not in ("", *_TASKS):
        cure = write_one_of("", task, _TASKS).replace("'", "").replace("write", "write --task")
        raise ArgumentError(f"--task: must be {' or '.join(_TASKS)}, got {task!r}{cure}")
    if to is not None and to.exists():
        raise ArgumentError(f"--to: {str(to)!r} exists already. Write --to {to.with_stem(to.stem + '-2')}")
    form = Written(delimiter, encoding, decimal, thousands, skip_rows, table, sheet)
    found = open_table(data, Path(), "DATA", form=form)
    if label not in found.columns:
        raise ArgumentError(f"--label: {absent([label], found.columns)}")
    named = [name for name in found.columns if name]  # those without a name are of spreadsheets and row names
    found.check(named)
    columns = guessed_columns([name for name in named if name != label], found.types)
    facts = Facts(epsilon=repr(epsilon), task=task)
    if dictionary is not None:
        described = read_dictionary(dictionary)
        columns, facts = described_columns(columns, described), described_label(facts, described.get(label))
        if unknown := [name for name in described if name not in found.columns]:
            warn(f"--dictionary: {absent(unknown, found.columns)}")
    if _in_terminal():
        warn("Say only what is public without looking at the rows; nothing leaves a blank.")
        rows = ask("rows, about")
        facts = replace(_answered(facts, label), nominal_rows=rows)
        columns = [column if column.complete else _asked(column) for column in columns]
    text = draft_study(_beside(data, to), label, columns, facts, form=form)
    if to is None:
        write_data(text)
    else:
        try:
            with to.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ArgumentError(f"--to: {str(to)!r} cannot be written: {error.strerror}") from None
        say(f"wrote {to}")
    if len(named) < len(found.columns):
        warn(f"left out: {len(found.columns) - len(named)} without a name in the header")
    for column in columns:
        if column.kind == "none":
            warn(f"{column.name}: left out, {column.why}")
        elif column.why.startswith("a guess"):
            warn(f"{column.name}: taken for a {column.kind}, {column.why}")
    warn("no row was read; fill in what is public, then: dpselect tune --check")


def _in_terminal() -> bool:
    return sys.stdin.isatty()


def _beside(data: str, to: Path | None) -> str:
    """The source as a study in another folder names it: paths start at the study's folder."""
    if ":" in data or to is None or to.resolve().parent == Path().resolve():
        return data
    return str(Path(data).resolve())


def _words(question: str) -> tuple[str, ...]:
    answer = ask(f"{question}, with commas between")
    return tuple(word.strip() for word in answer.split(",")) if answer else ()


def _answered(facts: Facts, label: str) -> Facts:
    """A person's answers about the label: its classes, or its bounds if it is a number."""
    if facts.classes or facts.label_bounds:
        return facts
    if facts.task != "regression":
        facts = replace(facts, classes=_words(f"classes of {label!r} (nothing for a number)"))
    if facts.task == "classification" or facts.classes:
        return facts
    bounds = _words(f"lowest and highest of {label!r}")
    return replace(facts, task="regression" if bounds else facts.task, label_bounds=bounds)


def _asked(column: DraftedColumn) -> DraftedColumn:
    """A person's answers about a column."""
    kind = ""
    while kind not in _KINDS:
        kind = ask(f"{column.name!r}: {', '.join(_KINDS)}", column.kind)
    told = "" if kind == column.kind else "as was said"
    column = replace(column, kind=kind, why=told or column.why)
    if kind in ("none", "text", "boolean"):
        return column
    if kind == "category":
        return replace(column, categories=_words(f"categories of {column.name!r}"))
    return replace(column, bounds=_words(f"lowest and highest of {column.name!r}"))
