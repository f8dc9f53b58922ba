"""`dpselect report FOLDER`: make the page of a release again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.options import AsJson, print_result

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(help="The output folder of `dpselect tune`.")],
    output: Annotated[Path | None, typer.Option(help="Write only the report, to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html and model-card.md again from a release. Read no private row and spend nothing."""
    from dpselect.study.write import remake_report  # scikit-learn takes a second to import

    place = remake_report(folder, output)
    print_result({"report": str(place)}, as_json, f"look at {place}")
