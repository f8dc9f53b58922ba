"""What bounds that are bought are worth, beside public ones that are right, ten times and a thousand times too wide.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.bounds [--quick] [--seeds 8]

For each made table, epsilon (at delta 1e-5) and seed: a split of its own (a fifth held out) and one run of the default
learner behind the smooth map, on all training rows. Bounds too wide have the same middle. Bought ones are paid for out
of the same total, by the rule of studies: of a column of which nothing is declared, or `within` the wide bounds. Mean
and standard deviation over the splits of accuracy or of R2, and whether the rule warns (!). `--quick`: one seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from dpselect.accounting import calibrate
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.preprocessing import Cosines
from dpselect.privacy import Guarantee, compose
from dpselect.randomness import keyed_source
from dpselect.study import parse_study
from dpselect.study.bounds import buy, known_columns, purchase_of
from dpselect.study.columns.column import Column

DELTA = 1e-5
WIDTHS = (1, 10, 1000)
FIRST_SEED = 300
Way = Callable[[float, float], dict[str, Any]]
"""From bounds that are right to what a study says of a column."""


def friedman(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Regression on ten uniform columns, given in units of their own; labels in [-1, 1]."""
    X, y = make_friedman1(rows, n_features=10, noise=1.0, random_state=seed)
    units = 10.0 ** np.arange(-4, 6)
    return X * units, np.clip(y / 15 - 1, -1, 1), [(0.0, unit) for unit in units]


def nonlinear(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Two classes that a sum of bent columns tells apart; twenty normal columns, of which ten matter."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 20))
    logits = np.sin(2 * X[:, :5]).sum(axis=1) + np.abs(X[:, 5:10]).sum(axis=1) - 4
    y = (random.random(rows) < 1 / (1 + np.exp(-2 * logits))).astype(int)
    return 50 + 10 * X, y, [(20.0, 80.0)] * 20


TABLES: Mapping[str, tuple[Callable[[int, int], tuple[Any, Any, Any]], int]] = {
    "Friedman, 1,500 rows x 10, R2": (friedman, 1500),
    "nonlinear, 5,000 rows x 20": (nonlinear, 5000),
}


def one_run(table: str, seed: int, epsilon: float, column: Way) -> tuple[float, bool]:
    """The held-out score of one run with these columns, and whether the rule warns."""
    make, rows = TABLES[table]
    X, y, limits = make(rows, seed)
    X, held, y, answers = train_test_split(X, y, test_size=0.2, random_state=seed)
    columns = {f"x{i}": Column(**column(low, high)) for i, (low, high) in enumerate(limits)}
    purchase = purchase_of(_study(epsilon, len(y)), columns)
    beside: list[Guarantee] = []
    if purchase is not None:
        numbers = {name: X[:, place] for place, name in enumerate(columns)}
        bought = buy(purchase, columns, numbers, keyed_source(seed).spawn("bounds"))
        columns = known_columns(purchase, columns, bought)
        beside = [purchase.guarantee]
    regression = "R2" in table
    learner = DPSGDRegressor(label_bounds=(-1, 1)) if regression else DPSGDClassifier(classes=[0, 1])
    learner.set_params(nominal_rows=len(y), random=keyed_source(seed).spawn("run"))
    noise = calibrate(
        lambda noise: compose(learner.set_params(noise_multiplier=noise).guarantee(), *beside),
        epsilon=epsilon,
        delta=DELTA,
    )
    learner.set_params(noise_multiplier=noise)
    cosines = Cosines(bounds=(-1, 1))
    features = [
        np.column_stack([fact.features(part[:, place]) for place, fact in enumerate(columns.values())])
        for part in (X, held)
    ]
    learner.fit(cosines.fit_transform(features[0]), y)
    return learner.score(cosines.transform(features[1]), answers), bool(
        purchase and purchase.too_few_rows_warning(len(y))
    )


def _study(epsilon: float, rows: int) -> Any:
    return parse_study(
        {
            "data": {"source": "x.csv", "classes": [0, 1], "bounds": [0, 1]},
            "privacy": {"epsilon": epsilon, "delta": DELTA, "nominal_rows": rows},
            "space": {"clip_norm": {"law": "categorical", "choices": [0.3]}},
            "repetitions": {"law": "fixed", "count": 1},
            "output": {"folder": "out"},
        }
    )


def _public(low: float, high: float, *, factor: float) -> dict[str, Any]:
    """Bounds so many times too wide, with the same middle."""
    middle, half = (low + high) / 2, factor * (high - low) / 2
    return {"bounds": (middle - half, middle + half)}


def _bought(low: float, high: float, *, factor: float) -> dict[str, Any]:
    return {"bounds": "private", "within": _public(low, high, factor=factor)["bounds"]}


def ways() -> Iterator[tuple[str, Way]]:
    """Ways to come by bounds, from those that are right."""
    for factor in WIDTHS:
        yield f"public, {factor} times", partial(_public, factor=factor)
    yield "bought", lambda low, high: {"bounds": "private"}  # noqa: ARG005
    for factor in WIDTHS[1:]:
        yield f"bought within {factor} times", partial(_bought, factor=factor)


def measured(seeds: int, epsilons: tuple[float, ...]) -> Iterator[str]:
    """The lines of the table."""
    yield "| table | bounds | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in epsilons) + " |"
    yield "|---" * (2 + len(epsilons)) + "|"
    for table in TABLES:
        for name, column in ways():
            cells = []
            for epsilon in epsilons:
                scores, warned = zip(
                    *(one_run(table, FIRST_SEED + seed, epsilon, column) for seed in range(seeds)), strict=True
                )
                cells.append(f"{np.mean(scores):.3f} ± {np.std(scores):.3f}{' !' * any(warned)}")
            yield f"| {table} | {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=8)
    asked = parser.parse_args()
    for line in measured(1 if asked.quick else asked.seeds, (1.0,) if asked.quick else (1.0, 3.0, 8.0)):
        print(line, flush=True)
