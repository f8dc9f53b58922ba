"""`dpselect export MODEL --to FILE`: a released model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.terminal import say

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="The model.npz of a release.")],
    to: Annotated[
        Path, typer.Option(help="The file to write: .onnx for any ONNX runtime, or .joblib for scikit-learn.")
    ],
) -> None:
    """Export a released model for other programs.

    You can use a .onnx file without dpselect: any ONNX runtime computes the same labels. To write one, install the
    extra `onnx`.

    A .joblib file is a fitted scikit-learn estimator. To load it, install dpselect. Loading a joblib file runs code
    that is in it, so load only your own.
    """
    from dpselect.study import export_model

    export_model(model, to)
    say(f"wrote {to}")
