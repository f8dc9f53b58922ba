"""`dpselect report FOLDER`: make the page of a release again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.options import AsJson, print_result

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a release, as `dpselect tune` wrote it.")],
    output: Annotated[
        Path | None, typer.Option(help="Write the page alone, and here, not to report.html there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make report.html and model-card.md again, from what was released: no data are read, nothing is spent."""
    from dpselect.study.write import remake_report  # scikit-learn takes a second to import

    place = remake_report(folder, output)
    print_result({"report": str(place)}, as_json, f"look at {place}")
