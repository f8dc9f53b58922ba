"""`dpselect predict MODEL DATA`: what a released model says of the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.options import Decimal, Delimiter, Encoding, Sheet, SkipRows, Table, Thousands
from dpselect.cli.terminal import say, write_data
from dpselect.errors import ArgumentError

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="The model.npz of a release.")],
    data: Annotated[
        str,
        typer.Argument(help="The rows: a file (CSV, Parquet, ...) or the URL of a database."),
    ],
    to: Annotated[
        Path | None, typer.Option(help="The CSV file to write. By default the predictions go to standard output.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column to copy to the output, such as an id. Repeat it for several columns."),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also write the probability of each class.")
    ] = False,
    module: Annotated[
        str | None,
        typer.Option(help='The function that builds your network, such as "my_models:build". Its code is run.'),
    ] = None,
    table: Table = None,
    sheet: Sheet = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
) -> None:
    """Predict with a released model. Write a CSV file with one prediction for each row of your table.

    Columns are found by their names, in any order. Other columns, such as the label, are ignored.
    """
    from dpselect.storage.durable import write_atomically
    from dpselect.study.predict import predict_table
    from dpselect.tables import Written

    if to is not None and to.resolve() == Path(data).resolve():
        raise ArgumentError("--to: would be written over the data")
    form = Written(delimiter, encoding, decimal, thousands, skip_rows, table, sheet)
    text = predict_table(model, data, form=form, keep=keep or (), probabilities=probabilities, module=module)
    if to is None:
        write_data(text)
        return
    try:
        write_atomically(to, text.encode())
    except OSError as error:
        raise ArgumentError(f"--to: {str(to)!r} cannot be written: {error.strerror}") from None
    say(f"wrote {to}")
