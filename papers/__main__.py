"""`python -m papers PAPER`: rerun a paper's figures and tables."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn

from dpselect.cli.options import AsJson
from dpselect.cli.terminal import bars, console, plain, print_json, warn
from dpselect.errors import ArgumentError, ContentError
from dpselect.randomness import keyed_source
from papers.table import PAPERS, Context, Paper, Part, Reproduction, paper_named
from papers.written import describe, tables, write

__all__ = ["app"]

_SEED = 2026
_INTERRUPTED = 130  # what shells say of a program that was stopped by Ctrl-C

app = typer.Typer(name="papers", add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"The paper: {', '.join(PAPERS)}.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions and points; at most a minute.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the JSON file and the plots; default: reproduce-PAPER.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Data that you give: mnist=FOLDER with its four files, or mnist=FILE.npz."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rerun the figures and tables of a paper: the paper's value, ours and the optimal one, side by side.

    All draws come from a fixed seed, so a second run gives the same numbers. Exit status 1 if a row does not reproduce
    and nothing explains it. Ctrl-C writes the parts that are done.
    """
    chosen = paper_named(paper)
    folder = Path(f"reproduce-{paper}") if output is None else output
    given = _files(data or [], chosen)
    _prepare(folder)
    done = _run(chosen, quick=quick, files=given, folder=folder)
    if not done.parts:
        warn("interrupted: nothing is written")
        raise typer.Exit(_INTERRUPTED)
    paths = write(done, folder)
    if as_json:
        print_json(describe(done))
    else:
        page = console(width=None if sys.stdout.isatty() else 160)
        page.print(chosen.citation)
        for table in tables(done):
            page.print(table)
        for name, part in done.parts.items():
            for line in part.unspecified:
                page.print(f"{part.source}, {name}: not specified in the paper: {line}")
        page.print(plain(f"{len(done.rows)} rows in {done.seconds:.0f} s; written: {folder} ({len(paths)} files)"))
    if done.missing:
        warn(f"interrupted: {folder} has {len(done.parts)} of {len(chosen.parts)} parts")
        raise typer.Exit(_INTERRUPTED)
    if not done.reproduced:
        raise typer.Exit(1)


def _run(paper: Paper, *, quick: bool, files: dict[str, str], folder: Path) -> Reproduction:
    start = time.perf_counter()
    expected = f" (about {paper.quick_seconds if quick else paper.full_seconds:.0f} s in all)"
    parts: dict[str, Part] = {}
    with bars(sys.stderr, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as shown:
        task = shown.add_task(paper.name, total=len(paper.parts))
        context = Context(
            quick,
            keyed_source(_SEED),
            files,
            lambda what: shown.update(task, description=plain(f"{paper.name}{'' if files else expected}: {what}")),
            folder,
        )
        with suppress(KeyboardInterrupt):  # what is done is shown and written
            for name, part in paper.run(context):
                parts[name] = part
                shown.advance(task)
    return Reproduction(paper=paper, quick=quick, parts=parts, seconds=time.perf_counter() - start)


def _prepare(folder: Path) -> None:
    """Before minutes of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--output: {folder} cannot be made a folder ({error.strerror})") from None
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"--output: {folder} cannot be written to")


def _files(given: list[str], paper: Paper) -> dict[str, str]:
    pairs = [item.partition("=") for item in given]
    if any(not name or not file for name, _, file in pairs):
        raise ArgumentError("--data must be NAME=PATH")
    for name, _, file in pairs:
        if name not in paper.takes:
            raise ArgumentError(f"--data: {paper.name} takes {', '.join(paper.takes) or 'no files'}, not {name}")
        if not Path(file).exists():
            raise ArgumentError(f"--data: {file} does not exist")
        paper.takes[name](file)
    return {name: file for name, _, file in pairs}


def main() -> None:
    """Run the command. An error becomes one line on standard error, and exit status 2 or 1."""
    try:
        app(prog_name="python -m papers")
    except (ArgumentError, ContentError, OSError) as error:
        warn(f"papers: {error}")
        sys.exit(2 if isinstance(error, ArgumentError) else 1)


if __name__ == "__main__":
    main()
