"""A page whose source is the fenced block `{notebook} NAME` shows examples/NAME.py: its words, its code, and what each
cell prints and draws.

Scripts in the percent format (`# %%`) are run by the build, once, in quick mode and in a folder of their own. The page
offers the same as a Jupyter notebook.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import plots
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r"^```\{notebook\} (\w+)\n```\s*$")
MARK = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """Words or code; of code what was printed, and figures as SVG."""

    is_code: bool
    text: str
    printed: str = ""
    figures: list[str] = field(default_factory=list)


def cells(text: str) -> Iterator[Cell]:
    """The cells of a script, not run."""
    _, *parts = MARK.split(text)
    for words, body in zip(parts[::2], parts[1::2], strict=True):
        yield Cell(not words, (re.sub(r"^# ?", "", body, flags=re.MULTILINE) if words else body).strip())


@cache
def run(script: Path) -> list[Cell]:
    """All cells of a script, run one after the other as `python SCRIPT --quick` would; what goes wrong is raised."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    shown, before = plt.show, (sys.argv, dict(os.environ), Path.cwd())
    found = []
    logging.disable(logging.INFO)
    try:
        with tempfile.TemporaryDirectory() as folder, mpl.rc_context(plots.STYLE):
            os.chdir(folder)
            os.environ["XDG_STATE_HOME"], sys.argv = folder, [str(script), "--quick"]
            for cell in cells(script.read_text(encoding="utf-8")):
                printed, figures = io.StringIO(), []
                plt.show = lambda figures=figures: figures.append(svg())
                if cell.is_code:
                    with contextlib.redirect_stdout(printed):
                        exec(compile(cell.text, str(script), "exec"), names)
                found.append(Cell(cell.is_code, cell.text, printed.getvalue().rstrip(), figures))
            os.chdir(before[2])
    finally:
        logging.disable(logging.NOTSET)
        plt.show, sys.argv = shown, before[0]
        os.chdir(before[2])
        os.environ.clear()
        os.environ.update(before[1])
        plt.close("all")
    return found


def svg() -> str:
    """The current figure, which is closed."""
    import matplotlib.pyplot as plt

    text = io.StringIO()
    plt.savefig(text, format="svg", metadata={"Date": None})
    plt.close("all")
    return text.getvalue()


def figures(script: Path) -> Iterator[tuple[str, str]]:
    """Each figure, and the words of the cell before it, which say what it shows."""
    words = ""
    for cell in run(script):
        words = words if cell.is_code else cell.text.split("\n\n")[-1]
        yield from ((each, " ".join(words.split())) for each in cell.figures)


def markdown(script: Path) -> Iterator[str]:
    """The parts of the page."""
    shown = figures(script)
    for place, cell in enumerate(run(script)):
        if not cell.is_code:
            title, _, rest = cell.text.partition("\n")
            yield title
            if not place:
                yield f"```{{raw}} html\n{downloads(script)}\n```"
            yield rest
            continue
        yield f"```python\n{cell.text}\n```"
        if cell.printed:
            yield f"```{{code-block}} none\n:class: printed\n\n{cell.printed}\n```"
        for _ in cell.figures:
            figure, words = next(shown)
            yield f"```{{raw}} html\n{plots.embedded(figure, words).astext()}\n```"


def downloads(script: Path) -> str:
    """The line below the title."""
    name = script.stem
    return (
        f'<p class="evidence">The script <a href="../source/examples/{name}.html">examples/{name}.py</a>, run in quick '
        f'mode when this site was built; <a href="{name}.ipynb" download>as a Jupyter notebook</a>.</p>'
    )


def jupyter(script: Path) -> dict[str, Any]:
    """The notebook in the format of Jupyter, version 4.5."""

    def cell(number: int, one: Cell) -> dict[str, Any]:
        made: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": one.text}
        if not one.is_code:
            return {"cell_type": "markdown", **made}
        outputs: list[dict[str, Any]] = []
        if one.printed:
            outputs += [{"output_type": "stream", "name": "stdout", "text": one.printed + "\n"}]
        outputs += [
            {"output_type": "display_data", "data": {"image/svg+xml": each}, "metadata": {}} for each in one.figures
        ]
        return {"cell_type": "code", "execution_count": None, "outputs": outputs, **made}

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": [cell(number, each) for number, each in enumerate(run(script))],
    }


def expand(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the notebook in the place of the block."""
    asked = PAGE.match(source[0])
    if asked is None:
        return
    script = ROOT / "examples" / f"{asked[1]}.py"
    app.env.note_dependency(str(script))
    app.env.__dict__.setdefault("dpselect_sources", set()).add(f"examples/{script.name}")
    app.env.__dict__.setdefault("dpselect_notebooks", {})[page] = json.dumps(jupyter(script), indent=1)
    source[0] = "\n\n".join(markdown(script)) + "\n"


def write(app: Sphinx, error: Exception | None) -> None:
    """Put the notebooks beside their pages."""
    if error is None and app.builder.format == "html":
        for page, text in getattr(app.env, "dpselect_notebooks", {}).items():
            (Path(app.outdir) / f"{page}.ipynb").write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.setup_extension("source_pages")
    app.connect("source-read", expand)
    app.connect("build-finished", write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
