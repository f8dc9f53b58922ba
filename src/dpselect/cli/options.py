"""Flags that several commands share."""

from typing import Annotated

import typer

__all__ = ["AsJson", "Decimal", "Delimiter", "Encoding", "Table"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Table = Annotated[str | None, typer.Option(help="The table of a database.")]
Delimiter = Annotated[str | None, typer.Option(help="Of a CSV file; by default a comma.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV file; by default UTF-8.")]
Decimal = Annotated[str | None, typer.Option(help='Of numbers in a CSV file: "." or ",".')]
