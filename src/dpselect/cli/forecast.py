"""What `dpselect tune --forecast` prints."""

from __future__ import annotations

from typing import Any

__all__ = ["forecast_in_words"]


def forecast_in_words(found: dict[str, Any]) -> str:
    """The forecast of a study as a table with what it rests on; gains in thousandths of accuracy or of R2."""
    measured, loss = found["measured"], found["loss_to_noise"]
    cost = "not measured" if loss is None else f"{_thousandths(loss['mean'])} ± {1000 * loss['spread']:.0f}"
    score = "R2" if found["task"] == "regression" else "accuracy"
    lines = [("design", f"gain over one run, in thousandths of {score}", "releases measured", "")]
    for each in found["designs"]:
        chosen = "this study" if each["design"] == found["design"] else ""
        lines.append((each["design"], _gain(each), str(each["releases"] or ""), chosen))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        [
            f"study {found['study']!r}: {found['rows']:.0f} rows at epsilon {found['epsilon']:g} and delta "
            f"{found['delta']:g} (n mu = {found['signals']:.0f}), {found['weights']} weights; no row was read",
            f"one default run lacks to the same run without noise, in thousandths of {score}: {cost}",
            f"a search for {found['space']}:",
            *(
                "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                for line in lines
            ),
            f"why {found['design']}: {found['why']}",
            f"measured by {measured['made_by']} on {measured['date']}, on {len(measured['tables'])} tables: mean and "
            "standard deviation of single releases",
            "how hard your table is cannot be known from public facts, so that no score is foretold",
        ]
    )


def _gain(each: dict[str, Any]) -> str:
    if each["gain"] is None:
        return "not measured"
    return f"{_thousandths(each['gain'])} ± {1000 * each['spread']:.0f}" if each["releases"] else "0"


def _thousandths(value: float) -> str:
    return f"{1000 * value:+.0f}"
