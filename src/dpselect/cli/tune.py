"""`dpselect tune STUDY.toml`: run a study."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.account import JSON_HELP

__all__ = ["tune"]


def _elapsed() -> Callable[[float], None] | None:
    """Show elapsed time on a terminal; nothing else about a search is public while it runs."""
    stream = sys.stderr  # trials run with the standard streams pointed elsewhere
    if not stream.isatty():
        return None

    def show(seconds: float) -> None:
        stream.write(f"\rsearching ... {int(seconds)} s ")
        stream.flush()

    return show


def _counts() -> Callable[[int, int], None]:
    stream = sys.stderr

    def show(done: int, total: int) -> None:
        stream.write(f"\roperator only: {done} of {total} trials ")
        stream.flush()

    return show


def tune(
    study: Annotated[Path, typer.Argument(help="The study file (TOML).")],
    output: Annotated[Path | None, typer.Option(help="Output folder, in place of the study's.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a search that was interrupted.")] = False,
    operator_progress: Annotated[
        bool,
        typer.Option(
            "--operator-progress",
            help="Show trial counts. They reveal the secret number of runs: for the operator's eyes only.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Search privately for the best model and write one release: the model, release.json and report.html."""
    from dpselect.study import load_study, run_study  # scikit-learn takes a second to import

    parsed = load_study(study)
    if operator_progress:
        sys.stderr.write("warning: trial counts are shown; no privacy guarantee covers whoever sees them\n")
    finished = run_study(
        parsed,
        base_folder=study.resolve().parent,
        folder=output,
        resume=resume,
        progress=None if operator_progress else _elapsed(),
        operator_progress=_counts() if operator_progress else None,
    )
    if operator_progress or sys.stderr.isatty():
        sys.stderr.write("\n")
    if finished.key_variable is not None:
        sys.stderr.write(f"drop the environment variable {finished.key_variable} now: it holds the key\n")
    release = finished.release
    if as_json:
        typer.echo(json.dumps(release))
        return
    guarantee = release["guarantee"]
    typer.echo(f"the whole search: epsilon {guarantee['epsilon']:.4g}, delta {guarantee['delta']:g}")
    typer.echo(f"adjacency: {guarantee['adjacency']}")
    if release["found"]:
        chosen = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in release["parameters"].items()
        )
        typer.echo(f"released: {chosen}")
    else:
        typer.echo('released: none ("nothing found" is an outcome like another)')
    typer.echo(f"look at {finished.folder / 'report.html'}")
