"""How often a release is worse than the best constant answer, and by how much: no default should be.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.constant_answers [--keys 200] [--epsilon 0.5 3] [--only NAME ...]
        [--json FILE]

Subjects are the studies in `examples/`, as they are, and small tables by the default: a study that names what is public
and nothing else, with each epsilon. A study is run with so many keys. Of each release there is

- gain: its score on public rows less that of the best constant answer on the same rows. Of classes the score is the
  accuracy, and of numbers minus the mean absolute error, as a part of the label's range. The rows are those of `[test]`
  for an example. Of a table they are all its rows, since the question is not how well a model generalises;
- noise: half of the interval that the release shows for its own figure. None without a figure.

Below the constant by more than the noise counts as a fault. What is measured is in FILE at once, and is not measured
again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.better_models import state_of_its_own, without_reports
from benchmarks.cases import DELTA
from benchmarks.figures_believed import Frame
from benchmarks.model_tables import ModelTable, tables
from benchmarks.real_tables import real_tables
from dpselect.errors import StudyError
from dpselect.randomness import keyed_source
from dpselect.study import load_model, parse_study, run_study

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = ("breast cancer", "diabetes", "digits", "iris", "orders", "wine")
REAL = ("titanic", "Wage", "staff")
"""Of `real_tables`, where its packages are installed."""

Measure = Callable[[int], Mapping[str, Any]]


def noise_of(release: Mapping[str, Any]) -> float | None:
    """Half of the interval of the figure that a release shows, if it shows one with two ends."""
    found = release["validation"]
    if found is None or found["low"] is None or found["high"] is None:
        return None
    return float(found["high"] - found["low"]) / 2.0


def of_example(path: Path, key: int) -> dict[str, Any]:
    """The gain of an example's release on its public rows."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        document |= {"output": {"folder": f"{name}/out"}, "runs": {"executor": "inline"}}
        study = parse_study(document)
        release = run_study(study, base_folder=path.parent, random=keyed_source(f"{path.stem} {key}")).release
    test, numbers = release["test"], study.data.label_bounds
    if not release["found"]:
        return {"gain": None, "noise": None}
    if numbers is None:
        return {"gain": _difference(test, "accuracy"), "noise": noise_of(release)}
    span = float(numbers[1]) - float(numbers[0])
    noise = noise_of(release)
    return {
        "gain": -_difference(test, "absolute-error") / span,
        "noise": None if noise is None else noise / span,
    }


def _difference(test: Mapping[str, Any], metric: str) -> float:
    return float(test["metrics"][metric] - test["constant"]["metrics"][metric])


def of_table(table: ModelTable, epsilon: float, key: int) -> dict[str, Any]:
    """The gain of the default on a table, over all its rows."""
    rows = len(table.answers)
    metric = "absolute-error" if table.regression else "accuracy"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "rows.npz", **table.columns, answer=table.answers)
        document = {
            "data": {**table.facts, "source": "rows.npz", "label": "answer"},
            "privacy": {"epsilon": epsilon, "delta": DELTA, "nominal_rows": rows},
            "validation": {"metric": metric},
            "runs": {"executor": "inline"},
            "output": {"folder": str(folder / "out")},
        }
        if table.image:
            document["learner"] = dict(table.image)
        run = partial(run_study, base_folder=folder, random=keyed_source(f"{table.name} {epsilon} {key}"))
        try:
            release = run(parse_study(document)).release
        except StudyError:  # by public facts: the figure would be noise
            release = run(parse_study({**document, "validation": {"data": "none"}})).release
        found = np.asarray(load_model(folder / "out" / "model.npz").predict(Frame(table.columns)))
    if table.regression:
        low, high = table.facts["label_bounds"]
        answers = np.clip(table.answers, low, high)
        errors = np.mean(np.abs(found - answers)) - np.mean(np.abs(np.median(answers) - answers))
        noise = noise_of(release)
        return {"gain": float(-errors) / (high - low), "noise": None if noise is None else noise / (high - low)}
    _, counts = np.unique(table.answers, return_counts=True)
    gain = float(np.mean(found == table.answers)) - counts.max() / rows
    return {"gain": float(gain), "noise": noise_of(release)}


def subjects(epsilons: Sequence[float], only: Sequence[str]) -> Iterator[tuple[str, Measure]]:
    """The examples and the tables, each with what measures it."""
    for path in sorted(EXAMPLES.glob("*.toml")):
        if not only or path.name in only:
            yield path.name, partial(of_example, path)
    found = [table for table in tables() if table.name.split(",")[0] in SMALL]
    for table in [*found, *real_tables(REAL)]:
        for epsilon in epsilons:
            if not only or table.name in only:
                yield f"{table.name}, epsilon {epsilon:g}", partial(of_table, table, epsilon)


def lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A row for each subject. Gains are in thousandths."""
    yield "| study | releases | below the constant | by more than the noise | median gain | worst gain | noise |"
    yield "|---" * 7 + "|"
    for name in dict.fromkeys(each["subject"] for each in found):
        here = [each for each in found if each["subject"] == name and each["gain"] is not None]
        gains = np.array([each["gain"] for each in here])
        noise = np.array([0.0 if each["noise"] is None else each["noise"] for each in here])
        shown = f"{1000 * np.median(noise):.0f}" if noise.any() else "no figure"
        counts = f"{len(here)} | {np.count_nonzero(gains < 0)} | {np.count_nonzero(gains < -noise)}"
        yield f"| {name} | {counts} | {1000 * np.median(gains):.0f} | {1000 * gains.min():.0f} | {shown} |"


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.constant_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--epsilon", type=float, nargs="*", default=(0.5, 3.0))
    parser.add_argument("--only", nargs="*", default=(), help="examples and tables by their names")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.json is not None and asked.json.exists():
        found = json.loads(asked.json.read_text(encoding="utf-8"))
    known = {(each["subject"], each["key"]) for each in found}
    with without_reports(), state_of_its_own():
        everything = list(subjects(asked.epsilon, asked.only))
        for key in range(asked.keys):  # key by key, so that a run that is stopped has looked at all of them
            for name, measure in everything:
                if (name, key) not in known:
                    found.append({"subject": name, "key": key, **measure(key)})
            if asked.json is not None:
                asked.json.write_text(json.dumps(found), encoding="utf-8")
    print(*lines(found), sep="\n")
    return found


if __name__ == "__main__":
    main()
