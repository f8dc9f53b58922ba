"""What `dpselect tune --forecast` says, from what was measured: what each design gains over one default run.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.planner FOUND.json [--to src/dpselect/study/forecast.json]
        [--page docs/evidence/better-models.md]

FOUND.json is what `python -m benchmarks.better_models --json FOUND.json` wrote; default runs at epsilon 100 are
measured here and added to it. Cases are sorted by n mu, the public number of rows times the Gaussian differential
privacy parameter of the total, and for one run by n mu over the number of weights; of each group stand the median, the
lowest tenth and the highest tenth of single releases, where two tables or more are in it. Tables that are held out
take no part in that, and say how good it is.
"""

from __future__ import annotations

import argparse
import datetime
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.better_models import (
    DEFAULT,
    FOR_MAPS,
    FOR_RATES,
    by_default,
    measure,
    state_of_its_own,
    without_reports,
    written,
)
from benchmarks.cases import DELTA, Case
from benchmarks.model_tables import ModelTable, tables
from dpselect.accounting import calibrate
from dpselect.privacy import gaussian
from dpselect.searching.design import design_names
from dpselect.study.forecast import SIGNALS, SIGNALS_A_WEIGHT

HELD_OUT: Final = ("waves", "orders", "rents")
WITHOUT_NOISE: Final = "by default, hardly private"
LARGE: Final = 100.0
SEEDS: Final = 3
EARLY: Final = 5
"""Splits of the tables learnt by which the others are foretold, as a check."""
LOSS: Final = "what noise costs one run"
LEAST: Final = 0.005
"""Smaller differences are noise of what was measured."""
FIRST: Final = "<!-- measured: python -m benchmarks.planner -->"


def signals(table: ModelTable, epsilon: float) -> float:
    """n mu of a study of four fifths of a table."""
    noise = calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=epsilon, delta=DELTA)
    return 0.8 * len(table.answers) / noise


def weights(table: ModelTable) -> int:
    """Numbers of a linear model of the encoded columns."""
    return int(table.encoded.shape[1] * (1 if table.regression else len(table.facts["classes"])))


def with_baselines(found: list[dict[str, Any]], named: list[ModelTable]) -> list[dict[str, Any]]:
    """What was found, and default runs with next to no noise where there are none yet."""
    known = {(each["table"], each["way"], each["seed"]) for each in found}
    with without_reports(), state_of_its_own():
        return found + [
            measure(Case(table, LARGE, seed, Path()), WITHOUT_NOISE, by_default)
            for table in named
            for seed in range(SEEDS)
            if (table.name, WITHOUT_NOISE, seed) not in known
        ]


def gains(found: list[dict[str, Any]], table: ModelTable) -> Iterator[tuple[str, str, float, float]]:
    """The design, the kind of space, n mu, and the gain over a default run on the same split, of each release."""
    scores = {
        (e["way"], e["epsilon"], e["seed"]): e["score"] for e in found if e["table"] == table.name and "score" in e
    }
    for (way, epsilon, seed), score in scores.items():
        for kind, start in (("maps", FOR_MAPS), ("rates", FOR_RATES)):
            design = way.removeprefix(start)
            if way.startswith(start) and design in design_names() and (DEFAULT, epsilon, seed) in scores:
                yield design, kind, signals(table, epsilon), score - scores[DEFAULT, epsilon, seed]


def losses(found: list[dict[str, Any]], table: ModelTable) -> Iterator[tuple[float, float]]:
    """n mu a weight, and what a default run lacks to one without noise on the same split."""
    scores = {
        (e["way"], e["epsilon"], e["seed"]): e["score"] for e in found if e["table"] == table.name and "score" in e
    }
    for (way, epsilon, seed), score in scores.items():
        if way == DEFAULT and (WITHOUT_NOISE, LARGE, seed) in scores:
            yield signals(table, epsilon) / weights(table), scores[WITHOUT_NOISE, LARGE, seed] - score


def task_of(table: ModelTable) -> str:
    return "regression" if table.regression else "classification"


def group(value: float, ends: tuple[float, ...]) -> int:
    return int(np.searchsorted(ends, value, side="right"))


def fitted(found: list[dict[str, Any]], named: list[ModelTable]) -> dict[str, Any]:
    """The table that is shipped: what was seen on two tables or more."""
    lacks: dict[tuple[str, int], dict[str, list[float]]] = {}
    won: dict[tuple[str, str, str, int], dict[str, list[float]]] = {}
    for table in named:
        for ratio, loss in losses(found, table):
            key = task_of(table), group(ratio, SIGNALS_A_WEIGHT)
            lacks.setdefault(key, {}).setdefault(table.name, []).append(loss)
        for design, kind, size, gain in gains(found, table):
            place = task_of(table), design, kind, group(size, SIGNALS)
            won.setdefault(place, {}).setdefault(table.name, []).append(gain)
    return {
        "made_by": "python -m benchmarks.planner",
        "date": datetime.date.today().isoformat(),
        "tables": [table.name for table in named],
        "losses": [
            {"task": task, "group": place, **summary(values)}
            for (task, place), values in sorted(lacks.items())
            if len(values) > 1
        ],
        "gains": [
            {"task": task, "design": design, "space": kind, "group": place, **summary(values)}
            for (task, design, kind, place), values in sorted(won.items())
            if len(values) > 1
        ],
    }


def summary(by_table: dict[str, list[float]]) -> dict[str, Any]:
    values = [value for each in by_table.values() for value in each]
    low, median, high = (round(float(np.quantile(values, q)), 3) + 0.0 for q in (0.1, 0.5, 0.9))
    return {
        "median": median,
        "low": min(low, median - LEAST),
        "high": max(high, median + LEAST),
        "releases": len(values),
        "tables": len(by_table),
    }


def held_out(found: list[dict[str, Any]], named: list[ModelTable], shipped: dict[str, Any]) -> Iterator[str]:
    """The check: of tables that took no part, what was said and what came, in thousandths."""
    said = {(each["task"], f"{each['design']}, for {each['space']}", each["group"]): each for each in shipped["gains"]}
    said |= {(each["task"], LOSS, each["group"]): each for each in shipped["losses"]}
    yield "| table | what | group | said: median, lowest and highest tenth | came: median | within |"
    yield "|---|---|---|---|---|---|"
    for table in named:
        came: dict[tuple[str, int], list[float]] = {}
        for design, kind, size, gain in gains(found, table):
            came.setdefault((f"{design}, for {kind}", group(size, SIGNALS)), []).append(1000 * gain)
        for ratio, loss in losses(found, table):
            came.setdefault((LOSS, group(ratio, SIGNALS_A_WEIGHT)), []).append(1000 * loss)
        for (what, place), values in sorted(came.items()):
            if (task_of(table), what, place) in said:
                low, median, high = (1000 * said[task_of(table), what, place][key] for key in ("low", "median", "high"))
                inside = sum(low - 1e-6 <= value <= high + 1e-6 for value in values)
                measure_of, ends = ("n mu a weight", SIGNALS_A_WEIGHT) if what == LOSS else ("n mu", SIGNALS)
                yield (
                    f"| {table.name} | {what} | {measure_of} {interval(place, ends)} | {median:+.0f}, {low:+.0f} to "
                    f"{high:+.0f} | {np.median(values):+.0f} | {inside} of {len(values)} |"
                )


def within(found: list[dict[str, Any]], named: list[ModelTable], shipped: dict[str, Any]) -> str:
    """How many releases of these tables came to lie where `shipped` says, by task."""
    told = []
    for task in ("classification", "regression"):
        lines = list(held_out(found, [table for table in named if task_of(table) == task], shipped))[2:]
        counts = [list(map(int, line.split("|")[-2].split(" of "))) for line in lines]
        told.append(f"{sum(inside for inside, _ in counts)} of {sum(count for _, count in counts)} of {task}s")
    return ", ".join(told)


def interval(place: int, ends: tuple[float, ...]) -> str:
    low = ends[place - 1] if place else 0.0
    return f"from {low:g}" if place == len(ends) else f"{low:g} to {ends[place]:g}"


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what is lacking, fit, check, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("found", type=Path)
    parser.add_argument("--to", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--adult", type=Path, help="the file of Adult, where FOUND.json has it")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = json.loads(asked.found.read_text(encoding="utf-8"))
    names = {each["table"] for each in found}
    named = [table for table in tables(asked.adult) if table.name in names]
    found = with_baselines(found, named)
    asked.found.write_text(json.dumps(found), encoding="utf-8")
    learnt = [table for table in named if not table.name.startswith(HELD_OUT)]
    shipped = fitted(found, learnt)
    lines = list(held_out(found, [table for table in named if table not in learnt], shipped))
    print(json.dumps(shipped, indent=1), *lines, sep="\n")
    print("within, of the tables held out:", within(found, [table for table in named if table not in learnt], shipped))
    early, late = ([each for each in found if (each["seed"] < EARLY) == first] for first in (True, False))
    print("within, of the tables learnt, late splits by early ones:", within(late, learnt, fitted(early, learnt)))
    if asked.to is not None:
        asked.to.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")
    if asked.page is not None:
        page = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(written(page, lines, first=FIRST), encoding="utf-8")
    return shipped


if __name__ == "__main__":
    main()
