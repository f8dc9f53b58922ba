"""A fenced block `{plot}` holds Python that draws with matplotlib; the site shows the figure, other readers the code.

The first argument is the text that stands for the figure where it cannot be seen. Figures are SVG and the same in
every build.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import matplotlib as mpl
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

STYLE = {
    "svg.hashsalt": "dpselect",
    "figure.figsize": (7.0, 3.6),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


class Plot(SphinxDirective):
    """Run the block, save the current figure."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The figure, or an error that names the block."""
        code = "\n".join(self.content)
        name = hashlib.sha256(code.encode()).hexdigest()[:16] + ".svg"
        folder = Path(self.env.app.doctreedir) / "plots"
        folder.mkdir(parents=True, exist_ok=True)
        mpl.use("Agg")
        import matplotlib.pyplot as plt

        with mpl.rc_context(STYLE):
            try:
                exec(compile(code, self.env.docname, "exec"), {"__name__": "plot"})
                plt.savefig(folder / name, metadata={"Date": None})
            except Exception as error:
                return [self.state.document.reporter.error(f"this plot cannot be drawn: {error!r}", line=self.lineno)]
            finally:
                plt.close("all")
        up = "../" * self.env.docname.count("/")
        self.env.dpselect_plots = {*getattr(self.env, "dpselect_plots", ()), name}
        # html copies the folder below; an image node would need the file inside the sources
        html = f'<figure><img src="{up}_plots/{name}" alt="{self.arguments[0]}" style="max-width:100%"></figure>'
        return [nodes.raw("", html, format="html")]


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
