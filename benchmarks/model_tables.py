"""Tables on which models are compared: what is public of each is written down here, and not taken from its rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_hastie_10_2,
    make_moons,
)

from benchmarks.learners import BREAST_CANCER_LARGEST, BREAST_CANCER_LEAST

Array = NDArray[Any]

# rounded ends of the measuring scales; of wine and iris, as their descriptions in scikit-learn give the ranges
WINE = [
    *((11, 15), (0.7, 5.8), (1.3, 3.3), (10, 30), (70, 162), (0.9, 3.9), (0.3, 5.1)),
    *((0.1, 0.7), (0.4, 3.6), (1.2, 13), (0.4, 1.8), (1.2, 4), (270, 1680)),
]
IRIS = [(4.3, 7.9), (2.0, 4.4), (1.0, 6.9), (0.1, 2.5)]
BREAST_CANCER = list(zip(BREAST_CANCER_LEAST, BREAST_CANCER_LARGEST, strict=True))
ADULT = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 15_000),
    "capital-loss": (0, 3_000),
    "hours-per-week": (1, 99),
}
AMOUNTS = ("cos4", "log", "centered", "bins")
ADULT_WITHOUT = ("fnlwgt", "education", "Salary")


@dataclass(frozen=True)
class ModelTable:
    """A table: its columns in their order, the answers, and what a study may say of it.

    `facts` are keys of `[data]`; `image` those of `[learner]` that say that rows are images. `maps` are unlike ones, of
    which a person who knows nothing of the rows would have a search choose; the default stands first.
    """

    name: str
    columns: Mapping[str, Array]
    answers: Array
    facts: Mapping[str, Any]
    maps: Sequence[str] = ("cos4", "centered", "direction", "bins")
    image: Mapping[str, Any] = field(default_factory=dict)

    @property
    def regression(self) -> bool:
        """Whether the answers are numbers."""
        return "label_bounds" in self.facts

    @property
    def encoded(self) -> Array:
        """The columns as numbers from -1 to 1, a missing one as 0, or as one indicator for each category."""
        parts = []
        for name, cells in self.columns.items():
            known = self.facts["columns"][name] if "columns" in self.facts else self.facts
            if "categories" in known:
                parts.append((cells[:, None] == np.array(known["categories"])).astype(float))
            else:
                low, high = known["bounds"]
                numbers = np.clip((2 * cells - low - high) / (high - low), -1, 1)[:, None]
                parts.append(np.nan_to_num(numbers))
                if known.get("missing") == "indicator":
                    parts.append(np.isnan(numbers).astype(float))
        return np.hstack(parts)


def classes_of(answers: Array) -> dict[str, Any]:
    return {"classes": sorted(set(answers.tolist()))}


def numbers_of(low: float, high: float) -> dict[str, Any]:
    return {"task": "regression", "label_bounds": [low, high]}


def table_of(
    name: str,
    X: Array,
    answers: Array,
    target: Mapping[str, Any],
    bounds: Sequence[tuple[float, float]],
    names: Sequence[str] = (),
) -> ModelTable:
    """A table of numbers."""
    kept = list(names) or [f"feature {place}" for place in range(X.shape[1])]
    facts = {each: {"bounds": list(ends)} for each, ends in zip(kept, bounds, strict=True)}
    return ModelTable(name, dict(zip(kept, X.T, strict=True)), answers, {**target, "columns": facts})


def of_second(logits: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are of the second of two classes, drawn by the logits of its probability."""
    return random.random(len(logits)) < 1 / (1 + np.exp(-logits))


def placed(name: str, size: tuple[int, int], bound: float, **shape: Any) -> ModelTable:
    """Classes that lie around places of their own, by scikit-learn."""
    rows, columns = size
    X, y = make_classification(rows, columns, **shape)
    return table_of(f"{name}, {rows:,} rows", X, y, classes_of(y), [(-bound, bound)] * columns)


def digits() -> ModelTable:
    X, y = load_digits(return_X_y=True)
    pixels = {f"pixel {place // 8} {place % 8}": column for place, column in enumerate(X.T)}
    maps = ("oriented-gradients", "standardized", "centered")
    return ModelTable("digits", pixels, y, {**classes_of(y), "bounds": [0, 16]}, maps, {"image_shape": [8, 8]})


def bundled(name: str, load: Callable[..., Any], bounds: Sequence[tuple[float, float]]) -> ModelTable:
    found = load()
    target = numbers_of(25, 346) if name == "diabetes" else classes_of(found.target)
    return table_of(name, found.data, found.target, target, bounds, [str(each) for each in found.feature_names])


def friedman(rows: int) -> ModelTable:
    X, y = make_friedman1(rows, noise=1.0, random_state=11)
    return table_of(f"Friedman, {rows:,} rows", X, y, numbers_of(0, 30), [(0, 1)] * X.shape[1])


def clusters() -> ModelTable:
    """Four classes around two places each."""
    shape = {"n_informative": 8, "n_redundant": 0, "n_classes": 4, "class_sep": 1.5, "flip_y": 0.02}
    return placed("clusters", (20_000, 12), 6, **shape, random_state=12)


def amounts() -> ModelTable:
    """Two classes by what amounts are to one another; most of them are small."""
    random = np.random.default_rng(13)
    X = np.exp(random.normal(2, 1.2, size=(1500, 6)))
    logits = np.log(X) @ np.array([1.5, -1.5, 1.0, -1.0, 0.5, -0.5])
    y = of_second(logits, random).astype(int)
    return replace(table_of("amounts, 1,500 rows", X, y, classes_of(y), [(0, 400)] * 6), maps=AMOUNTS)


def incomes() -> ModelTable:
    """A number that grows with the logarithms of amounts."""
    random = np.random.default_rng(14)
    X = np.exp(random.normal(3, 1, size=(6000, 5)))
    y = 50 + np.log(X) @ np.array([12.0, -8.0, 5.0, 3.0, 0.0]) - 36 + random.normal(0, 6, len(X))
    return replace(table_of("incomes, 6,000 rows", X, y, numbers_of(0, 120), [(0, 1000)] * 5), maps=AMOUNTS)


def waves() -> ModelTable:
    """Two classes that a sum of bent columns tells apart."""
    random = np.random.default_rng(41)
    X = random.normal(size=(5000, 20))
    logits = np.sin(2 * X[:, :5]).sum(axis=1) + np.abs(X[:, 5:10]).sum(axis=1) - 4
    y = np.where(of_second(2 * logits, random), "yes", "no")
    names = [f"w{19 - place:02d}" for place in range(20)]
    return table_of("waves, 5,000 rows", 50 + 10 * X, y, classes_of(y), [(20, 80)] * 20, names)


def orders() -> ModelTable:
    """Three classes; amounts of which most are small, and words, that both matter; the columns in no order."""
    random = np.random.default_rng(42)
    rows = 3000
    amount, weight = np.exp(random.normal(3, 1, rows)), np.exp(random.normal(0, 0.7, rows))
    place = random.choice(["north", "east", "west"], rows)
    kind = random.choice(["letter", "box", "crate", "drum"], rows)
    age = random.uniform(0, 10, rows)
    late = (place == "west") * 1.5 + (kind == "crate") * 1.2 + np.log(weight) - 0.2 * age + random.normal(0, 0.7, rows)
    dear = np.log(amount) - 3 + (kind == "drum") * 1.0 + random.normal(0, 0.5, rows)
    y = np.where(dear > 1, "checked", np.where(late > 1, "late", "fine"))
    columns = {"weight": weight, "kind": kind, "amount": amount, "place": place, "age": age}
    facts = {
        "weight": {"bounds": [0, 12]},
        "kind": {"categories": ["letter", "drum", "crate", "box"]},
        "amount": {"bounds": [0, 500]},
        "place": {"categories": ["west", "north", "east"]},
        "age": {"bounds": [0, 10]},
    }
    return ModelTable("orders, 3,000 rows", columns, y, {**classes_of(y), "columns": facts}, AMOUNTS)


def rents() -> ModelTable:
    """A number that grows evenly with some columns, and bends with others."""
    random = np.random.default_rng(43)
    rows = 8000
    X = random.uniform(size=(rows, 8))
    y = 300 + 900 * X[:, 3] + 300 * X[:, 1] * X[:, 3] + 200 * (X[:, 6] - 0.5) ** 2 - 250 * X[:, 0]
    y += random.normal(0, 120, rows)
    names = ["year", "floor", "zone", "size", "noise", "ceiling", "distance", "balcony"]
    return table_of("rents, 8,000 rows", X * 100, y, numbers_of(0, 2000), [(0, 100)] * 8, names)


def rare() -> ModelTable:
    """One row in twenty is of the second class."""
    shape = {"n_informative": 6, "n_redundant": 3, "weights": [0.95], "class_sep": 1.2}
    return placed("rare", (3000, 15), 6, **shape, random_state=51)


def ten_classes() -> ModelTable:
    shape = {"n_informative": 12, "n_redundant": 0, "n_classes": 10, "n_clusters_per_class": 1, "class_sep": 1.5}
    return placed("ten classes", (4000, 20), 7, **shape, random_state=52)


def tails() -> ModelTable:
    """A number that is straight in two columns and in the logarithm of a third; all have heavy tails."""
    random = np.random.default_rng(53)
    X = np.exp(random.normal(1, 2, size=(2500, 6)))
    y = 20 + 8 * np.log(X[:, 0]) + 0.1 * np.minimum(X[:, 1], 100) - 0.1 * np.minimum(X[:, 2], 100)
    y += random.normal(0, 5, len(X))
    return replace(table_of("tails, 2,500 rows", X, y, numbers_of(-50, 100), [(0, 2000)] * 6), maps=AMOUNTS)


def sparse() -> ModelTable:
    """Two classes by the sum of weights of what is there; one column in twenty is."""
    random = np.random.default_rng(54)
    X = (random.random((2000, 80)) < 0.05).astype(float)
    logits = 2 * X @ random.normal(0, 1.5, 80)
    y = of_second(logits, random).astype(int)
    return table_of("sparse, 2,000 rows", X, y, classes_of(y), [(0, 1)] * 80)


def wide() -> ModelTable:
    """More columns than rows."""
    random = np.random.default_rng(55)
    X = random.normal(size=(300, 400))
    y = (X[:, :10].sum(axis=1) + random.normal(0, 1, len(X)) > 0).astype(int)
    return table_of("wide, 300 rows", X, y, classes_of(y), [(-4, 4)] * 400)


def moons() -> ModelTable:
    """Two classes that no line tells apart, and three columns of noise."""
    X, y = make_moons(2000, noise=0.25, random_state=56)
    X = np.hstack([X, np.random.default_rng(56).normal(size=(2000, 3))])
    return table_of("moons, 2,000 rows", X, y, classes_of(y), [(-3, 3)] * 5)


def steps() -> ModelTable:
    """A number that jumps with its columns."""
    random = np.random.default_rng(57)
    X = random.uniform(0, 16, size=(4000, 6))
    y = np.where(np.floor(X[:, :3]) % 2 > 0, 3.0, -3.0).sum(axis=1) + random.normal(0, 1, len(X))
    return table_of("steps, 4,000 rows", X, y, numbers_of(-14, 14), [(0, 16)] * 6)


def impedance() -> ModelTable:
    X, y = make_friedman2(2000, noise=100, random_state=58)
    bounds = [(0, 100), (100, 1800), (0, 1), (1, 11)]
    return table_of("impedance, 2,000 rows", X, y, numbers_of(-300, 2000), bounds)


def shells() -> ModelTable:
    """Two classes by the distance from the middle."""
    X, y = make_hastie_10_2(4000, random_state=59)
    return table_of("shells, 4,000 rows", X, y.astype(int), classes_of(y.astype(int)), [(-4, 4)] * 10)


def adult(path: Path) -> ModelTable:
    """The 32,561 rows of the training part of the UCI data set, which is not part of this repository."""
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file, skipinitialspace=True))
    columns: dict[str, Array] = {}
    facts: dict[str, Any] = {}
    for name in (each for each in records[0] if each not in ADULT_WITHOUT):
        cells = [record[name] for record in records]
        columns[name] = np.array(cells, dtype=float if name in ADULT else str)
        # the categories of the data set's description
        facts[name] = {"bounds": ADULT[name]} if name in ADULT else {"categories": sorted(set(cells))}
    y = np.array([record["Salary"] for record in records])
    return ModelTable("Adult", columns, y, {**classes_of(y), "columns": facts}, ("cos4", "direction", "bins"))


def tables(adult_file: Path | None = None) -> Iterator[ModelTable]:
    """All of them; Adult where its file is given.

    Three were made when the rules of one run stood, and nine when that of `design = "auto"` with a space did.
    """
    yield digits()
    yield bundled("breast cancer", load_breast_cancer, BREAST_CANCER)
    yield bundled("wine", load_wine, WINE)
    yield bundled("iris", load_iris, IRIS)
    yield bundled("diabetes", load_diabetes, [(-0.14, 0.2)] * 10)
    yield friedman(1500)
    yield friedman(20_000)
    yield clusters()
    yield amounts()
    yield incomes()
    for when_the_rules_stood in (waves, orders, rents):
        yield when_the_rules_stood()
    for when_auto_stood in (rare, ten_classes, tails, sparse, wide, moons, steps, impedance, shells):
        yield when_auto_stood()
    if adult_file is not None:
        yield adult(adult_file)
