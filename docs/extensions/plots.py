"""A fenced block `{plot}` holds Python that draws with matplotlib; the site shows the figure, other readers the code.

It runs in the folder of the project. The option `code` adds the code below the figure, folded.
The first argument is the text that stands for the figure where it cannot be seen. Figures are SVG, the same in every
build, and readable on a light and on a dark page: no background, and text in a grey between the two.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from html import escape
from pathlib import Path
from typing import ClassVar

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
GREY = "#7a7a7a"
STYLE = {
    "svg.hashsalt": "dpselect",
    "savefig.transparent": True,
    "figure.figsize": (6.0, 3.4),
    "figure.constrained_layout.use": True,
    "legend.framealpha": 0.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "lines.linewidth": 2.0,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "legend.labelcolor"), GREY
    ),
}


def drawn(env: BuildEnvironment, code: str, file: str, shown: str) -> nodes.raw:
    """Run code that draws, and show its current figure; what goes wrong is raised."""
    name = hashlib.sha256(code.encode()).hexdigest()[:16] + ".svg"
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, file, "exec"), {"__name__": "plot", "__file__": file})
            return shown_figure(env, name, shown)
        finally:
            plt.close("all")


def shown_figure(env: BuildEnvironment, name: str, shown: str) -> nodes.raw:
    """Save the current figure under a name, beside the pages."""
    import matplotlib.pyplot as plt

    folder = Path(env.app.doctreedir) / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    plt.savefig(folder / name, metadata={"Date": None})
    env.dpselect_plots = {*getattr(env, "dpselect_plots", ()), name}
    # html copies the folder; an image node would need the file inside the sources
    up = "../" * env.docname.count("/")
    html = f'<figure class="plot"><img src="{up}_plots/{name}" alt="{escape(" ".join(shown.split()))}"></figure>'
    return nodes.raw("", html, format="html")


def embedded(svg: str, shown: str) -> nodes.raw:
    """An SVG in the page itself."""
    figure = f'<figure class="plot" role="img" aria-label="{escape(shown)}">{svg[svg.index("<svg") :].strip()}</figure>'
    return nodes.raw("", figure, format="html")


class Plot(SphinxDirective):
    """Run the block, save the current figure."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"code": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The figure, or an error that names the block."""
        code = "\n".join(self.content)
        try:
            with contextlib.chdir(ROOT):
                figure = drawn(self.env, code, self.env.docname, self.arguments[0])
        except Exception as error:
            return [self.state.document.reporter.error(f"this plot cannot be drawn: {error!r}", line=self.lineno)]
        return [figure, *folded(code)] if "code" in self.options else [figure]


def folded(code: str) -> list[nodes.Node]:
    """Code that is shown on demand."""
    begin, end = "<details><summary>The code</summary>", "</details>"
    block = nodes.literal_block(code, code, language="python")
    return [nodes.raw("", begin, format="html"), block, nodes.raw("", end, format="html")]


def copy(app: Sphinx, error: Exception | None) -> None:
    """Put the figures beside the pages."""
    if error is None:
        target = Path(app.outdir) / "_plots"
        target.mkdir(exist_ok=True)
        for name in getattr(app.env, "dpselect_plots", ()):
            (target / name).write_bytes((Path(app.doctreedir) / "plots" / name).read_bytes())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.add_directive("plot", Plot)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
