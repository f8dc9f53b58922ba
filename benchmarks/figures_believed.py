"""How wide the figures of a released model are, and how often their intervals hold the truth.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.figures_believed [--redraws 300] [--only TABLE ...] [--json FILE]

A table of `benchmarks/real_tables.py` is the whole population here. Each redraw takes 5,000 of its rows with
replacement, as independent people, and runs a study on them that keeps a fifth for the figures: 1,000 rows, at epsilon
3. The truth is the released model's score on the whole table, so it has no error of its own. For each figure of
`release.json` there is

- coverage: the fraction of redraws whose interval holds the truth. It should be at least .95;
- width: the mean width of the interval, and its ratio to the plain one. The plain width is that of the central 95 % of
  the same score over 1,000 rows, without privacy. At most 2.5 times is the aim.

What is measured is in FILE at once, and is not measured again. A redraw takes about half a second.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.better_models import state_of_its_own, without_reports
from benchmarks.cases import DELTA
from benchmarks.model_tables import Array, ModelTable
from benchmarks.real_tables import real_tables
from dpselect.errors import StudyError
from dpselect.randomness import keyed_source
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.metrics import METRICS as KNOWN

TABLES = (
    *("Bikeshare", "Wage", "diamonds", "flights", "hotel", "wages 1988"),
    *("titanic", "churn", "credit", "staff"),
)
EPSILON = 3.0
ROWS, KEPT = 5000, 1000
PLAIN_REDRAWS, PLAIN_DRAWS = 3, 400
"""How many redraws find the plain width, each from so many samples."""
METRICS: Mapping[bool, Sequence[str]] = {
    False: ("accuracy", "balanced-accuracy"),
    True: ("absolute-error", "r2", "median-error"),
}
"""Of classes and of numbers; a study names one of them."""

Scores = Callable[[Array, Array], float]


def balanced_accuracy(answers: Array, found: Array) -> float:
    return float(np.mean([np.mean(found[answers == one] == one) for one in np.unique(answers)]))


def r2(answers: Array, found: Array) -> float:
    return float(1 - np.mean((found - answers) ** 2) / np.var(answers))


def error_quantile(share: float) -> Scores:
    return lambda answers, found: float(np.quantile(np.abs(found - answers), share, method="inverted_cdf"))


SCORES: Mapping[str, Scores] = {
    "accuracy": lambda answers, found: float(np.mean(answers == found)),
    "balanced-accuracy": balanced_accuracy,
    "absolute-error": lambda answers, found: float(np.mean(np.abs(found - answers))),
    "squared-error": lambda answers, found: float(np.mean((found - answers) ** 2)),
    "r2": r2,
    "median-error": error_quantile(0.5),
    "90%-error": error_quantile(0.9),
}
"""By the name of a figure, without privacy. Figures of other names are not checked."""


def plain_width(score: Scores, answers: Array, found: Array, draw: np.random.Generator) -> float:
    """The width of the central 95 % of a score over 1,000 rows."""
    samples = (draw.integers(0, len(answers), KEPT) for _ in range(PLAIN_DRAWS))
    low, high = np.quantile([score(answers[rows], found[rows]) for rows in samples], [0.025, 0.975])
    return float(high - low)


def figures_of(release: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The figures of a release, each with its name, its value and the two ends of its interval."""
    validation = release["validation"]
    single = {"name": validation["metric"], **{key: validation[key] for key in ("value", "low", "high")}}
    figures: list[Mapping[str, Any]] = validation.get("figures") or [single]
    return figures


class Frame(dict[str, Array]):
    """Columns by name, as a model takes them."""

    columns = property(dict.keys)


def redraw(table: ModelTable, metric: str, seed: int, plain: bool) -> Iterator[dict[str, Any]]:
    """The figures of one release, with the truth of each, and if `plain` its width without privacy."""
    draw = np.random.default_rng([seed, 5])
    kept = draw.integers(0, len(table.answers), ROWS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / "rows.npz", **{c: each[kept] for c, each in table.columns.items()}, answer=table.answers[kept]
        )
        document = {
            "name": f"redraw {seed}",  # which decides what rows validate: a fixed part of the table would be no sample
            "data": {**table.facts, "source": "rows.npz", "label": "answer"},
            "privacy": {"epsilon": EPSILON, "delta": DELTA, "nominal_rows": ROWS},
            "validation": {"metric": metric, "fraction": KEPT / ROWS},
            "runs": {"executor": "inline"},
            "output": {"folder": str(folder / "out")},
        }
        random = keyed_source(f"figures {table.name} {metric} {seed}")
        release = run_study(parse_study(document), base_folder=folder, random=random).release
        found = np.asarray(load_model(folder / "out" / "model.npz").predict(Frame(table.columns)))
    answers = table.answers
    if table.regression:
        answers, found = (np.clip(each, *table.facts["label_bounds"]) for each in (answers, found))
    for figure in figures_of(release):
        score = SCORES.get(figure["name"])
        if score is not None:
            record = {"table": table.name, "metric": metric, "figure": figure["name"], "seed": seed}
            ends = {"low": figure["low"], "high": figure["high"], "truth": score(answers, found)}
            yield {**record, **ends, "plain": plain_width(score, answers, found, draw) if plain else None}


def lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A row for each figure of each table; an interval without an end holds all numbers beyond the other."""
    yield "| table | metric of the study | figure | coverage | width | times the plain one | redraws |"
    yield "|---" * 7 + "|"
    names = dict.fromkeys((each["table"], each["metric"], each["figure"]) for each in found)
    for table, metric, figure in names:
        here = [e for e in found if (e["table"], e["metric"], e["figure"]) == (table, metric, figure)]
        ends = np.array([[_or(e["low"], -np.inf), _or(e["high"], np.inf)] for e in here])
        truths = np.array([e["truth"] for e in here])
        covered = np.mean((ends[:, 0] <= truths) & (truths <= ends[:, 1]))
        width = np.mean(ends[:, 1] - ends[:, 0])
        plain = np.mean([e["plain"] for e in here if e["plain"] is not None])
        yield f"| {table} | {metric} | {figure} | {covered:.3f} | {width:.4g} | {width / plain:.2f} | {len(here)} |"


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def known_metrics(table: ModelTable) -> list[str]:
    """Those of `METRICS` that a study of this table may name, by this version of the library."""
    return [name for name in METRICS[table.regression] if name in KNOWN]


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.figures_believed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--redraws", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=TABLES, help="tables, by the beginning of their names")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.json is not None and asked.json.exists():
        found = json.loads(asked.json.read_text(encoding="utf-8"))
    known = {(each["table"], each["metric"], each["seed"]) for each in found}
    with without_reports(), state_of_its_own():
        for table in (each for each in real_tables(asked.only) if each.name in TABLES):
            for metric in known_metrics(table):
                for seed in range(asked.redraws):
                    if (table.name, metric, seed) in known:
                        continue
                    try:
                        found += redraw(table, metric, seed, plain=seed < PLAIN_REDRAWS)
                    except StudyError as error:  # by public facts, so of every redraw
                        print(f"{table.name}, {metric}: refused: {str(error).splitlines()[-1].strip()}", flush=True)
                        break
                    if asked.json is not None:
                        asked.json.write_text(json.dumps(found), encoding="utf-8")
    print(*lines(found), sep="\n")
    return found


if __name__ == "__main__":
    main()
