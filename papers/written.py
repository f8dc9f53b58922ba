"""A reproduction on paper: a table for the terminal, a JSON and a Markdown file, and one image a figure."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from papers.table import Curve, Figure, Reproduction, Row

__all__ = ["describe", "markdown", "tables", "write"]

_MARKS: Final = {"printed": "", "formula": " (f)", "claim": " (c)"}


def describe(done: Reproduction) -> dict[str, Any]:
    """JSON-able: every row, every figure's data, what the paper leaves open."""
    return {
        "paper": done.paper.name,
        "citation": done.paper.citation,
        "mode": "quick" if done.quick else "full",
        "seconds": round(done.seconds, 1),
        "reproduced": done.reproduced,
        "missing": list(done.missing),
        "parts": {
            name: {
                "source": part.source,
                "rows": [row.describe() for row in part.rows],
                "unspecified": list(part.unspecified),
                "figures": {
                    figure.name: {
                        "title": figure.title,
                        "x": figure.x_label,
                        "y": figure.y_label,
                        "curves": [_curve_data(curve) for curve in figure.curves],
                    }
                    for figure in part.figures
                },
            }
            for name, part in done.parts.items()
        },
    }


def tables(done: Reproduction) -> list[Table]:
    """One table a part; "(f)" marks a paper's value computed from its formula, "(c)" a claim of its text."""
    return [_table(f"{part.source}: {name}", part.rows) for name, part in done.parts.items() if part.rows]


def write(done: Reproduction, folder: Path) -> list[Path]:
    """Write `PAPER.json`, `PAPER.md` and one SVG a figure into the folder, which is made if need be; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    where = folder / f"{done.paper.name}.json"
    where.write_text(json.dumps(describe(done), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    page = folder / f"{done.paper.name}.md"
    page.write_text(markdown(done), encoding="utf-8")
    images = [
        _draw(figure, folder / f"{done.paper.name}-{figure.name}.svg")
        for part in done.parts.values()
        for figure in part.figures
    ]
    return [where, page, *images]


def markdown(done: Reproduction) -> str:
    """The tables as a page; no seconds in it, so that a second run gives the same page."""
    quick = " --quick" if done.quick else ""
    lines = [
        f"# {done.paper.name}",
        "",
        done.paper.citation,
        "",
        f"Made by `python -m papers {done.paper.name}{quick}`.",
    ]
    if done.missing:
        lines += ["", f"Interrupted: {', '.join(done.missing)} not done."]
    for name, part in done.parts.items():
        lines += [
            "",
            f"## {part.source}: {name}",
            "",
            "| | paper | ours | optimal | tolerance | verdict |",
            "|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in _cells(row)) + " |" for row in part.rows]
        if part.unspecified:
            lines += ["", *(f"- Not specified in the paper: {line}." for line in part.unspecified)]
    return "\n".join(lines) + "\n"


def _table(title: str, rows: tuple[Row, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("", "paper", "ours", "optimal", "tolerance", "verdict"):
        table.add_column(name, justify="left" if name in ("", "verdict") else "right")
    for row in rows:
        table.add_row(*map(escape, _cells(row)))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    verdict = f"{row.verdict}: {row.remark}" if row.remark else row.verdict
    paper, tolerance = "-", "-"
    if row.paper is not None:
        bound = "" if row.relation == "=" else f"{row.relation} "
        paper = f"{bound}{_shown(row.paper)}{_MARKS[row.known]}"
        tolerance = f"{row.tolerance:.2g}"
    return row.name, paper, _shown(row.ours), _shown(row.optimal), tolerance, verdict


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _curve_data(curve: Curve) -> dict[str, Any]:
    numbers = {"x": curve.x, "y": curve.y} | ({} if curve.band is None else {"band": curve.band})
    finite = {name: [v if math.isfinite(v) else None for v in values] for name, values in numbers.items()}
    return {"label": curve.label, **finite}


def _draw(figure: Figure, path: Path) -> Path:
    from matplotlib.ticker import LogFormatter  # takes a second to import; needs no display

    from dpselect.report.plots import plotting, save_plot

    with plotting() as axes:
        axes.set(
            title=figure.title,
            xlabel=figure.x_label,
            ylabel=figure.y_label,
            xscale="log" if figure.log_x else "linear",
            yscale="log" if figure.log_y else "linear",
        )
        for axis, scaled in ((axes.xaxis, figure.log_x), (axes.yaxis, figure.log_y)):
            if scaled:  # 2, 4, 10 instead of powers, which run into each other within a decade
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.4)))
        for curve in figure.curves:
            (line,) = axes.plot(curve.x, curve.y, curve.style, label=curve.label)
            if curve.band is not None:
                low = [y - half for y, half in zip(curve.y, curve.band, strict=True)]
                high = [y + half for y, half in zip(curve.y, curve.band, strict=True)]
                axes.fill_between(curve.x, low, high, alpha=0.2, color=line.get_color())
        axes.legend(fontsize="x-small" if len(figure.curves) > 8 else "small")
        save_plot(axes, path)
    return path
