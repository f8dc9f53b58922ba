"""Flags that several commands share, how they are read, and how a result is printed."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import typer

from dpselect.cli.terminal import print_json, say
from dpselect.errors import ArgumentError

__all__ = [
    "WITHHELD",
    "AsJson",
    "Decimal",
    "Delimiter",
    "Encoding",
    "Sheet",
    "SkipRows",
    "Table",
    "Thousands",
    "number_in",
    "print_result",
    "stake_of",
]

WITHHELD: Final = 5
"""The exit status of a release that was paid for and is withheld: too many cells could not be read."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Table = Annotated[str | None, typer.Option(help="The table of a database.")]
Sheet = Annotated[str | None, typer.Option(help="The sheet of an Excel workbook. The default is the first.")]


def _delimiter(text: str) -> str:
    return "\t" if text == r"\t" else text  # as shells pass a tab that is typed so


Delimiter = Annotated[
    str | None,
    typer.Option(
        parser=_delimiter,
        metavar="TEXT",
        help=r"The delimiter of a CSV file, such as ';' or '\t'. The default is a comma.",
    ),
]
Encoding = Annotated[str | None, typer.Option(help="The encoding of a CSV file. The default is UTF-8.")]
Decimal = Annotated[str | None, typer.Option(help='The decimal separator in a CSV file: "." or ",".')]
Thousands = Annotated[str | None, typer.Option(help="The thousands separator in a CSV file. The default is none.")]
SkipRows = Annotated[int | None, typer.Option(help="The number of lines before the header of a CSV file.")]


def number_in(text: str) -> int | float:
    """The number in a text, an integer if possible. Raises `ValueError`."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def stake_of(text: str | None) -> float | Literal["all"] | None:
    """The stake of a question to a gate: a number or "all". Raises `ArgumentError` for anything else."""
    if text is None:
        return None
    try:
        return "all" if text == "all" else float(text)
    except ValueError:
        raise ArgumentError(f'--stake must be a number or "all", got {text[:40]!r}') from None


def print_result(found: Any, as_json: bool, *lines: str) -> None:
    """Print a result: one JSON object, or lines for people."""
    if as_json:
        print_json(found)
    else:
        say(*lines)
