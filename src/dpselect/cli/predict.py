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
        typer.Argument(help="The rows: a file as a study takes it (CSV, Parquet, ...), or a database's URL."),
    ],
    to: Annotated[
        Path | None, typer.Option(help="The CSV file to write; without it the predictions go to standard output.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column of the data to write beside the predictions; repeatable.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write the probability of each class too.")
    ] = False,
    module: Annotated[
        str | None,
        typer.Option(help='The function that made a network, such as "my_models:build"; its code is run.'),
    ] = None,
    table: Table = None,
    sheet: Sheet = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
) -> None:
    """Predict with a released model: a CSV file with a row for each row of a table.

    Columns are found by their names, in any order; further ones, such as the label, are left alone.
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
