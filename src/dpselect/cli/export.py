"""`dpselect export MODEL --to FILE`: a released model for scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.terminal import say

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="The model.npz of a release.")],
    to: Annotated[Path, typer.Option(help="The file to write: .joblib, a fitted estimator of scikit-learn.")],
) -> None:
    """Export a released model: a file that joblib loads as a fitted estimator of scikit-learn.

    It predicts what the released model predicts, and loads only where dpselect is installed. Loading a joblib file runs
    code that is in it: load your own.
    """
    from dpselect.study import export_model

    export_model(model, to)
    say(f"wrote {to}")
