"""What one private run reaches that is told nothing but public facts, and what ridge reaches, on public tables.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.better_models [--quick] [--adult adult.csv]

For each table, epsilon (at delta 1e-5) and seed: a split of its own (a fifth held out), the default learner behind a
map (`--quick`: epsilon 3 and four seeds), on all training rows, once. Mean and standard deviation over the splits of
the held-out accuracy, or of R2. Bounds are written down here, not taken from the rows. `--adult` names a file with the
32,561 rows of the training part of the UCI data set Adult, which is not part of this repository.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.learners import BREAST_CANCER_LARGEST, BREAST_CANCER_LEAST
from dpselect.accounting import calibrate
from dpselect.learners import DPSGDClassifier, DPSGDRegressor, PrivateRidge, PrivateRidgeClassifier
from dpselect.preprocessing import Cosines, DirectionAndCosines, OrientedGradients, PublicBins, RowStandardization
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source

DELTA = 1e-5
FIRST_SEED = 700
"""No split of the studies in which the rules were found."""

# rounded ends of the measuring scales; of wine and iris, as their descriptions in scikit-learn give the ranges
WINE = [
    *((11, 15), (0.7, 5.8), (1.3, 3.3), (10, 30), (70, 162), (0.9, 3.9), (0.3, 5.1)),
    *((0.1, 0.7), (0.4, 3.6), (1.2, 13), (0.4, 1.8), (1.2, 4), (270, 1680)),
]
IRIS = [(4.3, 7.9), (2.0, 4.4), (1.0, 6.9), (0.1, 2.5)]
DIABETES = [(-0.14, 0.2)] * 10
BREAST_CANCER = list(zip(BREAST_CANCER_LEAST, BREAST_CANCER_LARGEST, strict=True))
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 15_000),
    "capital-loss": (0, 3_000),
    "hours-per-week": (1, 99),
}
LEFT_OUT = ("fnlwgt", "education")


@dataclass(frozen=True)
class Row:
    """A line of the table: rows, and for the noise of a whole run, sigma = 1/mu, a model."""

    table: str
    what: str
    X: Any
    y: Any
    model: Callable[[float, int, Any], Any]


def by_gradients(learner: type, **public: Any) -> Callable[..., Any]:
    """The default learner with as much noise a step as makes sigma of the whole run."""

    def make(sigma: float, rows: int, source: Any) -> Any:
        rule = learner(noise_multiplier=30.0, nominal_rows=rows, **public)
        price = gaussian(noise_multiplier=sigma).epsilon(delta=DELTA)
        noise = calibrate(lambda noise: rule.set_params(noise_multiplier=noise).guarantee(), epsilon=price, delta=DELTA)
        return learner(noise_multiplier=noise, nominal_rows=rows, random=source, **public)

    return make


def by_ridge(learner: type, **public: Any) -> Callable[..., Any]:
    return lambda sigma, _, source: learner(noise_multiplier=sigma, random=source, **public)


def smooth(sigma: float, rows: int, **columns: Any) -> Any:
    """The map that the rule takes for a table: both maps where rows and privacy are few."""
    return (DirectionAndCosines if rows / sigma < 200 else Cosines)(**columns)


def classes_of(table: str, X: Any, y: Any, **columns: Any) -> Row:
    gradients = by_gradients(DPSGDClassifier, classes=sorted(set(y.tolist())))
    return Row(
        table,
        "DP-SGD, smooth map",
        X,
        y,
        lambda sigma, rows, source: make_pipeline(smooth(sigma, rows, **columns), gradients(sigma, rows, source)),
    )


def numbers_of(table: str, X: Any, y: Any, label_bounds: tuple[float, float], **columns: Any) -> Iterator[Row]:
    for what, learner in (
        ("DP-SGD, smooth map", by_gradients(DPSGDRegressor, label_bounds=label_bounds)),
        ("ridge, smooth map", by_ridge(PrivateRidge, label_bounds=label_bounds)),
    ):
        yield Row(
            table,
            what,
            X,
            y,
            lambda sigma, rows, source, learner=learner: make_pipeline(
                Cosines(**columns), learner(sigma, rows, source)
            ),
        )


def images(what: str, rows_map: Any) -> Row:
    X, y = load_digits(return_X_y=True)
    gradients = by_gradients(DPSGDClassifier, classes=list(range(10)))
    return Row(
        "digits", what, X, y, lambda sigma, rows, source: make_pipeline(rows_map, gradients(sigma, rows, source))
    )


def adult(path: Path) -> Iterator[Row]:
    """The rows of the file with public categories as indicators."""
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file, skipinitialspace=True))
    names = [name for name in records[0] if name not in (*LEFT_OUT, "Salary")]
    cells, indicators, places = [], [], 0
    for name in [*(n for n in names if n in NUMBERS), *(n for n in names if n not in NUMBERS)]:
        column = np.array([record[name] for record in records])
        if name in NUMBERS:
            cells.append(column.astype(float)[:, None])
            places += 1
        else:
            known = sorted(set(column.tolist()))  # the categories of the data set's description
            cells.append((column[:, None] == np.array(known)).astype(float))
            indicators.append(list(range(places, places + len(known))))
            places += len(known)
    X, y = np.hstack(cells), np.array([record["Salary"] for record in records])
    columns = {"bounds": [bounds for name, bounds in NUMBERS.items() if name in names], "indicators": indicators}
    yield classes_of("Adult", X, y, **columns)
    ridge = by_ridge(PrivateRidgeClassifier, classes=sorted(set(y.tolist())))
    yield Row(
        "Adult",
        "ridge, 16 bins",
        X,
        y,
        lambda sigma, rows, source: make_pipeline(PublicBins(**columns), ridge(sigma, rows, source)),
    )


def tables(adult_file: Path | None) -> Iterator[Row]:
    yield images("DP-SGD, standardized rows", RowStandardization())
    yield images("DP-SGD, oriented gradients", OrientedGradients(image_shape=(8, 8)))
    yield classes_of("breast cancer", *load_breast_cancer(return_X_y=True), bounds=BREAST_CANCER)
    yield classes_of("wine", *load_wine(return_X_y=True), bounds=WINE)
    yield classes_of("iris", *load_iris(return_X_y=True), bounds=IRIS)
    yield from numbers_of("diabetes", *load_diabetes(return_X_y=True), (25, 346), bounds=DIABETES)
    X, y = make_friedman1(1500, noise=1.0, random_state=11)
    yield from numbers_of("Friedman 1,500", X, y, (0, 30), bounds=(0, 1))
    if adult_file is not None:
        yield from adult(adult_file)


def scores(row: Row, epsilon: float, seeds: int) -> tuple[float, float, float]:
    """Mean and spread of the held-out score, and seconds of processor time a fit."""
    sigma = calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=epsilon, delta=DELTA)
    found, began = [], time.process_time()
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        X, test, y, expected = train_test_split(row.X, row.y, test_size=0.2, random_state=seed)
        nominal = round(len(X), -1)
        model = row.model(sigma, nominal, keyed_source(f"{row.table} {row.what} {epsilon} {seed}"))
        found.append(model.fit(X, y).score(test, expected))
    return float(np.mean(found)), float(np.std(found)), (time.process_time() - began) / seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="epsilon 3 and four seeds alone")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--adult", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'table':16s} {'one run':28s} {'epsilon':>7s} {'score':>7s} {'spread':>7s} {'seconds':>8s}")
    for row in tables(asked.adult):
        for epsilon in (3.0,) if asked.quick else (1.0, 3.0, 8.0):
            mean, spread, seconds = scores(row, epsilon, 4 if asked.quick else asked.seeds)
            print(f"{row.table:16s} {row.what:28s} {epsilon:7g} {mean:7.3f} {spread:7.3f} {seconds:8.2f}", flush=True)


if __name__ == "__main__":
    main()
