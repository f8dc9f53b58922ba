"""A reproduction on paper: a table for the terminal, a JSON file, and one image a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from dpselect.reproduce.table import Figure, Reproduction

__all__ = ["describe", "tables", "write"]


def describe(done: Reproduction) -> dict[str, Any]:
    """JSON-able: every row, every figure's data, what the paper leaves open."""
    return {
        "paper": done.paper.name,
        "citation": done.paper.citation,
        "mode": "quick" if done.quick else "full",
        "seconds": round(done.seconds, 1),
        "reproduced": done.reproduced,
        "parts": {
            name: {
                "source": part.source,
                "rows": [row.describe() for row in part.rows],
                "unspecified": list(part.unspecified),
                "figures": {figure.name: _figure_data(figure) for figure in part.figures},
            }
            for name, part in done.parts.items()
        },
    }


def tables(done: Reproduction) -> list[Table]:
    """One table a part."""
    return [_table(f"{part.source}: {name}", part.rows) for name, part in done.parts.items() if part.rows]


def write(done: Reproduction, folder: Path) -> list[Path]:
    """Write `PAPER.json` and one SVG a figure into the folder, which is made if need be; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    where = folder / f"{done.paper.name}.json"
    where.write_text(json.dumps(describe(done), indent=1) + "\n", encoding="utf-8")
    images = [
        _draw(figure, folder / f"{done.paper.name}-{figure.name}.svg")
        for part in done.parts.values()
        for figure in part.figures
    ]
    return [where, *images]


def _table(title: str, rows: Any) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("", "paper", "ours", "optimal", "verdict"):
        table.add_column(name, justify="left" if name in ("", "verdict") else "right")
    for row in rows:
        verdict = f"{row.verdict}: {row.note}" if row.note else row.verdict
        table.add_row(row.name, _shown(row.paper), _shown(row.ours), _shown(row.optimal), verdict)
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _figure_data(figure: Figure) -> dict[str, Any]:
    return {
        "title": figure.title,
        "x": figure.x_label,
        "y": figure.y_label,
        "curves": [{"label": curve.label, "x": list(curve.x), "y": list(curve.y)} for curve in figure.curves],
    }


def _draw(figure: Figure, path: Path) -> Path:
    from matplotlib.figure import Figure as Canvas  # takes a second to import; needs no display

    canvas = Canvas(figsize=(6.4, 4.2), layout="constrained")
    axes = canvas.add_subplot(
        title=figure.title,
        xlabel=figure.x_label,
        ylabel=figure.y_label,
        xscale="log" if figure.log_x else "linear",
        yscale="log" if figure.log_y else "linear",
    )
    for curve in figure.curves:
        axes.plot(curve.x, curve.y, curve.style, label=curve.label)
        if curve.band is not None:
            low = [y - half for y, half in zip(curve.y, curve.band, strict=True)]
            high = [y + half for y, half in zip(curve.y, curve.band, strict=True)]
            axes.fill_between(curve.x, low, high, alpha=0.2)
    axes.grid(alpha=0.3)
    axes.legend()
    canvas.savefig(path)
    return path
