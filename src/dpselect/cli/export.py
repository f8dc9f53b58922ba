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

    A .onnx file needs no dpselect where it is used: any ONNX runtime computes the labels that dpselect predicts. To
    write one needs the extra `onnx`.

    A .joblib file is a fitted estimator of scikit-learn. It loads only where dpselect is installed. Loading a joblib
    file runs code that is in it, so load your own only.
    """
    from dpselect.study import export_model

    export_model(model, to)
    say(f"wrote {to}")
