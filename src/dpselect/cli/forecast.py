"""What `dpselect tune --forecast` prints."""

from __future__ import annotations

from typing import Any

from dpselect.numerics import rounded_up

__all__ = ["forecast_in_words"]


def forecast_in_words(found: dict[str, Any]) -> str:
    """The forecast of a study as a table with what it rests on."""
    measured, loss = found["measured"], found["loss_to_noise"]
    lacks = "not measured" if loss is None else _figures(loss)
    score = "R2" if found["task"] == "regression" else "accuracy"
    lines = [("design", "gain over one run", "releases measured", "")]
    for each in found["designs"]:
        chosen = "this study" if each["design"] == found["design"] else ""
        lines.append((each["design"], _gain(each), str(each["releases"] or ""), chosen))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(
        [
            f"study {found['study']!r}: {found['rows']:.0f} rows at epsilon {rounded_up(found['epsilon'])} and "
            f"delta {rounded_up(found['delta'])} (n mu = {found['signals']:.0f}), "
            f"{found['weights']} weights; no row was read",
            f"in thousandths of {score}, the median and where all but a tenth at either end lie:",
            f"one default run lacks to the same run without noise: {lacks}",
            f"a search for {found['space']}:",
            *rows,
            f"why {found['design']}: {found['why']}",
            f"measured by {measured['made_by']} on {measured['date']}, on {len(measured['tables'])} tables",
            "how hard your table is cannot be known from public facts, so that no score is foretold",
        ]
    )


def _gain(each: dict[str, Any]) -> str:
    if each["median"] is None:
        return "not measured"
    return _figures(each) if each["releases"] else "0"


def _figures(of: dict[str, Any]) -> str:
    low, median, high = (f"{1000 * of[key]:+.0f}" for key in ("low", "median", "high"))
    return f"{median}, {low} to {high}"
