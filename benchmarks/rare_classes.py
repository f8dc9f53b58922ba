"""What class weights are worth if few rows are positive: the default model with them and without.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.rare_classes [--rows 30000] [--share 0.02] [--seeds 5] [--epsilon 3]
        [--only WAY ...]

A made table (skewed amounts, a column with gaps, a category; the positives follow from all of them), and as many public
rows, 20,000 at least, to try models on. Weights by hand are one over the share of each class. Ways are studies, run as
by a user at one total (delta 1e-6), with a fifth of the rows kept for their figure. Mean and standard deviation over
the seeds. `as at first` is the model by which this library began: Poisson samples, a bound of 1 on gradients, columns
from 0 to 1 on a linear scale, a public fill for gaps, no map, no weights. It has the same four fifths of the rows, and
the whole total, without paying for a figure.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from benchmarks.better_models import state_of_its_own, without_reports
from dpselect.accounting import calibrate
from dpselect.learners import DPSGDClassifier
from dpselect.privacy import dp_sgd
from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study

COLUMNS: Mapping[str, Any] = {
    "age": {"bounds": [18, 100]},
    "pressure": {"bounds": [80, 200], "missing": "indicator"},
    "income": {"bounds": [0, 1_000_000], "scale": "log"},
    "marker": {"bounds": [0, 100]},
    "ward": {"categories": ["a", "b", "c"], "other": True},
}
FIRST = {"sampling_rate": 0.15, "steps": 300, "learning_rate": 4.0, "clip_norm": 1.0}
AT_FIRST = "as at first"
DELTA = 1e-6
BY_HAND = "class_weights"
"""A key that stands for the weights by hand."""
WAYS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "default, accuracy": ({}, "accuracy"),
    "default, balanced accuracy": ({}, "balanced-accuracy"),
    "default, balanced accuracy, weights by hand": ({BY_HAND: None}, "balanced-accuracy"),
    "`ridge` behind `bins`, balanced accuracy, weights by hand": (
        {"name": "ridge", "map": "bins", BY_HAND: None},
        "balanced-accuracy",
    ),
}


def made(rows: int, seed: int, share: float) -> dict[str, Any]:
    """Rows of which this share, on average, are ill."""
    random = np.random.default_rng(seed)
    age, marker = random.uniform(18, 100, rows), np.minimum(random.exponential(12, rows), 100)
    pressure, income = random.normal(125, 18, rows), np.exp(random.normal(10, 1.2, rows))
    ward = random.choice(["a", "b", "c", "d"], rows)
    risk = 0.05 * (age - 59) + 1.5 * np.abs(pressure - 125) / 18 + 0.06 * marker - 0.6 * (np.log(income) - 10)
    risk = risk + (ward == "b") * 1.2
    threshold = np.quantile(risk + random.logistic(size=rows), 1.0 - share)
    ill = risk + random.logistic(size=rows) > threshold
    gaps = np.where(random.random(rows) < 0.1, np.nan, pressure)
    cells = {"age": age, "pressure": gaps, "income": income, "marker": marker, "ward": ward}
    return {**cells, "state": np.where(ill, "ill", "healthy")}


def released(way: str, rows: int, key: str, share: float, epsilon: float, folder: Path) -> dict[str, float]:
    """What one model reaches on public rows."""
    learner, metric = WAYS[way]
    if BY_HAND in learner:
        learner = {**learner, BY_HAND: {"ill": (1.0 - share) / share}}
    data = {"label": "state", "classes": ["healthy", "ill"], "columns": COLUMNS}
    study = parse_study(
        {
            "data": {"source": "rows.npz", **data},
            "privacy": {"epsilon": epsilon, "delta": DELTA, "nominal_rows": rows},
            "validation": {"metric": metric},
            "test": {"source": "public.npz"},
            **({"learner": learner} if learner else {}),
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )
    found = run_study(
        study, base_folder=folder, folder=folder / f"{key}-{list(WAYS).index(way)}", random=keyed_source(key)
    )
    return dict(found.release["test"]["metrics"])


def at_first(train: dict[str, Any], public: dict[str, Any], seed: int, epsilon: float) -> dict[str, float]:
    """What the first model of this library reaches on public rows."""
    rows = 4 * len(train["state"]) // 5
    noise = calibrate(
        lambda value: dp_sgd(noise_multiplier=value, sampling_rate=0.15, steps=300), epsilon=epsilon, delta=DELTA
    )
    model = DPSGDClassifier(
        noise_multiplier=noise, classes=["healthy", "ill"], nominal_rows=rows, random=keyed_source(seed), **FIRST
    )
    model.fit(encoded(train)[:rows], train["state"][:rows])
    answers, truth = model.predict(encoded(public)), public["state"]
    return {
        "auc": roc_auc_score(truth == "ill", model.predict_proba(encoded(public))[:, 1]),
        "balanced-accuracy": balanced_accuracy_score(truth, answers),
        "accuracy": accuracy_score(truth, answers),
    }


def encoded(cells: dict[str, Any]) -> Any:
    """Columns from 0 to 1, and indicators of categories."""
    parts = []
    for name, facts in COLUMNS.items():
        if "categories" in facts:
            parts += [cells[name] == category for category in facts["categories"]]
        else:
            low, high = facts["bounds"]
            parts.append((np.clip(np.nan_to_num(cells[name], nan=(low + high) / 2), low, high) - low) / (high - low))
    return np.column_stack(parts).astype(float)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--only", nargs="*", default=(AT_FIRST, *WAYS))
    asked = parser.parse_args()
    print("| model | area under the curve | balanced accuracy | accuracy |\n|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as place,
        without_reports(),
        state_of_its_own(),
    ):
        found: dict[str, list[dict[str, float]]] = {way: [] for way in asked.only}
        for seed in range(asked.seeds):
            train = made(asked.rows, 2 * seed, asked.share)
            public = made(max(asked.rows, 20_000), 2 * seed + 1, asked.share)
            np.savez(Path(place) / "rows.npz", **train)
            np.savez(Path(place) / "public.npz", **public)
            for way in asked.only:
                one = (
                    at_first(train, public, seed, asked.epsilon)
                    if way == AT_FIRST
                    else released(way, asked.rows, str(seed), asked.share, asked.epsilon, Path(place))
                )
                found[way].append(one)
        for way, results in found.items():
            shown = []
            for metric in ("auc", "balanced-accuracy", "accuracy"):
                values = [result[metric] for result in results]
                shown.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
            print(f"| {way} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
