"""What a study releases at one total: by default, by each design of a search, and beside what one would do instead.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.better_models [--quick] [--adult adult.csv] [--seeds 10]
        [--real] [--only TABLE ...] [--before FOLDER] [--dpmm PYTHON] [--json FILE]
        [--page docs/evidence/better-models.md]

For each table, epsilon (at delta 1e-5) and seed: a split of its own (a fifth held out), the same for all ways, and the
released model's accuracy, or R2, on the rows held out. Ways of this library are studies, run as by a user; their
reports are not drawn, since that takes longer than many of the runs. `--quick` is two small tables, epsilon 3 and two
seeds, in a minute. What is measured is in FILE at once, and what stands there is not measured again:
`benchmarks/better_models.json` has what the page shows. `--page` writes the tables of FILE into the page. `--before`
names a folder that `git archive 2c97310 src | tar -x -C FOLDER` has filled, whose search is then run by its own code.
`--adult` names the training part of the UCI data set Adult (32,561 rows), which is not part of this repository.
`--real` runs the tables of `benchmarks/real_tables.py` at epsilon .5, 1 and 3. They come from packages
that you install.
`benchmarks/peers.py` says how to install the peers; `--dpmm` names the interpreter of a virtual environment with dpmm.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.cases import DELTA, Case
from benchmarks.model_tables import ModelTable, tables
from benchmarks.peers import PEERS, peers
from benchmarks.real_tables import REAL_TABLES, real_tables
from dpselect.accounting import calibrate
from dpselect.errors import StudyError
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.privacy import compose
from dpselect.randomness import keyed_source
from dpselect.searching.design import design_names
from dpselect.study import parse_study, run_study

EPSILONS = (1.0, 3.0, 8.0)
REAL_EPSILONS = (0.5, 1.0, 3.0)
"""Of the tables of `benchmarks.real_tables`."""
COMPOSED = 10
DEFAULT = "by default (nothing chosen)"
TOLD, FOR_MAPS, FOR_RATES = "told the maps: ", "a search for the map: ", "a search for the rate: "
ONE = "one run: "
BOOSTED = "boosted-trees"
FORERUNNER = "the search of 2c97310"
NOT_INSTALLED = "not installed: "
ITS_RUN = """
import json, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from dpselect.randomness import keyed_source
from dpselect.study import load_model, parse_study, run_study
asked = json.load(sys.stdin)
run_study(parse_study(asked["study"]), base_folder=Path(), random=keyed_source(asked["key"]))
model, test = load_model(Path("out/model.npz")), np.load("test.npz")
# that commit loads the columns sorted by name, and not as they were trained
names = asked["study"]["data"].get("columns", model.columns)
model = replace(model, columns={name: model.columns[name] for name in names})
class Frame(dict):
    columns = property(dict.keys)
print(np.mean(model.predict(Frame(test)) == test["answer"]))
"""
TARGETS = {
    "digits": (0.90, 0.945, 0.965),
    "breast cancer": (0.935, 0.95, 0.955),
    "diabetes": (0.43, 0.44, 0.445),
    "Adult": (0.840, 0.845, 0.848),
}
"""What was asked of the default before it was measured on these splits."""
FIRST_PAIRED = "<!-- measured, split by split: python -m benchmarks.better_models -->"
FIRST, LAST = "<!-- measured: python -m benchmarks.better_models -->", "<!-- end -->"


@contextmanager
def without_reports() -> Iterator[None]:
    """Nor notes: anyone who searches here has heard what searches lose."""
    log = logging.getLogger("dpselect.study")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with (
            patch("dpselect.study.write.search_facts", lambda **_: {}),
            patch("dpselect.report.page.render_page", lambda *_: ""),
            patch("dpselect.report.model_card.render_model_card", lambda *_: ""),
        ):
            yield
    finally:
        log.setLevel(level)


@contextmanager
def state_of_its_own() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as state, patch.dict(os.environ, {"XDG_STATE_HOME": state}):
        yield


def write_rows(case: Case) -> None:
    """The rows that are learnt from and those held out, as files in the folder."""
    for name, kept in zip(("train", "test"), case.parts, strict=True):
        if not (case.folder / f"{name}.npz").exists():
            columns = {column: cells[kept] for column, cells in case.table.columns.items()}
            np.savez(case.folder / f"{name}.npz", **columns, answer=case.table.answers[kept])


def study(case: Case, output: str, *, key: str = "", **parts: Any) -> dict[str, Any]:
    """What is released; `parts` are tables of a study, beside those that say what is public.

    Equal keys, by default `output`, draw equally: what is one and the same run by another name has one score.
    """
    write_rows(case)
    document = {
        "data": {**case.table.facts, "source": "train.npz", "label": "answer"},
        "privacy": {"epsilon": case.epsilon, "delta": DELTA, "nominal_rows": case.rows},
        "test": {"source": "test.npz"},
        "runs": {"executor": "inline"},
        "output": {"folder": str(case.folder / output)},
        **parts,
    }
    source = keyed_source(f"{case.table.name} {key or output} {case.epsilon} {case.seed}")
    return run_study(parse_study(document), base_folder=case.folder, random=source).release


def score(release: Mapping[str, Any]) -> float:
    """On the rows held out; nothing found counts as a model that is never right."""
    if release["test"] is None:
        return 0.0
    metrics: Mapping[str, float] = release["test"]["metrics"]
    return metrics["r2" if "r2" in metrics else "accuracy"]


def space_of(table: ModelTable) -> dict[str, Any]:
    return {"map": {"law": "categorical", "choices": list(table.maps)}}


def by_default(case: Case) -> float:
    return score(study(case, "default", **({"learner": dict(case.table.image)} if case.table.image else {})))


def by_boosted_trees(case: Case) -> float:
    return score(study(case, "boosted-trees", learner={"name": "boosted-trees"}))


def run_design(design: str, case: Case, **parts: Any) -> float:
    """A search for the map, as this design has it."""
    parts |= {"space": space_of(case.table), "search": {"design": design}}
    if case.table.image:
        parts["learner"] = dict(case.table.image)
    return score(study(case, design, key="default" if design == "auto" else "", **parts))


def for_rates(design: str, case: Case) -> float:
    """A search for the learning rate alone, behind the map of the default."""
    settings = {"map": "oriented-gradients" if case.table.image else "cos4", **case.table.image}
    space = {"learning_rate": {"law": "log_uniform", "low": 0.5, "high": 10.0}}
    return score(study(case, f"rates-{design}", learner=settings, space=space, search={"design": design}))


def one_run(learner: str, rows_map: str, case: Case) -> float:
    """One run of a setting that is named."""
    image = case.table.image if rows_map == "oriented-gradients" else {}
    settings = {"name": learner, "map": rows_map, **image}
    return score(study(case, f"{learner}-{rows_map}", learner=settings))


def by_composition(case: Case) -> float:
    """Ten studies of one run, each with a map drawn from the space and a noisy score, all paid for in full."""
    learner = (DPSGDRegressor if case.table.regression else DPSGDClassifier)(nominal_rows=0.8 * case.rows)
    noise = calibrate(
        lambda value: compose(*[learner.set_params(noise_multiplier=value).guarantee()] * COMPOSED),
        epsilon=case.epsilon,
        delta=DELTA,
    )
    done = []
    for place in range(COMPOSED):
        # a row trains or validates: ten pure scores at a tenth of the total each are what those that validate pay
        release = study(
            case,
            f"composed-{place}",
            learner=dict(case.table.image),
            space=space_of(case.table),
            repetitions={"law": "fixed", "count": 1},
            privacy={"noise_multiplier": noise, "delta": DELTA, "nominal_rows": case.rows},
            validation={"score_epsilon": case.epsilon / COMPOSED, "release_score": True},
        )
        done.append((release["score"], score(release)))
    return max(done)[1]


def by_its_forerunner(source: Path, case: Case) -> float:
    """The search of commit 2c97310, by its own code below `source`, with the learner, space and law of its example."""
    if case.table.regression:
        raise StudyError("it knows no regression")
    write_rows(case)
    document = {
        "data": {**case.table.facts, "source": "train.npz", "label": "answer"},
        "privacy": {"epsilon": case.epsilon, "delta": DELTA, "nominal_rows": case.rows},
        "learner": {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 250},
        "space": {
            "learning_rate": {"law": "log_uniform", "low": 0.5, "high": 10.0},
            "hidden_units": {"law": "categorical", "choices": [0, 32, 64]},
        },
        "repetitions": {"law": "harmonic", "limit": 20},
        "output": {"folder": "out"},
    }
    asked = {"study": document, "key": f"{case.table.name} {FORERUNNER} {case.epsilon} {case.seed}"}
    command = [sys.executable, "-W", "ignore", "-c", ITS_RUN]
    told = subprocess.run(
        command,
        input=json.dumps(asked, default=list),
        capture_output=True,
        check=True,
        cwd=case.folder,
        env={**os.environ, "PYTHONPATH": str((source / "src").resolve())},
        text=True,
    )
    return float(told.stdout.split()[-1])


def ways(
    table: ModelTable, source: Path | None = None, dpmm: Path | None = None
) -> Iterator[tuple[str, Callable[[Case], float]]]:
    """Ways to come by a model of this table, by the name of their row.

    `source` is where commit 2c97310 is, and `dpmm` an interpreter that has dpmm.
    """
    yield DEFAULT, by_default
    if not table.image:
        yield BOOSTED, by_boosted_trees
    if table.name in REAL_TABLES:
        yield from peers(table, dpmm)
        return
    yield f"{TOLD}auto", partial(run_design, "auto")
    for design in design_names()[1:]:
        yield f"{FOR_MAPS}{design}", partial(run_design, design)
        if design != "portfolio":  # which is of what a list names
            yield f"{FOR_RATES}{design}", partial(for_rates, design)
    scored = {"validation": {"data": "training"}}
    yield f"{FOR_MAPS}one-stage, all rows score", partial(run_design, "one-stage", **scored)
    yield "ten runs by composition", by_composition
    if source is not None and not table.regression:
        yield FORERUNNER, partial(by_its_forerunner, source)
    for rows_map in table.maps:
        yield f"{ONE}dp-sgd, {rows_map}", partial(one_run, "dp-sgd", rows_map)
    for rows_map in (each for each in table.maps if each in ("cos4", "bins", "oriented-gradients")):
        yield f"{ONE}ridge, {rows_map}", partial(one_run, "ridge", rows_map)
    yield from peers(table, dpmm)


def measure(case: Case, name: str, way: Callable[[Case], float]) -> dict[str, Any]:
    """One figure, with the seconds of processor time that it took, those of other processes included."""
    began = sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as folder:
        try:
            found: dict[str, Any] = {"score": way(replace(case, folder=Path(folder)))}
        except ImportError as error:
            found = {"why": f"{NOT_INSTALLED}{str(error).splitlines()[0]}"}
        except StudyError as error:
            found = {"why": f"refused: {str(error).splitlines()[-1].strip()}"}
    found |= {"seconds": sum(os.times()[:4]) - began, "regression": case.table.regression}
    return {"table": case.table.name, "way": name, "epsilon": case.epsilon, "seed": case.seed, **found}


def epsilons_of(table: str) -> tuple[float, ...]:
    """The totals at which a table is measured."""
    return REAL_EPSILONS if table in REAL_TABLES else EPSILONS


def cells(found: list[dict[str, Any]], table: str, way: str) -> list[str]:
    """The row of a way: for each epsilon the mean over the splits and their standard deviation."""
    here = [each for each in found if each["table"] == table and each["way"] == way]
    shown = []
    for epsilon in epsilons_of(table):
        scores = [each["score"] for each in here if each["epsilon"] == epsilon and "score" in each]
        why = next((each["why"] for each in here if "why" in each), "")
        shown.append(f"{np.mean(scores):.3f} ± {np.std(scores):.3f}" if scores else why)
    return shown


def mean(found: list[dict[str, Any]], table: str, way: str, epsilon: float) -> float:
    kept = [e["score"] for e in found if (e["table"], e["way"], e["epsilon"]) == (table, way, epsilon) and "score" in e]
    return float(np.mean(kept)) if kept else float("nan")


def splits_of(here: list[dict[str, Any]], way: str) -> str:
    """Of how many splits the row of a way is, which are the first ones; by epsilon where they differ."""
    counts = [
        len({e["seed"] for e in here if (e["way"], e["epsilon"]) == (way, epsilon)})
        for epsilon in epsilons_of(here[0]["table"])
    ]
    return ", ".join(dict.fromkeys(str(count) for count in counts if count))


def place_of(way: str) -> int:
    """Where a way stands in its table."""
    kinds = (DEFAULT, BOOSTED, TOLD, FOR_MAPS, FOR_RATES, "ten runs", FORERUNNER, ONE, *PEERS)
    return next((place for place, kind in enumerate(kinds) if way.startswith(kind)), len(kinds))


def paired(found: list[dict[str, Any]]) -> Iterator[str]:
    """What searches for a map gain over a default run on the same split, in thousandths."""
    scores = {(e["table"], e["way"], e["epsilon"], e["seed"]): e["score"] for e in found if "score" in e}
    searches = [way for way in dict.fromkeys(way for _, way, _, _ in scores) if way.startswith((TOLD, FOR_MAPS))]
    yield "| table | way | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " | splits |"
    yield "|---" * (3 + len(EPSILONS)) + "|"
    for table in dict.fromkeys(each["table"] for each in found):
        for way in sorted(searches, key=place_of):
            gains = [
                {
                    seed: 1000.0 * (score - scores[table, DEFAULT, epsilon, seed])
                    for (name, here, at, seed), score in scores.items()
                    if (name, here, at) == (table, way, epsilon) and (table, DEFAULT, epsilon, seed) in scores
                }
                for epsilon in EPSILONS
            ]
            if any(gains):
                splits = ", ".join(dict.fromkeys(str(len(each)) for each in gains if each))
                yield f"| {table} | {way} | " + " | ".join(gained(list(e.values())) for e in gains) + f" | {splits} |"


def gained(values: list[float]) -> str:
    """Their mean and its standard error."""
    if not values:
        return ""
    if not any(values):
        return "the same run"
    error = f" ± {np.std(values, ddof=1) / len(values) ** 0.5:.0f}" if len(values) > 1 else ""
    return f"{np.mean(values):+.0f}{error}"


def markdown(found: list[dict[str, Any]]) -> Iterator[str]:
    """All that was measured: the targets first, then each table."""
    yield "| table | " + " | ".join(f"epsilon {e:g}: target, reached" for e in EPSILONS) + " |"
    yield "|---" * (1 + len(EPSILONS)) + "|"
    names = list(dict.fromkeys(each["table"] for each in found))
    for table in (name for name in names if name in TARGETS):
        reached = [mean(found, table, DEFAULT, epsilon) for epsilon in EPSILONS]
        shown = [
            "" if np.isnan(got) else f"{wish:.3f}, {got:.3f}{' (missed)' if got < wish else ''}"
            for wish, got in zip(TARGETS[table], reached, strict=True)
        ]
        yield f"| {table} | " + " | ".join(shown) + " |"
    for table in names:
        epsilons = epsilons_of(table)
        here = [each for each in found if each["table"] == table and each["epsilon"] in epsilons]
        measured = "R2" if here[0]["regression"] else "accuracy"
        yield ""
        yield f"**{table}**, {measured}"
        yield ""
        yield "| way | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in epsilons) + " | splits | seconds |"
        yield "|---" * (3 + len(epsilons)) + "|"
        listed = sorted(dict.fromkeys(each["way"] for each in here), key=place_of)
        settings = [way for way in listed if way.startswith(ONE)]
        best = {e: max(settings, key=lambda way: mean(here, table, way, e)) for e in epsilons} if settings else {}
        for way in listed:
            seconds = float(np.mean([each["seconds"] for each in here if each["way"] == way]))
            splits = splits_of(here, way)
            shown = cells(here, table, way)
            marked = [
                f"**{cell}**" if cell and best.get(epsilon) == way else cell
                for cell, epsilon in zip(shown, epsilons, strict=True)
            ]
            yield f"| {way} | " + " | ".join(marked) + f" | {splits} | {seconds:.1f} |"


def written(page: str, lines: list[str], first: str = FIRST) -> str:
    """The page with these lines between its two comments."""
    before, _, rest = page.partition(first)
    return "\n".join([f"{before}{first}", "", *lines, "", LAST]) + rest.partition(LAST)[2]


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.better_models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="two small tables, epsilon 3 and two seeds alone")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="tables, by the beginning of their names")
    parser.add_argument("--ways", nargs="*", default=[], help="ways, by the beginning of their names")
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--before", type=Path, help="a folder with the files of commit 2c97310, which then runs too")
    parser.add_argument("--real", action="store_true", help="the tables of benchmarks.real_tables, and none other")
    parser.add_argument("--dpmm", type=Path, help="an interpreter that has dpmm, whose MST and AIM then run too")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args(arguments)
    if asked.quick:
        asked.seeds, asked.only = 2, ["wine", "diabetes"]
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.json is not None and asked.json.exists():
        found = json.loads(asked.json.read_text(encoding="utf-8"))
    found = [each for each in found if not each.get("why", "").startswith(NOT_INSTALLED)]
    known = {(each["table"], each["way"], each["epsilon"], each["seed"]) for each in found}
    with without_reports(), state_of_its_own():
        for table in real_tables(asked.only) if asked.real else tables(asked.adult):
            if asked.only and not any(table.name.startswith(name) for name in asked.only):
                continue
            for name, way in ways(table, asked.before, asked.dpmm):
                if asked.ways and not any(name.startswith(each) for each in asked.ways):
                    continue
                for epsilon in (3.0,) if asked.quick else epsilons_of(table.name):
                    for seed in range(asked.seeds):
                        if (table.name, name, epsilon, seed) in known:
                            continue
                        found.append(measure(Case(table, epsilon, seed, Path()), name, way))
                        if asked.json is not None:
                            asked.json.write_text(json.dumps(found), encoding="utf-8")
                shown = [cell for cell in cells(found, table.name, name) if cell]
                print(f"{table.name:20s} {name:40s} {'   '.join(shown)}", flush=True)
    lines = list(markdown(found))
    told = list(paired(found))
    if asked.page is not None:
        page = written(asked.page.read_text(encoding="utf-8"), lines)
        asked.page.write_text(
            written(page, told, first=FIRST_PAIRED) if FIRST_PAIRED in page else page, encoding="utf-8"
        )
    else:
        print("", *lines, "", *told, sep="\n")
    return found


if __name__ == "__main__":
    main()
