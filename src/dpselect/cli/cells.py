"""Words for the cells of a column that an answer is from."""

from __future__ import annotations

from typing import Any, Final

from dpselect.ordered.order_statistics.cell_counts import CellCounts, CountedCells

__all__ = ["UNCOUNTED", "cells_in_words", "described_cells", "withheld_in_words"]

UNCOUNTED: Final = "if every cell can be read as declared"
"""The condition of what is said of an answer, if nothing counts the cells."""


def described_cells(counts: CellCounts, found: CountedCells) -> dict[str, Any]:
    """The counts, JSON-able. None is below 0."""
    held = {name: max(0, count) for name, count in found._asdict().items()}
    return {**held, "margin_95": counts.margin(), "epsilon": counts.epsilon}


def cells_in_words(cells: dict[str, Any] | None, *, possible: tuple[bool, ...] = ()) -> str:
    """One line for people."""
    if cells is None:
        return f'"95 % sure" holds {UNCOUNTED}: --no-count has not counted the cells'
    numbers = possible[1]  # categories have no bounds
    words = {
        "inside": "within the bounds" if numbers else "one of the categories",
        "below": "below and clipped",
        "above": "above and clipped",
        "missing": "missing",
        "unreadable": "unreadable" if numbers else "none of the categories",
    }
    shown = ", ".join(f"{cells[name]} {word}" for (name, word), can in zip(words.items(), possible, strict=True) if can)
    return f"cells: {shown} (each count off by at most {cells['margin_95']}, 95 % sure)"


def withheld_in_words(column: str, most: float, *, categories: bool, csv: bool) -> str:
    """Why an answer is not shown, and what would help."""
    if categories:
        cure = "give every --category as the column writes it"
    elif csv:
        cure = (
            "declare how the cells are written (--decimal, --thousands, --kind, --format, --true-value or --category)"
        )
    else:
        cure = "store such cells as nulls, cast the column in a view, or declare --kind (SQLite, JSON lines, Excel)"
    what = "none of the categories" if categories else "not what the column is declared to hold"
    return (
        f"withheld: more than {100 * most:g} % of the cells of column {column!r} that hold something are {what}, so no "
        f"answer was drawn; {cure}, or raise --most-unreadable. The whole price is charged"
    )
